/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tables of counts and statistics, and histograms. */
#include "tools/trace/show/show.h"
#include "tools/lib/table.h"
#include "tools/lib/text.h"

#define BAR_WIDTH 52
#define KEYS_MAX  (PROBE_BY_MAX + 1) /* with that of the probe's name */

/* How the table of a session is read. */
struct view {
	struct trace *t;
	const struct session_table *table;
	const struct session_table
		*times;	 /* TRACE_LATENCY: each line's buckets, maybe finer ones */
	size_t times_at; /* which of them come next */
	struct session_table merged;
	const struct fetch *fetch;    /* of the row at hand */
	const struct fetch **by_name; /* each name's, where the key begins with one */
	enum trace_action action;
	struct trace_buckets buckets;
	bool names;	  /* the key begins with the number of a name */
	bool is_signed;	  /* the value of a histogram or of statistics */
	bool stacks;	  /* a part of the key is one: no table has room for it */
	uint32_t n_words; /* of the key without the bucket */
};

static bool is_histogram(enum trace_action a)
{
	return a == TRACE_HIST || a == TRACE_LATENCY;
}

static bool is_signed(enum value_type type)
{
	return type == VALUE_SIGNED || type == VALUE_ERRNO;
}

static bool fills_table(const struct trace *t, const struct session_probe *p)
{
	if (!p->attached)
		return false;
	return t->script ? p->part < t->n_script && t->script[p->part].table == t->table
			 : p->part == 0;
}

/* The part that counts. */
static const struct session_part *table_part(const struct trace *t)
{
	for (size_t i = 0; t->script && i < t->n_script; i++)
		if (t->script[i].table == t->table)
			return &t->script[i];
	return &t->parts[0];
}

const struct fetch *trace_table_fetch(const struct trace *t)
{
	const struct session *s = t->session;

	for (size_t i = 0; i < session_n_probes(s); i++)
		if (fills_table(t, session_probe(s, i)))
			return session_fetch(s, (uint32_t)i);
	return session_fetch(s, 0);
}

int trace_read_table(const struct trace *t, struct session_table *ret)
{
	return t->script ? session_table_of(t->session, t->table, ret)
			 : session_table(t->session, ret);
}

static struct view make_view(struct trace *t, const struct session_table *table)
{
	const struct fetch *f = trace_table_fetch(t);
	const struct session_part *part = table_part(t);
	struct view v = {.t = t,
			 .table = table,
			 .fetch = f,
			 .action = part->action,
			 .buckets = part->buckets};

	if (!f->key_words)
		v.names = v.action == TRACE_COUNT; /* then each name's hits are a line */
	else
		v.names = f->n_keys ? f->keys[0].word > 0 : true;
	v.n_words = is_histogram(v.action) ? table->words - 1 : table->words;
	v.is_signed = f->n_values && is_signed(f->values[0].type);
	for (size_t i = 0; i < f->n_keys; i++)
		v.stacks |= trace_is_stack(&f->keys[i]);
	return v;
}

/* Probes of one text may fetch the same value as another type: a number here, a text there. */
static bool find_fetches(struct view *v)
{
	const struct session *s = v->t->session;

	if (!v->names || !v->fetch->key_words)
		return true;
	v->by_name = calloc(session_n_names(s) + 1, sizeof(*v->by_name));
	for (size_t i = session_n_probes(s); v->by_name && i-- > 0;)
		if (fills_table(v->t, session_probe(s, i)))
			v->by_name[session_probe(s, i)->name] = session_fetch(s, (uint32_t)i);
	return v->by_name;
}

static void begin_row(struct view *v, const struct session_row *row)
{
	const struct fetch *f = NULL;

	if (v->by_name && row->key[0] < session_n_names(v->t->session))
		f = v->by_name[row->key[0]];
	if (!f)
		return;
	v->fetch = f;
	v->is_signed = f->n_values && is_signed(f->values[0].type);
}

