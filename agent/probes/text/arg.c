// SPDX-License-Identifier: GPL-2.0-or-later
/* One argument of a probe: its name, its expression and its type. */
#include "base/near.h"
#include "probes/text/priv.h"

#define NAME_LEN_MAX 63

/* The first of those that mean the same is the canonical one. */
static const struct {
	const char *name;
	enum value_type type;
	uint32_t size;
} types[] = {
	{"u8", VALUE_UNSIGNED, 1},
	{"u16", VALUE_UNSIGNED, 2},
	{"u32", VALUE_UNSIGNED, 4},
	{"u64", VALUE_UNSIGNED, 8},
	{"s8", VALUE_SIGNED, 1},
	{"s16", VALUE_SIGNED, 2},
	{"s32", VALUE_SIGNED, 4},
	{"s64", VALUE_SIGNED, 8},
	{"x8", VALUE_HEX, 1},
	{"x16", VALUE_HEX, 2},
	{"x32", VALUE_HEX, 4},
	{"x64", VALUE_HEX, 8},
	{"f32", VALUE_FLOAT, 4},
	{"f64", VALUE_FLOAT, 8},
	{"char", VALUE_CHAR, 1},
	{"bool", VALUE_BOOL, 1},
	{"string", VALUE_STRING, 0},
	{"ustring", VALUE_USTRING, 0},
	{"buf", VALUE_BUFFER, 0},
	{"symbol", VALUE_SYMBOL, 8},
	{"symstr", VALUE_SYMBOL, 8},
	{"errno", VALUE_ERRNO, 8},
	{"syscall", VALUE_SYSCALL, 8},
	{"ustack", VALUE_USER_STACK, 0},
	{"kstack", VALUE_KERNEL_STACK, 0},
	{"stack", VALUE_NONE, 0},
};
#define TYPES_SHOWN                                                                               \
	"u8..u64, s8..s64, x8..x64, f32, f64, bool, char, string[N], ustring[N], buf[N], errno, " \
	"syscall or symbol"

static bool is_stack(enum value_type t)
{
	return t == VALUE_USER_STACK || t == VALUE_KERNEL_STACK;
}

bool probe_is_kernel(const struct probe_spec *p)
{
	return p->kind == PROBE_KPROBE || p->kind == PROBE_KRETPROBE ||
	       p->kind == PROBE_TRACEPOINT || p->kind == PROBE_PROFILE;
}

bool probe_is_return(const struct probe_spec *p)
{
	return p->kind == PROBE_URETPROBE || p->kind == PROBE_KRETPROBE;
}

static bool is_memory(enum value_type t)
{
	return t == VALUE_STRING || t == VALUE_USTRING || t == VALUE_BUFFER;
}

static int find_type(const char *s, size_t len)
{
	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if (strlen(types[i].name) == len && strncmp(types[i].name, s, len) == 0)
			return (int)i;
	return -1;
}

static enum value_type own_stack(const struct probe_spec *p)
{
	return probe_is_kernel(p) ? VALUE_KERNEL_STACK : VALUE_USER_STACK;
}

static enum value_type type_of(const struct probe_spec *p, int i)
{
	return types[i].type == VALUE_NONE ? own_stack(p) : types[i].type;
}

