// SPDX-License-Identifier: GPL-2.0-or-later
#include "tools/trace/ready/tally.h"
#include "tools/lib/text.h"

#define BAR_WIDTH 40

static const char *const kinds[] = {"all", "process", "app", NULL};
static const struct words by_words = {.choices = kinds};

const struct opt tally_opts[] = {
	{"top", 0, OPT_NUMBER, "N",
	 "only the first N lines (0: all; by default 25, and of JSON all)",
	 offsetof(struct tally_view, top), NULL},
	{"by", 0, OPT_CHOICE, "WHAT", "count apart what each process or app does: process or app",
	 offsetof(struct tally_view, by), &by_words},
};

void tally_begin(const struct ready *r, struct tally_view *v)
{
	if (v->top == TALLY_TOP_UNSET)
		v->top = r->json ? 0 : TALLY_TOP;
}

/* --- lines --- */

void *tally_add(struct tally_lines *l)
{
	void *v;

	if (l->n == l->max) {
		size_t max = l->max ? 2 * l->max : 64;

		v = realloc(l->v, max * l->size);
		if (!v)
			return NULL;
		l->v = v;
		l->max = max;
	}
	v = (char *)l->v + l->n++ * l->size;
	memset(v, 0, l->size);
	return v;
}

static int add_pair(void *arg, const void *key, const void *value)
{
	struct tally_lines *l = arg;
	char *line = tally_add(l);

	if (!line)
		return -ENOMEM;
	memcpy(line, key, l->key_size);
	memcpy(line + l->value_at, value, l->value_size);
	return 0;
}

int tally_read_failed(int err, struct error *e)
{
	return err < 0 ? error_set(e, err, "the tables cannot be read: %s", strerror(-err)) : 0;
}

int tally_read(struct ready *r, const char *table, struct tally_lines *l, struct error *e)
{
	l->n = 0;
	return tally_read_failed(watch_each(r->watch, table, add_pair, l), e);
}

void tally_sort(struct tally_lines *l, int (*compare)(const void *a, const void *b, void *arg),
		void *arg)
{
	if (l->n)
		qsort_r(l->v, l->n, l->size, compare, arg);
}

/* --- who --- */

static int compare_names(const void *a, const void *b)
{
	const struct tally_name *x = a, *y = b;

	return x->id < y->id ? -1 : x->id > y->id;
}

static int compare_apps(const void *a, const void *b)
{
	const struct tally_name *const *x = a, *const *y = b;
	char one[AX_EVENT_APP], other[AX_EVENT_APP];
	const char *p = ready_app_text((*x)->is.app, one), *q = ready_app_text((*y)->is.app, other);

	return strcmp(p ? p : "", q ? q : "");
}

static int mark_shared(struct tally_name *v, size_t n)
{
	autofree struct tally_name **sorted = calloc(n, sizeof(*sorted));

	if (!sorted)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		sorted[i] = &v[i];
	qsort(sorted, n, sizeof(struct tally_name *), compare_apps);
	for (size_t i = 0; i + 1 < n; i++)
		if (compare_apps(&sorted[i], &sorted[i + 1]) == 0)
			sorted[i]->is_shared = sorted[i + 1]->is_shared = true;
	return 0;
}

int tally_read_names(struct ready *r, struct tally_view *v, struct error *e)
{
	struct tally_lines l = {
		.size = sizeof(struct tally_name),
		.key_size = sizeof(v->names->id),
		.value_at = offsetof(struct tally_name, is),
		.value_size = sizeof(v->names->is),
	};
	int err = tally_read(r, "groups", &l, e);

	free(v->names);
	v->names = l.v;
	v->n_names = l.n;
	if (l.n)
		qsort(l.v, l.n, sizeof(struct tally_name), compare_names);
	if (l.n && err >= 0 && v->by == AX_TALLY_APP && mark_shared(v->names, l.n) < 0)
		return error_set(e, -ENOMEM, "out of memory");
	return err;
}

void tally_free(struct tally_view *v)
{
	free(v->names);
	v->names = NULL;
	v->n_names = 0;
}

static const struct tally_name *name_of(const struct tally_view *v, uint64_t id)
{
	static const struct tally_name unknown;
	const struct tally_name key = {.id = id}, *n = NULL;

	if (v->n_names)
		n = bsearch(&key, v->names, v->n_names, sizeof(key), compare_names);
	return n ? n : &unknown;
}

/* "-" and, as the last resort, the number. */
static const char *app_of(const struct tally_name *n, uint64_t id, int by, char buf[AX_EVENT_APP])
{
	const char *app = ready_app_text(n->is.app, buf);

	if (app || by == AX_TALLY_PROCESS || !id)
		return app ? app : "-";
	snprintf(buf, AX_EVENT_APP, "cgroup %llu", (unsigned long long)id);
	return buf;
}