/* --- keys --- */

/* A text that is made with what writes records. */
struct scratch {
	struct trace_out saved;
};
static void scratch_begin(struct trace *t, struct scratch *s)
{
	s->saved = t->out;
	if (trace_out_open(&t->out, -1) < 0)
		t->out = s->saved;
}
/* malloc'ed; NULL when memory is out. */
static char *scratch_end(struct trace *t, struct scratch *s)
{
	char *text = NULL;

	if (t->out.buf == s->saved.buf)
		return NULL;
	text = strndup(t->out.buf, t->out.n);
	t->out.n = 0;
	trace_out_close(&t->out);
	t->out = s->saved;
	return text;
}

/* It could not be fetched. */
static bool is_missing(const struct view *v, const struct fetch_shown *k,
		       const struct session_row *row)
{
	return v->fetch->fault_word && row->key[v->fetch->fault_word] >> k->word & 1 &&
	       !trace_is_stack(k);
}

static void add_key_cell(struct view *v, struct table *table, const struct fetch_shown *shown,
			 const struct session_row *row)
{
	const uint64_t *words = row->key + shown->word;
	autofree char *text = NULL;
	struct scratch s;

	if (is_missing(v, shown, row)) {
		table_add(table, "?");
		return;
	}
	if (shown->type == VALUE_STRING) { /* the table makes it harmless */
		text = strndup((const char *)words, shown->size);
		table_add(table, text);
		return;
	}
	scratch_begin(v->t, &s);
	trace_put_key(v->t, shown, words);
	text = scratch_end(v->t, &s);
	table_add(table, text);
}

static void add_key_cells(struct view *v, struct table *table, const struct session_row *row)
{
	begin_row(v, row);
	if (v->names)
		table_add(table, session_name(v->t->session, row->key[0]));
	for (size_t i = 0; i < v->fetch->n_keys; i++)
		add_key_cell(v, table, &v->fetch->keys[i], row);
}

static size_t key_columns(const struct view *v, struct table_column columns[KEYS_MAX])
{
	size_t n = 0;

	if (v->names)
		columns[n++] = (struct table_column){.title = "PROBE", .keep = 9, .min = 16};
	for (size_t i = 0; i < v->fetch->n_keys; i++) {
		enum value_type type = v->fetch->keys[i].type;

		columns[n++] = (struct table_column){
			.title = v->fetch->keys[i].name,
			.keep = 9,
			.min = 12,
			.right = (type == VALUE_UNSIGNED || is_signed(type)) &&
				 !v->fetch->keys[i].shape,
		};
	}
	return n;
}

/* "malloc comm="bash"": before a histogram. */
static void put_key_line(struct view *v, const struct session_row *row)
{
	struct trace_out *o = &v->t->out;
	unsigned parts = 0;

	begin_row(v, row);
	if (v->names) {
		const char *name = session_name(v->t->session, row->key[0]);

		trace_out_safe(o, name, strlen(name));
		parts++;
	}
	for (size_t i = 0; i < v->fetch->n_keys; i++) {
		const struct fetch_shown *k = &v->fetch->keys[i];
		bool missing = is_missing(v, k, row);
		bool quoted = k->type == VALUE_STRING && !missing;

		if (trace_is_stack(k))
			continue;
		if (parts++)
			trace_out_char(o, ' ');
		trace_out_safe(o, k->name, strlen(k->name));
		trace_out_text(o, missing ? "=?" : "=");
		if (quoted)
			trace_out_quoted(o, (const char *)(row->key + k->word),
					 strnlen((const char *)(row->key + k->word), k->size));
		else if (!missing)
			trace_put_key(v->t, k, row->key + k->word);
	}
	if (parts)
		trace_out_char(o, '\n');
	for (size_t i = 0; v->stacks && i < v->fetch->n_keys; i++)
		if (trace_is_stack(&v->fetch->keys[i]))
			trace_put_key(v->t, &v->fetch->keys[i], row->key + v->fetch->keys[i].word);
}

