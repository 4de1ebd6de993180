// SPDX-License-Identifier: GPL-2.0-or-later
/* Expressions of a probe's text: C's precedence, into postfix order. */
#include "base/near.h"
#include "probes/text/priv.h"

#define DEPTH_MAX     32
#define NO_ITEM	      SIZE_MAX
#define FLOAT_MAX_LEN 40

struct expr_parser {
	struct probe_parser *p;
	struct expr *out;
	unsigned depth;
	unsigned nested; /* in parentheses: blanks mean nothing there */
	bool condition;
	size_t fetched; /* items when the last fetch of ftrace's way ended */
	size_t bare;	/* the first argN at a return that @entry does not cover yet */
	const char *bare_at;
};

struct operand {
	enum expr_class class;
	size_t start; /* its first item */
	const char *at;
};

static const struct {
	const char *text;
	enum expr_op op;
	int level;
} operators[] = {
	{"||", EXPR_LOR, 1}, {"&&", EXPR_LAND, 2}, {"==", EXPR_EQ, 6}, {"!=", EXPR_NE, 6},
	{"<<", EXPR_SHL, 8}, {">>", EXPR_SHR, 8},  {"<=", EXPR_LE, 7}, {">=", EXPR_GE, 7},
	{"<", EXPR_LT, 7},   {">", EXPR_GT, 7},	   {"|", EXPR_OR, 3},  {"^", EXPR_XOR, 4},
	{"&", EXPR_AND, 5},  {"+", EXPR_ADD, 9},   {"-", EXPR_SUB, 9}, {"*", EXPR_MUL, 10},
	{"/", EXPR_DIV, 10}, {"%", EXPR_MOD, 10},
};

static const struct {
	const char *name;
	enum expr_op op;
	enum expr_class class;
} words[] = {
	{"retval", EXPR_RETVAL, CLASS_NUMBER},	 {"pid", EXPR_PID, CLASS_NUMBER},
	{"tid", EXPR_TID, CLASS_NUMBER},	 {"comm", EXPR_COMM, CLASS_TEXT},
	{"cgroup", EXPR_CGROUP, CLASS_NUMBER},	 {"app", EXPR_APP, CLASS_TEXT},
	{"nsecs", EXPR_NSECS, CLASS_NUMBER},	 {"cpu", EXPR_CPU, CLASS_NUMBER},
	{"elapsed", EXPR_ELAPSED, CLASS_NUMBER},
};

static int parse_binary(struct expr_parser *x, int level, struct operand *ret);
static int parse_unary(struct expr_parser *x, struct operand *ret);

static int push(struct expr_parser *x, enum expr_op op, int64_t value)
{
	return expr_push(x->p, x->out, op, value, NULL, 0);
}

static int push_text(struct expr_parser *x, enum expr_op op, const char *text, size_t len)
{
	return expr_push(x->p, x->out, op, 0, text, len);
}

/* --- what goes with what --- */

static int expect_number(struct expr_parser *x, const struct operand *o, const char *op,
			 const char *op_at)
{
	switch (o->class) {
	case CLASS_NUMBER:
		return 0;
	case CLASS_TRUTH:
		return probe_fault(x->p, op_at,
				   "a comparison cannot be an operand of %s: expected parentheses "
				   "as in (flags & 0x40) == 0x40, or && and ||",
				   op);
	default:
		return probe_fault(x->p, o->at,
				   "a text cannot be an operand of %s: expected a number, or == or "
				   "!= and another text",
				   op);
	}
}

static bool is_text(const struct operand *o)
{
	return o->class == CLASS_TEXT || o->class == CLASS_CONSTANT_TEXT;
}

/* The operand is nothing but a number that was written down. */
static bool is_literal(const struct expr_parser *x, const struct operand *o, size_t end)
{
	return end == o->start + 1 && x->out->v[o->start].op == EXPR_NUMBER;
}

