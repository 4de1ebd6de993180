// SPDX-License-Identifier: GPL-2.0-or-later
/* Types and functions as their source has them: a declaration is written from its name outwards. */
#include "probes/types/types.h"

#define STEPS_MAX 24  /* of a type: pointers, arrays and qualifiers around each other */
#define INNER_MAX 320 /* what is around the name */
#define NESTED	  3   /* functions that are parameters of functions */

static void write_type(const struct ctype *t, const char *name, char *buf, size_t size,
		       unsigned depth);

/* --- text --- */

static void append(char *buf, size_t size, const char *text)
{
	size_t len = strlen(buf);

	if (len + 1 < size)
		snprintf(buf + len, size - len, "%s", text);
}

/* In front of what is there. */
static void prepend(char *buf, size_t size, const char *text)
{
	size_t n = strlen(text), len = strlen(buf);

	if (n + 1 > size)
		return;
	if (len > size - n - 1)
		len = size - n - 1;
	memmove(buf + n, buf, len);
	memcpy(buf, text, n);
	buf[n + len] = '\0';
}

/* --- declarations --- */

struct declaration {
	char inner[INNER_MAX]; /* the name with what is around it so far */
	char qualifiers[20];   /* of what comes next: "const " */
	bool pointer;	       /* the last step was one: what follows behind needs parentheses */
};

static void step_pointer(struct declaration *d, const char *sign)
{
	size_t len = strlen(d->qualifiers);

	/* the qualifiers are those of the pointer itself, and stand behind its sign */
	if (len && !*d->inner)
		d->qualifiers[len - 1] = '\0';
	prepend(d->inner, sizeof(d->inner), d->qualifiers);
	prepend(d->inner, sizeof(d->inner), sign);
	*d->qualifiers = '\0';
	d->pointer = true;
}

static void step_behind(struct declaration *d)
{
	if (d->pointer) {
		prepend(d->inner, sizeof(d->inner), "(");
		append(d->inner, sizeof(d->inner), ")");
	}
	d->pointer = false;
}

static void step_array(struct declaration *d, uint64_t count)
{
	char text[32] = "[]";

	if (count)
		snprintf(text, sizeof(text), "[%llu]", (unsigned long long)count);
	step_behind(d);
	append(d->inner, sizeof(d->inner), text);
}

static void step_function(struct declaration *d, struct type_source *s, uint64_t id, void *unit,
			  unsigned depth)
{
	struct ctype t = {.kind = CTYPE_FUNCTION, .source = s, .written_id = id}, p;
	char text[INNER_MAX / 2];

	t.written_unit = unit;
	step_behind(d);
	append(d->inner, sizeof(d->inner), "(");
	for (size_t i = 0; depth < NESTED && i < PROTOTYPE_PARAMETERS && s->parameter &&
			   s->parameter(s, &t, i, &p) == 0;
	     i++) {
		write_type(&p, "", text, sizeof(text), depth + 1);
		append(d->inner, sizeof(d->inner), i ? ", " : "");
		append(d->inner, sizeof(d->inner), text);
	}
	append(d->inner, sizeof(d->inner), ")");
}

static void qualify(struct declaration *d, const char *word)
{
	if (!strstr(d->qualifiers, word))
		append(d->qualifiers, sizeof(d->qualifiers), word);
}

/* True: it goes on. */
static bool step(struct declaration *d, struct type_source *s, struct written *w, unsigned depth)
{
	uint64_t id = w->id;
	void *unit = w->unit;

	if (!id || s->written(s, w))
		return false;
	switch (w->kind) {
	case WRITTEN_CONST:
		qualify(d, "const ");
		break;
	case WRITTEN_VOLATILE:
		qualify(d, "volatile ");
		break;
	case WRITTEN_POINTER:
		step_pointer(d, "*");
		break;
	case WRITTEN_REFERENCE:
		step_pointer(d, "&");
		break;
	case WRITTEN_RVALUE:
		step_pointer(d, "&&");
		break;
	case WRITTEN_ARRAY:
		step_array(d, w->count);
		break;
	case WRITTEN_FUNCTION:
		step_function(d, s, id, unit, depth);
		break;
	case WRITTEN_NOTHING:
		break;
	default:
		return false;
	}
	return true;
}

static void write_type(const struct ctype *t, const char *name, char *buf, size_t size,
		       unsigned depth)
{
	struct declaration d = {0};
	struct written w = {.id = t->written_id, .unit = t->written_unit};
	const char *base = "void";

	snprintf(d.inner, sizeof(d.inner), "%s", name);
	for (int i = 0; i < STEPS_MAX && t->source && t->source->written; i++)
		if (!step(&d, t->source, &w, depth))
			break;
	if (t->source && w.id && w.name)
		base = w.name;
	else if (t->kind != CTYPE_VOID && !t->written_id)
		base = "?";
	snprintf(buf, size, "%s%s%s%s%s", d.qualifiers, w.id && w.prefix && w.name ? w.prefix : "",
		 base, *d.inner && *d.inner != '[' ? " " : "", d.inner);
}

void ctype_write(const struct ctype *t, const char *name, char *buf, size_t size)
{
	write_type(t, name, buf, size, 0);
}

/* --- functions --- */

static void write_go_list(const struct prototype *p, bool results, char *buf, size_t size)
{
	bool first = true;
	char type[160];

	append(buf, size, "(");
	for (size_t i = 0; i < p->n; i++) {
		const struct prototype_parameter *v = &p->parameters[i];

		if (v->is_result != results)
			continue;
		append(buf, size, first ? "" : ", ");
		first = false;
		/* results without a name get one of the compiler's, as ~r0 */
		if (v->name && *v->name != '~') {
			append(buf, size, v->name);
			append(buf, size, " ");
		}
		ctype_write(&v->type, "", type, sizeof(type));
		append(buf, size, type);
	}
	append(buf, size, ")");
}

static void write_go(const struct prototype *p, const char *name, char *buf, size_t size)
{
	const struct prototype_parameter *only = NULL;
	size_t results = 0;
	char type[160];

	snprintf(buf, size, "func %s", name);
	write_go_list(p, false, buf, size);
	for (size_t i = 0; i < p->n; i++)
		if (p->parameters[i].is_result) {
			only = &p->parameters[i];
			results++;
		}
	if (!results)
		return;
	append(buf, size, " ");
	if (results > 1 || (only->name && *only->name != '~')) {
		write_go_list(p, true, buf, size);
		return;
	}
	ctype_write(&only->type, "", type, sizeof(type));
	append(buf, size, type);
}

void prototype_write(const struct prototype *p, const char *name, char *buf, size_t size)
{
	char call[1024], one[240];

	if (!name)
		name = p->name ? p->name : "?";
	if (p->go) {
		write_go(p, name, buf, size);
		return;
	}
	snprintf(call, sizeof(call), "%s(", name);
	for (size_t i = 0; i < p->n; i++) {
		ctype_write(&p->parameters[i].type,
			    p->parameters[i].name ? p->parameters[i].name : "", one, sizeof(one));
		append(call, sizeof(call), i ? ", " : "");
		append(call, sizeof(call), one);
	}
	append(call, sizeof(call),
	       p->variadic	? (p->n ? ", ...)" : "...)")
	       : p->n || p->cxx ? ")"
				: "void)");
	ctype_write(&p->returns, "", one, sizeof(one));
	/* what returns a pointer is written as in C, without a blank behind the sign */
	snprintf(buf, size, "%s%s%s", one, one[strlen(one) - 1] == '*' ? "" : " ", call);
}
