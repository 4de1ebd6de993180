// SPDX-License-Identifier: GPL-2.0-or-later
/* The records of a trace, by time. What an exec's pieces have is put together. */
#include "probes/build/path.h"
#include "probes/build/priv.h"

#define TEXTS_MAX (16u << 20) /* the kernel's limit for both is far below */
#define KINDS	  (AX_EXEC_CWD + 1)

/* Pieces of an exec that has not come yet. */
struct pending {
	uint32_t pid;
	struct {
		char *v;
		size_t len, size;
		bool gap;
	} text[KINDS];
};
struct reader {
	struct build *b;
	struct build_items *items;
	struct pending *pending;
	size_t n, size;
};

static void pending_free(struct pending *p)
{
	for (size_t i = 0; i < KINDS; i++)
		free(p->text[i].v);
}

static struct pending *find(struct reader *rd, uint32_t pid)
{
	for (size_t i = 0; i < rd->n; i++)
		if (rd->pending[i].pid == pid)
			return &rd->pending[i];
	return NULL;
}

static int append(struct pending *p, const struct build_record *r)
{
	size_t what = r->piece.what, len = r->piece.data.len;
	size_t size = p->text[what].size;
	char *v;

	while (size < p->text[what].len + len + 1)
		size = size ? 2 * size : 256;
	if (size != p->text[what].size) {
		v = realloc(p->text[what].v, size);
		if (!v)
			return -ENOMEM;
		p->text[what].v = v;
		p->text[what].size = size;
	}
	memcpy(p->text[what].v + p->text[what].len, r->piece.data.v, len);
	p->text[what].len += len;
	p->text[what].v[p->text[what].len] = '\0';
	return 0;
}

static int add_piece(struct reader *rd, const struct build_record *r)
{
	struct pending *p = find(rd, r->pid);
	uint32_t what = r->piece.what;

	if (what >= KINDS || r->piece.offset > TEXTS_MAX)
		return 0;
	if (!p) {
		if (build_grow(&rd->pending, rd->n, &rd->size, sizeof(*rd->pending)) < 0)
			return -ENOMEM;
		p = &rd->pending[rd->n++];
		*p = (struct pending){.pid = r->pid};
	}
	if (r->piece.offset == 0) { /* what was there belongs to an exec that was dropped */
		p->text[what].len = 0;
		p->text[what].gap = false;
	}
	if (r->piece.offset != p->text[what].len) {
		p->text[what].gap = true;
		return 0;
	}
	return append(p, r);
}

/* Whole strings only: the last one ends with a NUL. */
static int keep_words(struct build *b, const struct pending *p, size_t what, uint64_t len,
		      struct build_texts *t, struct build_words *ret)
{
	char *copy;

	if (p->text[what].gap || p->text[what].len != len)
		t->gap = true;
	if (!p->text[what].len)
		return 0;
	copy = build_store_text(&b->store, p->text[what].v, p->text[what].len);
	if (!copy)
		return -ENOMEM;
	*ret = (struct build_words){copy, p->text[what].len};
	/* a program may have changed its arguments, so that the last one has no end */
	if (copy[ret->len - 1])
		ret->len++;
	return 0;
}

static int keep_texts(struct build *b, const struct pending *p, const struct build_record *r,
		      struct build_texts *t)
{
	bool deep = r->exec.flags & AX_BUILD_DEEP_CWD;
	int err = keep_words(b, p, AX_EXEC_ARGV, r->exec.argv_len, t, &t->argv);

	if (err == 0)
		err = keep_words(b, p, AX_EXEC_ENV, r->exec.env_len, t, &t->env);
	if (err == 0 && p->text[AX_EXEC_FILE].len) {
		t->file = build_store_text(&b->store, p->text[AX_EXEC_FILE].v,
					   strlen(p->text[AX_EXEC_FILE].v));
		err = t->file ? 0 : -ENOMEM;
	}
	if (err == 0 && p->text[AX_EXEC_CWD].size) {
		autofree char *path =
			path_of_names(p->text[AX_EXEC_CWD].v, p->text[AX_EXEC_CWD].len, deep);

		t->cwd = path ? build_store_text(&b->store, path, strlen(path)) : NULL;
		err = t->cwd ? 0 : -ENOMEM;
	}
	return err;
}

static int take_texts(struct reader *rd, struct build_item *item)
{
	struct pending *p = find(rd, item->r.pid);
	struct build_texts *t = build_store_room(&rd->b->store, sizeof(*t));
	int err = 0;

	if (!t)
		return -ENOMEM;
	*t = (struct build_texts){.gap = !p};
	item->texts = t;
	if (!p)
		return 0;
	err = keep_texts(rd->b, p, &item->r, t);
	pending_free(p);
	*p = rd->pending[--rd->n];
	return err;
}

static int add_record(struct reader *rd, const struct build_record *r)
{
	struct build_items *items = rd->items;
	struct build_item *item;

	if (!r->time_ns)
		return add_piece(rd, r);
	if (r->type == AX_BUILD_END) {
		rd->b->totals = r->end;
		return 0;
	}
	if (build_grow(&items->v, items->n, &items->size, sizeof(*items->v)) < 0)
		return -ENOMEM;
	item = &items->v[items->n];
	*item = (struct build_item){.r = *r, .order = items->n};
	items->n++;
	return r->type == AX_BUILD_EXEC ? take_texts(rd, item) : 0;
}

static int by_time(const void *a, const void *b)
{
	const struct build_item *x = a, *y = b;

	if (x->r.time_ns != y->r.time_ns)
		return x->r.time_ns < y->r.time_ns ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

static void judge(struct build *b, const struct error *cut_off)
{
	const struct ax_build_end *n = &b->totals;
	uint64_t lost = n->dropped + n->missed + n->cut + n->unfollowed;

	b->whole = n->head.type == AX_BUILD_END && !lost;
	if (cut_off->code)
		snprintf(b->incomplete, sizeof(b->incomplete), "%.250s", cut_off->text);
	else if (n->head.type != AX_BUILD_END)
		snprintf(b->incomplete, sizeof(b->incomplete),
			 "it has no end: ax trace build did not come to its own");
	else if (lost)
		snprintf(b->incomplete, sizeof(b->incomplete),
			 "%llu records were lost when it was made: record it again with a larger "
			 "--buffer",
			 (unsigned long long)lost);
}

int build_items_read(struct build *b, struct build_items *items, const void *data, size_t len,
		     struct error *e)
{
	struct reader rd = {.b = b, .items = items};
	struct error cut_off = {0};
	struct build_record r;
	struct build_log l;
	int err = build_log_begin(&l, data, len, e);

	b->head = l.head;
	while (err == 0) {
		int got = build_log_next(&l, &r, e);

		if (got == 1)
			err = add_record(&rd, &r);
		if (got == -ENODATA)
			cut_off = *e;
		else if (got < 0)
			err = got;
		if (got != 1)
			break;
	}
	for (size_t i = 0; i < rd.n; i++)
		pending_free(&rd.pending[i]);
	free(rd.pending);
	if (err == -ENOMEM)
		return error_set(e, err, "out of memory");
	if (err < 0)
		return err;
	judge(b, &cut_off);
	if (items->n)
		qsort(items->v, items->n, sizeof(*items->v), by_time);
	return 0;
}