static int check_equality(struct expr_parser *x, const struct operand *a, const struct operand *b,
			  const char *op, const char *at)
{
	const struct operand *other = is_text(a) ? b : a;
	bool literal = is_literal(x, other, other == a ? b->start : x->out->n);

	if (a->class == CLASS_CONSTANT_TEXT && b->class == CLASS_CONSTANT_TEXT)
		return probe_fault(x->p, a->at, "two constant texts: expected a value on one side");
	if (is_text(a) && is_text(b))
		return 0;
	if (other->class == CLASS_TRUTH || (!is_text(a) && !is_text(b))) {
		int r = expect_number(x, a, op, at);

		return r < 0 ? r : expect_number(x, b, op, at);
	}
	if (a->class == CLASS_TEXT || b->class == CLASS_TEXT)
		return probe_fault(x->p, other->at,
				   "comm and app are texts: expected one in quotes, as \"bash\"");
	if (literal)
		return probe_fault(x->p, other->at,
				   "a number is never a text: expected comm, app or an address");
	return 0; /* whether the value is a text is known to who resolves it */
}

static int check_operands(struct expr_parser *x, size_t i, const char *at, const struct operand *a,
			  const struct operand *b)
{
	enum expr_op op = operators[i].op;
	int r;

	if (operators[i].level <= 2) {
		if (is_text(a) || is_text(b))
			return probe_fault(x->p, is_text(a) ? a->at : b->at,
					   "a text is neither true nor false: expected a "
					   "comparison, as comm == \"bash\"");
		return 0;
	}
	if (op == EXPR_EQ || op == EXPR_NE)
		return check_equality(x, a, b, operators[i].text, at);
	r = expect_number(x, a, operators[i].text, at);
	return r < 0 ? r : expect_number(x, b, operators[i].text, at);
}

static int expect_return(struct expr_parser *x, const char *at, const char *what)
{
	if (probe_is_return(x->p->spec))
		return 0;
	return probe_fault(
		x->p, at,
		"%s is known only at a return: expected uretprobe:, kretprobe: or r:", what);
}

static int expect_registers(struct expr_parser *x, const char *at)
{
	if (x->p->spec->kind == PROBE_SELF)
		return probe_fault(x->p, at, "%s has neither registers nor a stack",
				   x->p->spec->symbol);
	if (x->p->spec->kind == PROBE_PROFILE)
		return probe_fault(x->p, at,
				   "a tick of the clock has neither registers nor arguments: "
				   "expected kstack, ustack, comm and the like");
	if (x->p->spec->kind != PROBE_TRACEPOINT)
		return 0;
	return probe_fault(x->p, at,
			   "a tracepoint has neither registers nor a stack: expected the name of "
			   "one of its fields");
}

/* --- operators between two operands --- */

/* The operator's index, -1: none of that level comes next; *at: where it is. */
static int next_operator(struct expr_parser *x, int level, const char **at)
{
	const char *s = skip_blanks(x->p->s);
	bool blanks = s != x->p->s;

	if (starts_with(s, "->"))
		return -1;
	for (size_t i = 0; i < ARRAY_SIZE(operators); i++) {
		const char *end = s + strlen(operators[i].text);

		if (!starts_with(s, operators[i].text))
			continue;
		/* "arg0 -8(%bp)" are two arguments */
		if (operators[i].level < level ||
		    (blanks && !x->condition && !x->nested && *end && !blank_char(*end)))
			return -1;
		*at = s;
		return (int)i;
	}
	return -1;
}

static int parse_binary(struct expr_parser *x, int level, struct operand *ret)
{
	const char *at;
	int i, r;

	r = parse_unary(x, ret);
	while (r == 0 && (i = next_operator(x, level, &at)) >= 0) {
		struct operand right;
		int this = operators[i].level;

		if (!x->condition && (this <= 2 || (this >= 6 && this <= 7)))
			return probe_fault(x->p, at,
					   "comparisons are conditions: expected them behind 'if'");
		x->p->s = skip_blanks(at + strlen(operators[i].text));
		r = parse_binary(x, this + 1, &right);
		if (r == 0)
			r = check_operands(x, (size_t)i, at, ret, &right);
		if (r == 0)
			r = push(x, operators[i].op, 0);
		ret->class = this <= 2 || (this >= 6 && this <= 7) ? CLASS_TRUTH : CLASS_NUMBER;
	}
	return r;
}