static void put_json_key(struct view *v, const struct session_row *row)
{
	struct trace_out *o = &v->t->out;

	begin_row(v, row);
	trace_out_char(o, '{');
	if (v->names) {
		const char *name = session_name(v->t->session, row->key[0]);

		trace_out_text(o, "\"probe\":");
		trace_out_json(o, name, strlen(name));
	}
	trace_out_text(o, v->names ? ",\"key\":{" : "\"key\":{");
	for (size_t i = 0; i < v->fetch->n_keys; i++) {
		const struct fetch_shown *k = &v->fetch->keys[i];

		if (i)
			trace_out_char(o, ',');
		trace_out_json(o, k->name, strlen(k->name));
		trace_out_char(o, ':');
		if (is_missing(v, k, row))
			trace_out_text(o, "null");
		else
			trace_put_key(v->t, k, row->key + k->word);
	}
	trace_out_char(o, '}');
}

/* --- values --- */

static void write_value(const struct view *v, uint64_t value, char buf[TRACE_NUMBER_MAX])
{
	char *end =
		v->is_signed ? trace_write_s64(buf, (int64_t)value) : trace_write_u64(buf, value);

	*end = '\0';
}

/* So that all zero can be the start for the greatest and the least. */
static uint64_t greatest(const struct view *v, const struct ax_probe_cell *c)
{
	return v->is_signed ? c->most ^ UINT64_C(1) << 63 : c->most;
}

static uint64_t least(const struct view *v, const struct ax_probe_cell *c)
{
	return v->is_signed ? ~c->least ^ UINT64_C(1) << 63 : ~c->least;
}

static double mean(const struct view *v, const struct ax_probe_cell *c)
{
	double sum = v->is_signed ? (double)(int64_t)c->sum : (double)c->sum;

	return c->count ? sum / (double)c->count : 0;
}

/* --- counts and statistics --- */

static int by_count(const void *a, const void *b)
{
	const struct session_row *const *x = a, *const *y = b;

	if ((*x)->cell.count != (*y)->cell.count)
		return (*x)->cell.count > (*y)->cell.count ? -1 : 1;
	return *x < *y ? -1 : *x > *y; /* by key, as they were */
}

/* The lines, those with the most first. NULL: memory is out. */
static const struct session_row **sorted(const struct session_table *table)
{
	const struct session_row **v = calloc(table->n ? table->n : 1, sizeof(const void *));

	for (size_t i = 0; v && i < table->n; i++)
		v[i] = &table->v[i];
	if (v && table->n)
		qsort(v, table->n, sizeof(const void *), by_count);
	return v;
}

static void add_statistics(const struct view *v, struct table *table, const struct ax_probe_cell *c)
{
	char buf[TRACE_NUMBER_MAX];

	write_value(v, c->sum, buf);
	table_add(table, buf);
	table_addf(table, "%.*f", mean(v, c) == (double)(int64_t)mean(v, c) ? 0 : 1, mean(v, c));
	write_value(v, least(v, c), buf);
	table_add(table, buf);
	write_value(v, greatest(v, c), buf);
	table_add(table, buf);
}

static void put_rows(struct view *v, const struct session_row **rows)
{
	static const char *const titles[] = {"COUNT", "SUM", "MEAN", "LEAST", "GREATEST"};
	size_t n_values = v->action == TRACE_STATS ? ARRAY_SIZE(titles) : 1;
	struct table_column columns[KEYS_MAX + ARRAY_SIZE(titles)];
	size_t n = key_columns(v, columns);
	struct table_style style = table_style_for(stdout);
	CLEANUP(table_free) struct table table;
	autofree char *text = NULL;
	size_t size = 0;
	FILE *f;

	for (size_t i = 0; i < n_values; i++)
		columns[n++] = (struct table_column){.title = titles[i], .keep = 9, .right = true};
	table_init(&table, columns, n);
	for (size_t i = 0; i < v->table->n; i++) {
		add_key_cells(v, &table, rows[i]);
		table_addf(&table, "%llu", (unsigned long long)rows[i]->cell.count);
		if (v->action == TRACE_STATS)
			add_statistics(v, &table, &rows[i]->cell);
	}
	f = open_memstream(&text, &size);
	if (!f) {
		v->t->out.error = ENOMEM;
		return;
	}
	if (v->t->path)
		style = (struct table_style){.headers = true};
	if (table_print(&table, &style, f) < 0)
		v->t->out.error = ENOMEM;
	if (fclose(f) == 0)
		trace_out_put(&v->t->out, text, size);
}

