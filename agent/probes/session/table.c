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
	engine_hits(s->engine, hits);
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
		.missed = engine_missed(s->engine),
	};
	if (!hits)
		return;
	engine_hits(s->engine, hits);
	for (size_t i = 0; i < s->n_probes; i++)
		ret->emitted += hits[i];
}