/* Behind an opening parenthesis or bracket, up to and with the closing one. */
static int parse_nested(struct expr_parser *x, char close, struct operand *ret)
{
	int r;

	x->nested++;
	x->p->s = skip_blanks(x->p->s);
	r = parse_binary(x, 1, ret);
	x->nested--;
	if (r < 0)
		return r;
	x->p->s = skip_blanks(x->p->s);
	if (*x->p->s != close)
		return probe_fault(x->p, x->p->s, "expected an operator or '%c'", close);
	x->p->s++;
	return 0;
}

/* --- primaries --- */

static int push_arg(struct expr_parser *x, const char *at, int64_t which)
{
	if (probe_is_return(x->p->spec) && x->bare == NO_ITEM) {
		x->bare = x->out->n;
		x->bare_at = at;
	}
	return push(x, EXPR_ARG, which);
}

static bool all_digits(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (s[i] < '0' || s[i] > '9')
			return false;
	return len > 0;
}

static bool is_arg_word(const char *s, size_t len)
{
	return len > 3 && starts_with(s, "arg") && all_digits(s + 3, len - 3);
}

/* retval1 ... retval8 */
static bool is_further_result(const char *s, size_t len)
{
	size_t n = strlen("retval");

	return len == n + 1 && starts_with(s, "retval") && s[n] >= '1' && s[n] <= '8';
}

static bool word_is(const char *s, size_t len, const char *word)
{
	return strlen(word) == len && strncmp(s, word, len) == 0;
}

/* Variables of a line may be called args. */
static bool has_args(const struct probe_spec *p)
{
	return p->kind != PROBE_LINE;
}

bool expr_is_builtin(const struct probe_spec *p, const char *word)
{
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (streq(words[i].name, word))
			return true;
	if (is_further_result(word, strlen(word)))
		return true;
	if (is_arg_word(word, strlen(word)) || streq(word, "if") || streq(word, "by"))
		return true;
	if (!has_args(p))
		return false;
	/* variables of scripts are global.NAME, thread.NAME and map.NAME[E] */
	for (size_t i = 0; i < VARIABLE_KINDS; i++)
		if (streq(probe_variable_word((enum probe_variable_kind)i), word))
			return true;
	return streq(word, "args");
}

/* args.NAME: a field, whatever it is called */
static int parse_field(struct expr_parser *x, const char *s)
{
	size_t len;

	s += starts_with(s, "->") ? 2 : 1;
	len = ident_len(s);
	if (!len)
		return probe_fault(x->p, s, "expected the name of a field behind args");
	x->p->s = s + len;
	return push_text(x, EXPR_NAME, s, len);
}

/* [E] behind map.NAME */
static int parse_key(struct expr_parser *x)
{
	const char *at = x->p->s;
	struct operand key = {.start = x->out->n, .at = at};
	int r;

	if (*at != '[')
		return probe_fault(x->p, at, "expected [NUMBER] behind it, as in map.since[arg0]");
	x->p->s++;
	r = parse_nested(x, ']', &key);
	return r < 0 ? r : expect_number(x, &key, "[ ]", at);
}

/* global.NAME, thread.NAME, map.NAME[E]: 1 if it was one. */
static int parse_variable(struct expr_parser *x, const char *s, size_t len)
{
	static const enum expr_op ops[] = {EXPR_GLOBAL, EXPR_THREAD, EXPR_MAP};
	struct probe_scope *scope = x->p->scope;
	const char *name = s + len + 1;
	size_t n = s[len] == '.' ? ident_len(name) : 0, kind = 0;
	int i, r = 0;

	while (kind < VARIABLE_KINDS &&
	       !word_is(s, len, probe_variable_word((enum probe_variable_kind)kind)))
		kind++;
	if (!scope || !n || kind == VARIABLE_KINDS)
		return 0;
	i = probe_variable(&scope->names[kind], scope->max, name, n);
	if (i == -E2BIG)
		return probe_fault(x->p, s, "too many variables: expected at most %zu",
				   scope->max - 1);
	if (i < 0)
		return probe_no_memory(x->p);
	x->p->s = name + n;
	if (kind == VARIABLE_MAP)
		r = parse_key(x);
	if (r == 0)
		r = expr_push(x->p, x->out, ops[kind], i, name, n);
	return r < 0 ? r : 1;
}