static void put_heading(struct ready *r, const struct tally_view *v)
{
	if (v->by == AX_TALLY_PROCESS)
		trace_out_text(&r->out, "    PID COMM         APP      ");
	else if (v->by == AX_TALLY_APP)
		trace_out_text(&r->out, "APP          ");
}

void tally_put_group(struct ready *r, const struct tally_view *v, uint64_t id)
{
	const struct tally_name *n = name_of(v, id);
	char buf[AX_EVENT_APP];

	if (v->by == AX_TALLY_PROCESS) {
		ready_number(r, id, 7);
		ready_cell_safe(r, n->is.comm, strnlen(n->is.comm, sizeof(n->is.comm)), 12);
		ready_cell(r, app_of(n, id, v->by, buf), 8);
	} else if (v->by == AX_TALLY_APP && n->is_shared) { /* with its number behind */
		ready_cell_safe(r, n->is.app, strnlen(n->is.app, sizeof(n->is.app)), 12);
	} else if (v->by == AX_TALLY_APP) {
		ready_cell(r, app_of(n, id, v->by, buf), 12);
	}
}

bool tally_put_json_group(struct ready *r, const struct tally_view *v, uint64_t id)
{
	const struct tally_name *n = name_of(v, id);
	char buf[AX_EVENT_APP];
	const char *app = app_of(n, id, v->by, buf);
	size_t len = strlen(app);

	if (v->by == AX_TALLY_ALL)
		return false;
	if (v->by == AX_TALLY_PROCESS) {
		trace_out_printf(&r->out, "\"pid\":%llu", (unsigned long long)id);
		ready_json_string(r, "comm", n->is.comm, strnlen(n->is.comm, sizeof(n->is.comm)));
		if (!streq(app, "-"))
			ready_json_string(r, "app", app, strlen(app));
	} else {
		trace_out_text(&r->out, "\"app\":");
		trace_out_json(&r->out, app, len);
		/* NAME-ID */
		if (*n->is.app && n->is.app[len] == '-')
			ready_json_number(r, "app_id", atoi(n->is.app + len + 1));
	}
	return true;
}

/* --- tables --- */

void tally_put_table(struct ready *r, const struct tally_view *v, const struct tally_lines *l,
		     const struct tally_table *t)
{
	void (*put)(struct ready *, const void *) = r->json ? t->put_json : t->put_text;
	size_t shown = v->top && l->n > v->top ? v->top : l->n;

	if (t->heading && !r->json) {
		put_heading(r, v);
		trace_out_text(&r->out, t->heading);
	}
	for (size_t i = 0; i < shown; i++)
		put(r, (const char *)l->v + i * l->size);
	if (shown < l->n && !r->json)
		trace_out_printf(&r->out, "(%zu more %s: --top 0 shows all)\n", l->n - shown,
				 t->what);
}

/* --- times --- */

static uint64_t bucket_from(size_t i)
{
	return i ? UINT64_C(1) << (i - 1) : 0;
}

void tally_put_times(struct ready *r, const struct ax_tally_times *t)
{
	size_t first = AX_TALLY_BUCKETS, last = 0;
	uint64_t most = 1;

	for (size_t i = 0; i < AX_TALLY_BUCKETS; i++) {
		if (!t->buckets[i])
			continue;
		first = i < first ? i : first;
		last = i;
		most = t->buckets[i] > most ? t->buckets[i] : most;
	}
	for (size_t i = first; i <= last; i++) {
		char from[TRACE_DURATION_MAX], bar[BAR_WIDTH + 1];
		size_t n = (size_t)((double)t->buckets[i] / (double)most * BAR_WIDTH);

		memset(bar, ' ', BAR_WIDTH);
		memset(bar, '@', n);
		bar[BAR_WIDTH] = '\0';
		trace_out_printf(&r->out, "    from %-8s %10llu |%s|\n",
				 trace_duration_text(bucket_from(i), from),
				 (unsigned long long)t->buckets[i], bar);
	}
}

void tally_put_json_times(struct ready *r, const struct ax_tally_times *t)
{
	const char *comma = "";

	ready_json_number(r, "time_ns", (int64_t)t->sum);
	ready_json_number(r, "longest_ns", (int64_t)t->most);
	trace_out_text(&r->out, ",\"histogram\":[");
	for (size_t i = 0; i < AX_TALLY_BUCKETS; i++) {
		if (!t->buckets[i])
			continue;
		trace_out_printf(&r->out, "%s{\"from_ns\":%llu,\"count\":%llu}", comma,
				 (unsigned long long)bucket_from(i),
				 (unsigned long long)t->buckets[i]);
		comma = ",";
	}
	trace_out_char(&r->out, ']');
}