/* Each line's stack is a block. */
static void put_blocks(struct view *v, const struct session_row **rows)
{
	char buf[4][TRACE_NUMBER_MAX];

	for (size_t i = 0; i < v->table->n; i++) {
		const struct ax_probe_cell *c = &rows[i]->cell;

		put_key_line(v, rows[i]);
		trace_out_printf(&v->t->out, "    %llu", (unsigned long long)c->count);
		if (v->action == TRACE_STATS) {
			write_value(v, c->sum, buf[0]);
			write_value(v, least(v, c), buf[1]);
			write_value(v, greatest(v, c), buf[2]);
			trace_out_printf(&v->t->out, " sum=%s mean=%.1f least=%s greatest=%s",
					 buf[0], mean(v, c), buf[1], buf[2]);
		}
		trace_out_text(&v->t->out, "\n\n");
	}
}

static void put_json_rows(struct view *v, const struct session_row **rows)
{
	struct trace_out *o = &v->t->out;
	char buf[3][TRACE_NUMBER_MAX];

	for (size_t i = 0; i < v->table->n; i++) {
		const struct ax_probe_cell *c = &rows[i]->cell;

		if (i)
			trace_out_char(o, ',');
		put_json_key(v, rows[i]);
		trace_out_text(o, ",\"count\":");
		trace_out_u64(o, c->count);
		if (v->action == TRACE_STATS) {
			write_value(v, c->sum, buf[0]);
			write_value(v, least(v, c), buf[1]);
			write_value(v, greatest(v, c), buf[2]);
			trace_out_printf(o,
					 ",\"sum\":%s,\"mean\":%.17g,\"least\":%s,\"greatest\":%s",
					 buf[0], mean(v, c), buf[1], buf[2]);
		}
		trace_out_char(o, '}');
	}
}

/* --- histograms --- */

static int64_t order_of(uint64_t index)
{
	return index == AX_BUCKET_NEGATIVE ? -1 : (int64_t)index;
}

/* 1024 as 1K, as all tools do that show powers of two. */
static void write_power(unsigned n, char buf[16])
{
	static const char units[] = " KMGTPE";

	if (n == 64)
		snprintf(buf, 16, "16E");
	else if (n < 10)
		snprintf(buf, 16, "%u", 1u << n);
	else
		snprintf(buf, 16, "%u%c", 1u << n % 10, units[n / 10]);
}

static void label_log2(int64_t order, char buf[64])
{
	char from[16], to[16];

	if (order < 0) {
		snprintf(buf, 64, "(..., 0)");
	} else if (order < 2) {
		snprintf(buf, 64, "[%d]", (int)order);
	} else {
		write_power((unsigned)order - 1, from);
		write_power((unsigned)order, to);
		snprintf(buf, 64, "[%s, %s)", from, to);
	}
}

static int64_t linear_from(const struct trace_buckets *b, int64_t order)
{
	return (int64_t)((uint64_t)b->least + (uint64_t)(order - 1) * b->step);
}