static int parse_word(struct expr_parser *x, struct operand *ret)
{
	const char *s = x->p->s;
	size_t len = ident_len(s);
	int r = parse_variable(x, s, len);

	if (r)
		return r < 0 ? r : 0;

	if (word_is(s, len, "if") || word_is(s, len, "by"))
		return probe_fault(x->p, s, "expected a value before '%.*s'", (int)len, s);
	if (has_args(x->p->spec) && word_is(s, len, "args")) {
		if (s[len] != '.' && !starts_with(s + len, "->"))
			return probe_fault(x->p, s, "expected a field, as args.NAME");
		return parse_field(x, s + len);
	}
	x->p->s = s + len;
	if (is_further_result(s, len)) {
		if (expect_return(x, s, "retval") < 0)
			return -EINVAL;
		return push(x, EXPR_RETVAL, s[len - 1] - '0');
	}
	if (is_arg_word(s, len)) {
		if (len != 4)
			return probe_fault(x->p, s, "expected arg0 to arg9");
		return push_arg(x, s, s[3] - '0');
	}
	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		if (!word_is(s, len, words[i].name))
			continue;
		if (words[i].op == EXPR_RETVAL && expect_return(x, s, "retval") < 0)
			return -EINVAL;
		ret->class = words[i].class;
		return push(x, words[i].op, 0);
	}
	if (word_is(s, len, "true") || word_is(s, len, "false"))
		return push(x, EXPR_NUMBER, word_is(s, len, "true"));
	return push_text(x, EXPR_NAME, s, len);
}

static int parse_register(struct expr_parser *x)
{
	const char *s = x->p->s + 1;
	size_t len = 0;

	while ((s[len] >= 'a' && s[len] <= 'z') || (s[len] >= '0' && s[len] <= '9'))
		len++;
	if (!len || len > 7 || all_digits(s, 1) || ident_char(s[len]))
		return probe_fault(x->p, s,
				   "expected a register behind %%, as %%ax, %%rdi or %%x0");
	if (expect_registers(x, s - 1) < 0)
		return -EINVAL;
	x->p->s = s + len;
	return push_text(x, EXPR_REG, s, len);
}

static int dollar_fault(struct expr_parser *x, const char *s, size_t len)
{
	static const char *const names[] = {"stack", "stack0", "retval", "arg1",
					    "comm",  "regs",   "task"};
	autofree char *word = strndup(s, len);
	const char *near = word ? nearest_word(word, names, ARRAY_SIZE(names)) : NULL;

	return probe_fault(x->p, s - 1,
			   "expected $stack, $stackN, $regs, $retval, $argN, $comm or $task%s%s%s",
			   near ? "; did you mean '$" : "", near ? near : "", near ? "'?" : "");
}

/* $stackN and $argN: the number behind the name. */
static int dollar_number(struct expr_parser *x, const char *s, size_t len, const char *name,
			 uint64_t max, uint64_t *ret)
{
	size_t n = strlen(name);

	if (len <= n || strncmp(s, name, n) != 0 || !all_digits(s + n, len - n))
		return -ENOENT;
	x->p->s = s + n;
	return probe_number(x->p, max, ret);
}

static int parse_dollar_arg(struct expr_parser *x, const char *s, uint64_t which)
{
	int r;

	if (!which)
		return probe_fault(
			x->p, s - 1,
			"the arguments of ftrace count from 1: expected $arg1 to $arg10");
	r = push(x, EXPR_ARG, (int64_t)which - 1);
	if (r == 0 && probe_is_return(x->p->spec))
		r = push(x, EXPR_ENTRY, 0);
	return r;
}