static int type_fault(struct probe_parser *p, const char *s, size_t len)
{
	const char *names[ARRAY_SIZE(types)], *near = NULL;
	autofree char *word = strndup(s, len);

	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		names[i] = types[i].name;
	if (word && len)
		near = nearest_word(word, names, ARRAY_SIZE(names));
	return probe_fault(p, s, "expected a type, %s%s%s%s", TYPES_SHOWN,
			   near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

/* [E], as many bytes as a value says */
static int parse_length(struct probe_parser *p, struct probe_arg *a)
{
	const char *at = p->s;
	enum expr_class class;
	bool fetched;
	int r = probe_expr(p, false, &a->length, &class, &fetched);

	if (r == 0 && class != CLASS_NUMBER)
		return probe_fault(p, at, "expected a number, or a value that is one");
	if (r == 0 && *p->s != ']')
		return probe_fault(p, p->s, "expected ']'");
	if (r < 0)
		return r;
	p->s++;
	a->size = PROBE_FETCH_MAX;
	return 0;
}

/* [N] behind string, ustring and buf */
static int parse_size(struct probe_parser *p, struct probe_arg *a)
{
	const char *at = p->s;
	uint64_t n;
	int r;

	if (*at != '[') {
		if (a->type == VALUE_BUFFER)
			return probe_fault(p, at, "expected the buffer's size, as buf[64]");
		return 0;
	}
	if (!is_memory(a->type))
		return probe_fault(
			p, at,
			"only string, ustring and buf have a size: expected buf[N] for an "
			"array");
	p->s++;
	if (*p->s && *p->s != ']' && *p->s != '-' && (*p->s < '0' || *p->s > '9'))
		return parse_length(p, a);
	r = probe_number(p, PROBE_FETCH_MAX, &n);
	if (r < 0)
		return r;
	if (!n)
		return probe_fault(p, at, "expected a size from 1 to %d", PROBE_FETCH_MAX);
	if (*p->s != ']')
		return probe_fault(p, p->s, "expected ']'");
	p->s++;
	a->size = (uint32_t)n;
	return 0;
}

/* bWIDTH@OFFSET/SIZE, all in bits: -ENOENT: it is something else. */
static int parse_bits(struct probe_parser *p, struct probe_arg *a)
{
	const char *at = p->s;
	uint64_t width, offset, size;
	int r;

	if (*at != 'b' || at[1] < '0' || at[1] > '9')
		return -ENOENT;
	p->s = at + 1;
	width = strtoul(p->s, (char **)&p->s, 10);
	if (*p->s != '@')
		return probe_fault(p, at,
				   "expected bits of a number as bWIDTH@OFFSET/SIZE, b3@5/32");
	p->s++;
	r = probe_number(p, 63, &offset);
	if (r == 0 && *p->s != '/')
		r = probe_fault(p, p->s, "expected the number's size in bits, as b3@5/32");
	if (r < 0)
		return r;
	p->s++;
	r = probe_number(p, 64, &size);
	if (r < 0)
		return r;
	if ((size != 8 && size != 16 && size != 32 && size != 64) || !width || width > size ||
	    offset > size - width)
		return probe_fault(p, at,
				   "expected bits that a number of 8, 16, 32 or 64 bits has, as "
				   "b3@5/32");
	a->type = VALUE_UNSIGNED;
	a->size = (uint32_t)size / 8;
	a->bits = (uint8_t)width;
	a->bit = (uint8_t)offset;
	return 0;
}

static int parse_type(struct probe_parser *p, struct probe_arg *a)
{
	size_t len = ident_len(p->s);
	int i = find_type(p->s, len), r = parse_bits(p, a);

	if (r != -ENOENT)
		return r;
	if (i < 0)
		return type_fault(p, p->s, len);
	a->type = type_of(p->spec, i);
	a->size = types[i].size;
	p->s += len;
	return parse_size(p, a);
}

/* --- what a type means for its expression --- */

static int make_stack(struct probe_parser *p, struct probe_arg *a)
{
	free(a->text);
	a->text = strdup(a->type == VALUE_USER_STACK ? "ustack" : "kstack");
	return a->text ? 0 : probe_no_memory(p);
}

/* ftrace's +8(%si):string is not the string that a pointer at %si+8 points to, but the one there.
 */
static int fetch_at_address(struct probe_parser *p, struct probe_arg *a)
{
	struct expr_item last = a->expr.v[--a->expr.n];
	int r;

	if (last.op == EXPR_UDEREF && a->type == VALUE_STRING)
		a->type = VALUE_USTRING;
	if (!last.value)
		return 0;
	r = expr_push(p, &a->expr, EXPR_NUMBER, last.value, NULL, 0);
	return r < 0 ? r : expr_push(p, &a->expr, EXPR_ADD, 0, NULL, 0);
}

/* Nothing in it but what ftrace's own fetch arguments have. */
static bool is_fetch(const struct expr *e)
{
	for (size_t i = 0; i < e->n; i++) {
		enum expr_op op = e->v[i].op;

		if (op == EXPR_NAME || op == EXPR_MEMBER || op == EXPR_REGS ||
		    (op >= EXPR_PID && op <= EXPR_ELAPSED))
			return false;
	}
	return true;
}

static bool is_variable(const struct expr *e)
{
	enum expr_op op = e->v[e->n - 1].op;

	return op == EXPR_GLOBAL || op == EXPR_THREAD || op == EXPR_MAP;
}

static int check_type(struct probe_parser *p, struct probe_arg *a, enum expr_class class,
		      bool fetched, const char *at)
{
	if (is_stack(a->type) && is_variable(&a->expr))
		return 0;
	if (is_stack(a->type)) {
		if (a->expr.n != 1 || a->expr.v[0].op != EXPR_STACK || a->expr.v[0].value != -1)
			return probe_fault(
				p, at,
				"a stack is no type of a value: expected ustack or kstack "
				"alone, or a variable that was set to one");
		return make_stack(p, a);
	}
	if (class == CLASS_TEXT) {
		if (a->type != VALUE_NONE && a->type != VALUE_STRING)
			return probe_fault(p, at,
					   "a text has no other type: expected string or "
					   "no type");
		return 0;
	}
	if (is_memory(a->type) && fetched)
		return fetch_at_address(p, a);
	if (a->type == VALUE_NONE && p->ftrace && is_fetch(&a->expr)) {
		a->type = VALUE_HEX;
		a->size = 8;
	}
	return 0;
}

/* --- the whole --- */

static int parse_name(struct probe_parser *p, struct probe_arg *a)
{
	size_t len = ident_len(p->s);

	if (!len || p->s[len] != '=' || p->s[len + 1] == '=')
		return 0;
	if (len > NAME_LEN_MAX)
		return probe_fault(p, p->s, "expected a name of at most %d characters",
				   NAME_LEN_MAX);
	a->name = strndup(p->s, len);
	p->s += len + 1;
	return a->name ? 0 : probe_no_memory(p);
}

/* The text between, with one blank for any. */
static int take_text(struct probe_parser *p, const char *from, const char *end, char **ret)
{
	char *to = *ret = malloc((size_t)(end - from) + 1);

	if (!to)
		return probe_no_memory(p);
	while (from < end) {
		if (blank_char(*from)) {
			from = skip_blanks(from);
			*to++ = ' ';
		} else {
			*to++ = *from++;
		}
	}
	*to = '\0';
	return 0;
}

/* stack, ustack and kstack are arguments of their own. Returns 1 if it was one. */
static int parse_stack_word(struct probe_parser *p, struct probe_arg *a)
{
	size_t len = ident_len(p->s);
	int i = find_type(p->s, len), r;
	char next = p->s[len];

	if (i < 0 || !is_stack(type_of(p->spec, i)) || (next && !blank_char(next) && next != ','))
		return 0;
	a->type = type_of(p->spec, i);
	p->s += len;
	r = expr_push(p, &a->expr, EXPR_STACK, -1, NULL, 0);
	if (r == 0)
		r = make_stack(p, a);
	return r < 0 ? r : 1;
}

int probe_arg(struct probe_parser *p, struct probe_arg *a)
{
	enum expr_class class;
	const char *start;
	bool fetched;
	int r;

	r = parse_name(p, a);
	start = p->s;
	if (r == 0)
		r = parse_stack_word(p, a);
	if (r != 0)
		return r < 0 ? r : 0;
	r = probe_expr(p, false, &a->expr, &class, &fetched);
	if (r == 0)
		r = take_text(p, start, p->s, &a->text);
	if (r < 0)
		return r;
	start = p->s;
	if (*p->s == ':') {
		p->s++;
		r = parse_type(p, a);
	}
	return r < 0 ? r : check_type(p, a, class, fetched, start);
}

static void write_type(FILE *f, const struct probe_spec *p, const struct probe_arg *a)
{
	if (a->type == VALUE_NONE)
		return;
	if (a->bits) {
		fprintf(f, ":b%u@%u/%u", a->bits, a->bit, a->size * 8);
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		if (types[i].type != a->type || (!is_memory(a->type) && types[i].size != a->size))
			continue;
		fprintf(f, ":%s", types[i].name);
		break;
	}
	if (a->length.n) {
		putc('[', f);
		write_expr(f, p, &a->length);
		putc(']', f);
	} else if (is_memory(a->type) && a->size) {
		fprintf(f, "[%u]", a->size);
	}
}

void write_arg(FILE *f, const struct probe_spec *p, const struct probe_arg *a)
{
	if (a->name)
		fprintf(f, "%s=", a->name);
	if (is_stack(a->type) && !is_variable(&a->expr)) {
		fputs(a->type == VALUE_USER_STACK ? "ustack" : "kstack", f);
		return;
	}
	if (a->text)
		fputs(a->text, f);
	else
		write_expr(f, p, &a->expr);
	write_type(f, p, a);
}