static void label_linear(const struct trace_buckets *b, int64_t order, char buf[64])
{
	if (order == 0)
		snprintf(buf, 64, "(..., %lld)", (long long)b->least);
	else if (order > (int64_t)b->n)
		snprintf(buf, 64, "[%lld, ...)", (long long)linear_from(b, (int64_t)b->n + 1));
	else
		snprintf(buf, 64, "[%lld, %lld)", (long long)linear_from(b, order),
			 (long long)linear_from(b, order + 1));
}

static void label(const struct view *v, int64_t order, char buf[64])
{
	const struct trace_buckets *b = &v->buckets;

	if (b->step)
		label_linear(b, order, buf);
	else
		label_log2(order, buf);
}

static void write_bar(struct trace_out *o, const char *name, uint64_t count, uint64_t most)
{
	size_t n = most ? (size_t)((double)count / (double)most * BAR_WIDTH) : 0;
	char bar[BAR_WIDTH + 1];

	memset(bar, ' ', BAR_WIDTH);
	memset(bar, '@', n);
	bar[BAR_WIDTH] = '\0';
	trace_out_printf(o, "%-20s %10llu |%s|\n", name, (unsigned long long)count, bar);
}

static void put_bar(const struct view *v, int64_t order, uint64_t count, uint64_t most)
{
	char name[64];

	label(v, order, name);
	write_bar(&v->t->out, name, count, most);
}

void trace_put_power_bar(struct trace_out *o, unsigned order, uint64_t count, uint64_t most)
{
	char name[64];

	label_log2(order, name);
	write_bar(o, name, count, most);
}

/* The buckets of one key in the order of what they hold: with the one below 0 first. */
static size_t find_group(const struct view *v, size_t at, size_t *first)
{
	const struct session_table *t = v->table;
	size_t end = at + 1;

	while (end < t->n && !memcmp(t->v[at].key, t->v[end].key, v->n_words * sizeof(uint64_t)))
		end++;
	*first = order_of(t->v[end - 1].key[v->n_words]) < 0 ? end - 1 : at;
	return end;
}

/* Of the next key: they are all asked for, in their order. */
static bool next_times(struct view *v, struct trace_times *ret)
{
	const struct session_row *first = v->times->v + v->times_at;
	size_t n = 0;

	while (v->times_at < v->times->n &&
	       !memcmp(first->key, first[n].key, v->n_words * sizeof(uint64_t))) {
		v->times_at++;
		n++;
	}
	return trace_times_of(first, n, ret);
}

static void put_histogram(struct view *v, size_t begin, size_t end, size_t first)
{
	const struct session_row *rows = v->table->v;
	struct trace_times times;
	uint64_t most = 0;
	int64_t order;

	for (size_t i = begin; i < end; i++)
		if (rows[i].cell.count > most)
			most = rows[i].cell.count;
	put_key_line(v, &rows[begin]);
	if (v->action == TRACE_LATENCY)
		trace_out_printf(&v->t->out, "%-20s %10s\n", "NANOSECONDS", "COUNT");
	order = order_of(rows[first].key[v->n_words]);
	if (order < 0 && !v->buckets.step) {
		put_bar(v, order, rows[first].cell.count, most);
		end--;
		if (begin == end)
			return;
	}
	order = order_of(rows[begin].key[v->n_words]);
	for (size_t i = begin; i < end; i++) {
		for (; order < order_of(rows[i].key[v->n_words]); order++)
			put_bar(v, order, 0, most);
		put_bar(v, order++, rows[i].cell.count, most);
	}
	if (v->action == TRACE_LATENCY && next_times(v, &times))
		trace_put_times(&v->t->out, &times);
}

static void put_histograms(struct view *v)
{
	size_t first, end;

	for (size_t i = 0; i < v->table->n; i = end) {
		end = find_group(v, i, &first);
		if (i)
			trace_out_char(&v->t->out, '\n');
		put_histogram(v, i, end, first);
	}
}