static int parse_dollar(struct expr_parser *x, struct operand *ret)
{
	const char *s = x->p->s + 1;
	size_t len = ident_len(s);
	uint64_t n;
	int r;

	r = dollar_number(x, s, len, "stack", 2047, &n);
	if (r == 0)
		r = expect_registers(x, s - 1);
	if (r != -ENOENT)
		return r < 0 ? r : push(x, EXPR_STACK, (int64_t)n);
	r = dollar_number(x, s, len, "arg", 10, &n);
	if (r != -ENOENT)
		return r < 0 ? r : parse_dollar_arg(x, s, n);
	x->p->s = s + len;
	if (word_is(s, len, "stack") || word_is(s, len, "regs")) {
		r = expect_registers(x, s - 1);
		return r < 0 ? r : *s == 's' ? push(x, EXPR_STACK, -1) : push(x, EXPR_REGS, 0);
	}
	if (word_is(s, len, "task"))
		return push(x, EXPR_TASK, 0);
	if (word_is(s, len, "retval")) {
		r = expect_return(x, s - 1, "$retval");
		return r < 0 ? r : push(x, EXPR_RETVAL, 0);
	}
	if (!word_is(s, len, "comm") && !word_is(s, len, "COMM"))
		return dollar_fault(x, s, len);
	ret->class = CLASS_TEXT;
	return push(x, EXPR_COMM, 0);
}

static int push_fetch(struct expr_parser *x, enum expr_op op, int64_t value)
{
	int r = push(x, op, value);

	x->fetched = x->out->n;
	return r;
}

/* The name of a symbol as far as it goes; those of the compiler have dots and dollars. */
static size_t symbol_len(const char *s)
{
	size_t n = 0;

	if (!ident_start(*s))
		return 0;
	while (ident_char(s[n]) || s[n] == '.' || s[n] == '$')
		n++;
	return n;
}

static int parse_symbol(struct expr_parser *x, const char *s)
{
	size_t len = symbol_len(s);
	bool minus = s[len] == '-';
	uint64_t offset = 0;
	int r;

	x->p->s = s + len;
	if ((minus || s[len] == '+') && all_digits(s + len + 1, 1)) {
		x->p->s++;
		r = probe_number(x->p, INT64_MAX, &offset);
		if (r < 0)
			return r;
	}
	return expr_push(x->p, x->out, EXPR_SYMBOL, minus ? -(int64_t)offset : (int64_t)offset,
			 len ? s : NULL, len);
}

/* @ADDR, @SYM+OFF, @+OFF: what is in memory there. */
static int parse_memory(struct expr_parser *x)
{
	const char *s = x->p->s + 1;
	uint64_t address;
	int r;

	if (all_digits(s, 1)) {
		x->p->s = s;
		r = probe_number(x->p, UINT64_MAX, &address);
		if (r == 0)
			r = push(x, EXPR_NUMBER, (int64_t)address);
	} else if (ident_start(*s) || (*s == '+' && all_digits(s + 1, 1))) {
		if (*s == '+' && probe_is_kernel(x->p->spec))
			return probe_fault(x->p, s - 1,
					   "an offset in a file, but the probe is in the kernel: "
					   "expected @SYMBOL or @ADDRESS");
		r = parse_symbol(x, s);
	} else {
		return probe_fault(x->p, s - 1, "expected @ADDRESS, @SYMBOL+OFFSET or @+OFFSET");
	}
	return r < 0 ? r : push_fetch(x, EXPR_DEREF, 0);
}

static int parse_float(struct expr_parser *x)
{
	const char *at = x->p->s;
	size_t len = float_len(at);
	int64_t bits;
	double v;

	if (!x->condition)
		return probe_fault(x->p, at,
				   "a number with a point is only compared: expected it behind "
				   "'if'");
	if (ident_char(at[len]) || at[len] == '.' || len > FLOAT_MAX_LEN)
		return probe_fault(x->p, at, "expected a number, as 42, 0x2a or 1.5");
	v = strtod(at, NULL);
	memcpy(&bits, &v, sizeof(bits));
	x->p->s = at + len;
	return expr_push(x->p, x->out, EXPR_FLOAT, bits, at, len);
}

