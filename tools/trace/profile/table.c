// SPDX-License-Identifier: GPL-2.0-or-later
/* Tables of what was collected: by functions, and by stacks. */
#include "tools/trace/profile/profile.h"

#define APP_WIDTH  8
#define COMM_WIDTH 15

/* A function in processes of the same name and app. */
struct line {
	const struct stack *owner;
	uint32_t function;
	uint64_t self, total;
	size_t last; /* stack that was added, plus one: a function that calls itself counts once */
};
struct lines {
	struct line *v;
	size_t n, size; /* a hash table: a power of two */
};

static uint64_t hash_of(const struct stack *s, uint32_t function)
{
	uint64_t h = 0xcbf29ce484222325ull ^ function;

	for (size_t i = 0; i < sizeof(s->comm); i++)
		h = (h ^ (uint8_t)s->comm[i]) * 0x100000001b3ull;
	for (const char *c = s->app ? s->app : ""; *c; c++)
		h = (h ^ (uint8_t)*c) * 0x100000001b3ull;
	return h ^ h >> 32;
}

static bool same_owner(const struct stack *a, const struct stack *b)
{
	return !memcmp(a->comm, b->comm, sizeof(a->comm)) &&
	       streq(a->app ? a->app : "", b->app ? b->app : "");
}

static struct line *slot(const struct lines *l, const struct stack *s, uint32_t function)
{
	size_t at = hash_of(s, function) & (l->size - 1);

	while (l->v[at].owner && (l->v[at].function != function || !same_owner(l->v[at].owner, s)))
		at = (at + 1) & (l->size - 1);
	return &l->v[at];
}

static int grow(struct lines *l)
{
	struct lines more = {.n = l->n, .size = l->size ? l->size * 2 : 256};

	if (2 * (l->n + 1) <= l->size)
		return 0;
	more.v = calloc(more.size, sizeof(*more.v));
	if (!more.v)
		return -ENOMEM;
	for (size_t i = 0; i < l->size; i++)
		if (l->v[i].owner)
			*slot(&more, l->v[i].owner, l->v[i].function) = l->v[i];
	free(l->v);
	*l = more;
	return 0;
}

static int add(struct profile *p, struct lines *l, size_t i)
{
	const struct stack *s = &p->stacks.v[i];
	uint32_t functions[PROFILE_FRAMES_MAX];
	size_t n = profile_functions(p, s, functions, PROFILE_FRAMES_MAX);

	for (size_t j = 0; j < n; j++) {
		struct line *at;

		if (functions[j] == UINT32_MAX || grow(l) < 0)
			return -ENOMEM;
		at = slot(l, s, functions[j]);
		if (!at->owner) {
			*at = (struct line){.owner = s, .function = functions[j]};
			l->n++;
		}
		if (at->last != i + 1)
			at->total += profile_weight(p, s);
		at->last = i + 1;
		if (j == 0)
			at->self += profile_weight(p, s);
	}
	return 0;
}

static int compare(const void *pa, const void *pb)
{
	const struct line *a = pa, *b = pb;

	if (!a->owner || !b->owner)
		return !a->owner - !b->owner;
	if (a->self != b->self)
		return a->self > b->self ? -1 : 1;
	if (a->total != b->total)
		return a->total > b->total ? -1 : 1;
	return a->function < b->function ? -1 : a->function > b->function;
}

static void put_percent(struct profile *p, uint64_t part, uint64_t all)
{
	char text[32];

	snprintf(text, sizeof(text), "%6.1f%%", all ? 100.0 * (double)part / (double)all : 0.0);
	ready_cell(&p->r, text, 7);
}

static void put_weight(struct profile *p, uint64_t v, size_t width)
{
	if (p->waits)
		ready_duration(&p->r, v, width);
	else
		ready_number(&p->r, v, width);
}

static void put_owner(struct profile *p, const struct stack *s)
{
	ready_cell(&p->r, s->app ? s->app : "-", APP_WIDTH);
	ready_cell_safe(&p->r, s->comm, strnlen(s->comm, sizeof(s->comm)), COMM_WIDTH);
}

static void put_function(struct profile *p, uint32_t function)
{
	const struct function_name *f = function < p->names.n ? &p->names.v[function] : NULL;
	struct trace_out *o = &p->r.out;
	size_t len = f ? strlen(f->text) : 0;

	if (!f)
		return;
	/* the kernel's are told apart by the file */
	if (len > 4 && streq(f->text + len - 4, "_[k]"))
		len -= 4;
	trace_out_safe(o, f->text, len);
	if (*f->file) {
		trace_out_text(o, " (");
		trace_out_safe(o, f->file, strlen(f->file));
		trace_out_char(o, ')');
	}
	trace_out_char(o, '\n');
}

static uint64_t weight_of_all(const struct profile *p)
{
	uint64_t all = 0;

	for (size_t i = 0; i < p->stacks.n; i++)
		all += profile_weight(p, &p->stacks.v[i]);
	return all;
}

int profile_put_functions(struct profile *p)
{
	uint64_t all = weight_of_all(p);
	struct lines l = {0};
	int r = 0;

	for (size_t i = 0; r == 0 && i < p->stacks.n; i++)
		r = add(p, &l, i);
	if (r == 0 && l.n) {
		qsort(l.v, l.size, sizeof(*l.v), compare);
		trace_out_text(&p->r.out, p->waits ? "   TIME " : "SAMPLES ");
		trace_out_text(&p->r.out, "   SELF   TOTAL APP      COMM            FUNCTION\n");
	}
	for (size_t i = 0; r == 0 && i < l.n && i < p->top; i++) {
		put_weight(p, l.v[i].self, 7);
		put_percent(p, l.v[i].self, all);
		put_percent(p, l.v[i].total, all);
		put_owner(p, l.v[i].owner);
		put_function(p, l.v[i].function);
	}
	free(l.v);
	return r;
}

static void put_stack(struct profile *p, const struct stack *s, uint64_t all)
{
	uint32_t functions[PROFILE_FRAMES_MAX];
	size_t n = profile_functions(p, s, functions, PROFILE_FRAMES_MAX);

	put_weight(p, profile_weight(p, s), 7);
	put_percent(p, profile_weight(p, s), all);
	if (p->waits)
		ready_number(&p->r, s->times, 7);
	put_owner(p, s);
	trace_out_u64(&p->r.out, s->pid);
	trace_out_char(&p->r.out, '\n');
	for (size_t i = 0; i < n; i++) {
		trace_out_text(&p->r.out, "        ");
		put_function(p, functions[i]);
	}
}

void profile_put_stacks(struct profile *p)
{
	uint64_t all = weight_of_all(p);

	if (p->stacks.n)
		trace_out_text(&p->r.out,
			       p->waits ? "   TIME    PART   TIMES APP      COMM            PID\n"
					: "SAMPLES    PART APP      COMM            PID\n");
	for (size_t i = 0; i < p->stacks.n && i < p->top; i++)
		put_stack(p, &p->stacks.v[i], all);
}