static void put_json_bucket(struct view *v, const struct session_row *row)
{
	const struct trace_buckets *b = &v->buckets;
	int64_t order = b->step ? (int64_t)row->key[v->n_words] : order_of(row->key[v->n_words]);
	struct trace_out *o = &v->t->out;

	trace_out_char(o, '{');
	if (b->step) {
		if (order > 0)
			trace_out_printf(o, "\"least\":%lld,", (long long)linear_from(b, order));
		if (order <= (int64_t)b->n)
			trace_out_printf(o, "\"greatest\":%lld,",
					 (long long)linear_from(b, order + 1) - 1);
	} else if (order < 0) {
		trace_out_text(o, "\"greatest\":-1,");
	} else {
		uint64_t from = order ? UINT64_C(1) << (order - 1) : 0;

		trace_out_printf(o, "\"least\":%llu,\"greatest\":%llu,", (unsigned long long)from,
				 (unsigned long long)(order ? from + (from - 1) : 0));
	}
	trace_out_text(o, "\"count\":");
	trace_out_u64(o, row->cell.count);
	trace_out_char(o, '}');
}

static void put_json_histograms(struct view *v)
{
	struct trace_times times;
	size_t first, end;

	for (size_t i = 0; i < v->table->n; i = end) {
		end = find_group(v, i, &first);
		if (i)
			trace_out_char(&v->t->out, ',');
		put_json_key(v, &v->table->v[i]);
		trace_out_text(&v->t->out, ",\"buckets\":[");
		for (size_t j = i; j < end; j++) {
			/* rotated, so that the one below 0 is first */
			size_t at = i + (j - i + first - i) % (end - i);

			if (j > i)
				trace_out_char(&v->t->out, ',');
			put_json_bucket(v, &v->table->v[at]);
		}
		trace_out_char(&v->t->out, ']');
		if (v->action == TRACE_LATENCY && next_times(v, &times))
			trace_put_json_times(&v->t->out, &times);
		trace_out_char(&v->t->out, '}');
	}
}

/* --- the whole --- */

static void put_json_table(struct view *v, const struct session_row **rows, uint64_t ns)
{
	struct trace_out *o = &v->t->out;

	if (ns)
		trace_out_printf(o, "{\"time\":%llu.%06llu,", (unsigned long long)(ns / 1000000000),
				 (unsigned long long)(ns % 1000000000 / 1000));
	else
		trace_out_char(o, '{');
	if (v->t->table_name)
		trace_out_printf(o, "\"name\":\"%s\",", v->t->table_name);
	trace_out_text(o, "\"table\":[");
	if (is_histogram(v->action))
		put_json_histograms(v);
	else
		put_json_rows(v, rows);
	trace_out_text(o, "]}\n");
}

static void put_text_table(struct view *v, const struct session_row **rows, uint64_t ns)
{
	struct trace_out *o = &v->t->out;

	if (ns) {
		char *at = trace_out_room(o, TRACE_TIME_MAX), *end = trace_write_time(at, ns);

		trace_out_end(o, end - 7); /* without the part of a second */
		trace_out_char(o, '\n');
	}
	if (!v->table->n)
		trace_out_text(o, "nothing happened\n");
	else if (is_histogram(v->action))
		put_histograms(v);
	else if (v->stacks)
		put_blocks(v, rows);
	else
		put_rows(v, rows);
	if (ns)
		trace_out_char(o, '\n');
}

static int find_times(struct view *v)
{
	v->times = v->table;
	if (v->action != TRACE_LATENCY || v->buckets.step)
		return 0;
	v->table = &v->merged;
	return trace_times_merge(v->times, v->n_words, &v->merged);
}

void trace_put_table(struct trace *t, const struct session_table *table, uint64_t ns)
{
	struct view v = make_view(t, table);
	autofree const struct session_row **rows = sorted(table);

	if (!rows || !find_fetches(&v) || find_times(&v) < 0)
		t->out.error = ENOMEM;
	else if (t->json)
		put_json_table(&v, rows, ns);
	else
		put_text_table(&v, rows, ns);
	session_table_free(&v.merged);
	free(v.by_name);
}