/* +8(E), -8(E), +u8(E); or a negative number */
static int parse_signed(struct expr_parser *x)
{
	const char *at = x->p->s;
	bool minus = *at == '-', user = at[1] == 'u';
	struct operand inner;
	uint64_t n;
	int r;

	if (minus && float_len(at))
		return parse_float(x);
	x->p->s = at + 1 + user;
	if (!all_digits(x->p->s, 1))
		return probe_fault(x->p, at,
				   "expected a number behind the sign, as -1 or +8(%%di)");
	r = probe_number(x->p, minus ? 1ull << 63 : INT64_MAX, &n);
	if (r < 0)
		return r;
	if (*x->p->s != '(') {
		if (!minus || user)
			return probe_fault(
				x->p, x->p->s,
				"expected what is fetched in parentheses, as in %.*s(%%di)",
				(int)(x->p->s - at), at);
		return push(x, EXPR_NUMBER, (int64_t)(0 - n));
	}
	x->p->s++;
	r = parse_nested(x, ')', &inner);
	if (r == 0)
		r = expect_number(x, &inner, "a fetch", at);
	return r < 0 ? r
		     : push_fetch(x, user ? EXPR_UDEREF : EXPR_DEREF, (int64_t)(minus ? 0 - n : n));
}

static int parse_constant(struct expr_parser *x)
{
	bool minus;
	uint64_t n;
	int r;

	x->p->s += *x->p->s == '\\';
	if (float_len(x->p->s))
		return parse_float(x);
	minus = *x->p->s == '-';
	x->p->s += minus;
	r = probe_number(x->p, minus ? 1ull << 63 : UINT64_MAX, &n);
	return r < 0 ? r : push(x, EXPR_NUMBER, (int64_t)(minus ? 0 - n : n));
}

static int parse_text(struct expr_parser *x, struct operand *ret)
{
	autofree char *text = NULL;
	int r;

	if (!x->condition && !x->p->scope)
		return probe_fault(x->p, x->p->s,
				   "texts are only compared: expected them behind 'if'");
	r = probe_quoted(x->p, &text);
	if (r < 0)
		return r;
	ret->class = CLASS_CONSTANT_TEXT;
	return push_text(x, EXPR_STRING, text, strlen(text));
}

static int parse_primary(struct expr_parser *x, struct operand *ret)
{
	char c = *x->p->s;

	switch (c) {
	case '(':
		x->p->s++;
		return parse_nested(x, ')', ret);
	case '%':
		return parse_register(x);
	case '$':
		return parse_dollar(x, ret);
	case '@':
		return parse_memory(x);
	case '+':
	case '-':
		return parse_signed(x);
	case '"':
		return parse_text(x, ret);
	case '\\':
		return parse_constant(x);
	default:
		if (c >= '0' && c <= '9')
			return parse_constant(x);
		if (ident_start(c))
			return parse_word(x, ret);
		return probe_fault(x->p, x->p->s,
				   "expected a value, as arg0, retval, a name, a number, %%ax, "
				   "+8(%%di) or *arg0");
	}
}

/* --- what stands behind or before an operand --- */

static int parse_entry(struct expr_parser *x, const struct operand *o)
{
	const char *at = x->p->s;

	if (!word_is(at + 1, ident_len(at + 1), "entry"))
		return probe_fault(x->p, at, "expected @entry");
	if (expect_return(x, at, "the value at the entry") < 0)
		return -EINVAL;
	for (size_t i = o->start; i < x->out->n; i++)
		if (x->out->v[i].op == EXPR_RETVAL || x->out->v[i].op == EXPR_ENTRY)
			return probe_fault(x->p, at,
					   "expected @entry once, and not of the return value");
	if (x->bare != NO_ITEM && x->bare >= o->start)
		x->bare = NO_ITEM;
	x->p->s = at + strlen("@entry");
	return push(x, EXPR_ENTRY, 0);
}

