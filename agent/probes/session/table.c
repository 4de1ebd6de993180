// SPDX-License-Identifier: GPL-2.0-or-later
/* What a session counted. */
#include "probes/session/priv.h"

void session_table_free(struct session_table *t)
{
	free(t->v);
	*t = (struct session_table){0};
}

static struct session_row *add_row(struct session_table *t, size_t *size)
{
	if (t->n == *size) {
		size_t n = *size ? *size * 2 : 64;
		struct session_row *v = realloc(t->v, n * sizeof(*v));

		if (!v)
			return NULL;
		t->v = v;
		*size = n;
	}
	t->v[t->n] = (struct session_row){0};
	return &t->v[t->n++];
}

struct table_reader {
	struct session_table *t;
	size_t size;
};

static int on_row(void *arg, const uint64_t *key, const struct ax_probe_cell *c)
{
	struct table_reader *reader = arg;
	struct session_row *row = add_row(reader->t, &reader->size);

	if (!row)
		return -ENOMEM;
	memcpy(row->key, key, reader->t->words * sizeof(*key));
	row->cell = *c;
	return 0;
}

/* Without a key, each name's hits are its line. */
static int rows_of_hits(struct session *s, struct table_reader *reader)
{
	autofree uint64_t *hits = calloc(s->plan.n_probes + 1, sizeof(*hits));
	autofree uint64_t *by_name = calloc(s->names.n + 1, sizeof(*by_name));

	if (!hits || !by_name)
		return -ENOMEM;
	engine_hits(s->engine, hits, s->n_probes);
	for (size_t i = 0; i < s->n_probes; i++)
		if ((int)s->probes[i].part == s->table_part)
			by_name[s->probes[i].name] += hits[i];
	reader->t->words = 1;
	for (size_t i = 0; i < s->names.n; i++) {
		struct ax_probe_cell cell = {.count = by_name[i]};
		uint64_t key = i;
		int r = cell.count ? on_row(reader, &key, &cell) : 0;

		if (r < 0)
			return r;
	}
	return 0;
}

static int compare_rows(const void *a, const void *b, void *arg)
{
	const struct session_row *x = a, *y = b;
	const struct session_table *t = arg;

	for (uint32_t i = 0; i < t->words; i++)
		if (x->key[i] != y->key[i])
			return x->key[i] < y->key[i] ? -1 : 1;
	return 0;
}

int session_table(struct session *s, struct session_table *ret)
{
	struct table_reader reader = {.t = ret};
	int r;

	*ret = (struct session_table){.words = s->plan.key_words};
	if (s->plan.key_words)
		r = engine_table(s->engine, on_row, &reader);
	else
		r = rows_of_hits(s, &reader);
	if (r < 0)
		session_table_free(ret);
	else
		qsort_r(ret->v, ret->n, sizeof(*ret->v), compare_rows, ret);
	return r;
}

/* Of a row of several tables: to the key that this one's fetch makes, and the bucket behind it. */
static void take_key(const struct session *s, const struct session_probe *p,
		     const struct session_table *t, struct session_row *row)
{
	uint64_t bucket = row->key[s->key_words];

	memmove(row->key, row->key + 1, (AX_PROBE_KEY - 1) * sizeof(row->key[0]));
	if (p->fetch.fault_word) /* its bits are those of words, too */
		row->key[p->fetch.fault_word] >>= 1;
	for (uint32_t i = p->fetch.key_words; i < AX_PROBE_KEY; i++)
		row->key[i] = 0;
	if (!p->fetch.key_words && s->parts[p->part].action == TRACE_COUNT)
		row->key[0] = p->name;
	else if (t->words > p->fetch.key_words)
		row->key[p->fetch.key_words] = bucket;
}

/* The first probe that fills it. */
static const struct session_probe *probe_of_table(const struct session *s, uint32_t table)
{
	for (size_t i = 0; i < s->n_probes; i++)
		if (s->parts[s->probes[i].part].table == table)
			return &s->probes[i];
	return NULL;
}

int session_table_of(struct session *s, uint32_t table, struct session_table *ret)
{
	const struct session_probe *p = probe_of_table(s, table);
	struct session_table all;
	enum trace_action action;
	int r = session_table(s, &all);

	*ret = (struct session_table){0};
	if (r == 0 && !p) {
		session_table_free(&all);
		return s->options.follow ? 0 : -ENOENT; /* what fills it has no place yet */
	}
	if (r < 0)
		return r;
	action = s->parts[p->part].action;
	*ret = (struct session_table){
		.v = all.v,
		.words = p->fetch.key_words + (action == TRACE_HIST || action == TRACE_LATENCY),
	};
	if (!ret->words)
		ret->words = 1;
	for (size_t i = 0; i < all.n; i++)
		if (all.v[i].key[0] == table) {
			all.v[ret->n] = all.v[i];
			take_key(s, p, ret, &all.v[ret->n++]);
		}
	return 0;
}

void session_table_since(struct session_table *now, const struct session_table *before)
{
	size_t n = 0, j = 0;

	for (size_t i = 0; i < now->n; i++) {
		struct session_row row = now->v[i];

		while (j < before->n && compare_rows(&before->v[j], &row, now) < 0)
			j++;
		if (j < before->n && !compare_rows(&before->v[j], &row, now)) {
			row.cell.count -= before->v[j].cell.count;
			row.cell.sum -= before->v[j].cell.sum;
		}
		if (row.cell.count)
			now->v[n++] = row;
	}
	now->n = n;
}

void session_totals(struct session *s, struct session_totals *ret)
{
	autofree uint64_t *hits = calloc(s->plan.n_probes + 1, sizeof(*hits));

	*ret = (struct session_totals){
		.dropped = engine_counter(s->engine, AX_PROBE_DROPPED),
		.unmatched = engine_counter(s->engine, AX_PROBE_UNMATCHED),
		.too_deep = engine_counter(s->engine, AX_PROBE_TOO_DEEP),
		.no_call = engine_counter(s->engine, AX_PROBE_NO_CALL),
		.no_variable = engine_no_variable(s->engine),
		.missed = engine_missed(s->engine),
	};
	if (s->follow)
		ret->unfollowed = follow_counter(s->follow, AX_FOLLOW_LOST) +
				  follow_counter(s->follow, AX_FOLLOW_FILES);
	if (!hits)
		return;
	engine_hits(s->engine, hits, s->n_probes);
	for (size_t i = 0; i < s->n_probes; i++)
		ret->emitted += hits[i];
}