static int parse_member(struct expr_parser *x, const struct operand *o)
{
	const char *at = x->p->s, *s = at + (*at == '.' ? 1 : 2);
	size_t len = ident_len(s);

	if (!len)
		return probe_fault(x->p, s, "expected the name of a member");
	if (expect_number(x, o, *at == '.' ? "." : "->", at) < 0)
		return -EINVAL;
	x->p->s = s + len;
	return push_text(x, EXPR_MEMBER, s, len);
}

static int parse_index(struct expr_parser *x, const struct operand *o)
{
	const char *at = x->p->s++;
	struct operand index;
	int r = parse_nested(x, ']', &index);

	if (r == 0)
		r = expect_number(x, o, "[ ]", at);
	if (r == 0)
		r = expect_number(x, &index, "[ ]", at);
	return r < 0 ? r : push(x, EXPR_INDEX, 0);
}

static int parse_postfix(struct expr_parser *x, struct operand *ret)
{
	int r = parse_primary(x, ret);

	while (r == 0) {
		const char *s = x->p->s;

		if (*s == '.' || starts_with(s, "->"))
			r = parse_member(x, ret);
		else if (*s == '[')
			r = parse_index(x, ret);
		else if (*s == '@')
			r = parse_entry(x, ret);
		else
			break;
	}
	return r;
}

/* * and ! */
static int parse_prefix(struct expr_parser *x, struct operand *ret)
{
	const char *at = x->p->s++;
	int r;

	if (*at == '*' && !x->condition && !x->nested && blank_char(*x->p->s))
		return probe_fault(x->p, at,
				   "expected a value before *, or, of what is at an address, the * "
				   "right before it");
	if (*at == '!' && !x->condition)
		return probe_fault(x->p, at, "a negation is a condition: expected it behind 'if'");
	r = parse_unary(x, ret);
	if (r < 0)
		return r;
	if (*at == '*') {
		r = expect_number(x, ret, "*", at);
		return r < 0 ? r : push(x, EXPR_DEREF, 0);
	}
	if (is_text(ret))
		return probe_fault(x->p, ret->at,
				   "a text is neither true nor false: expected a "
				   "comparison, as comm != \"bash\"");
	ret->class = CLASS_TRUTH;
	return push(x, EXPR_NOT, 0);
}

static int parse_unary(struct expr_parser *x, struct operand *ret)
{
	int r;

	if (x->condition || x->nested)
		x->p->s = skip_blanks(x->p->s);
	if (x->depth == DEPTH_MAX)
		return probe_fault(x->p, x->p->s,
				   "this is nested too deeply: expected at most %d levels",
				   DEPTH_MAX);
	*ret = (struct operand){.class = CLASS_NUMBER, .start = x->out->n, .at = x->p->s};
	x->depth++;
	if (*x->p->s == '*' || *x->p->s == '!')
		r = parse_prefix(x, ret);
	else
		r = parse_postfix(x, ret);
	x->depth--;
	return r;
}

int probe_expr(struct probe_parser *p, bool condition, struct expr *ret, enum expr_class *class,
	       bool *fetched)
{
	struct expr_parser x = {
		.p = p, .out = ret, .condition = condition, .fetched = NO_ITEM, .bare = NO_ITEM};
	struct operand all;
	int r = parse_binary(&x, 1, &all);

	if (r < 0)
		return r;
	if (x.bare != NO_ITEM)
		return probe_fault(p, x.bare_at,
				   "the registers of arguments are used anew by the time of the "
				   "return: expected arg%lld@entry",
				   (long long)ret->v[x.bare].value);
	if (condition && is_text(&all))
		return probe_fault(p, all.at,
				   "a text is neither true nor false: expected a "
				   "comparison, as comm == \"bash\"");
	*class = all.class;
	*fetched = x.fetched == ret->n;
	return 0;
}
