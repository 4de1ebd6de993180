// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Operands of USDT probes, as the compiler gave them to the assembler: "N@OPERAND", where N is the
 * size, negative if it is signed, with an f behind if it is a floating-point number.
 */
#include <ctype.h>

#include "probes/elf/usdt.h"

struct cursor {
	const char *at;
};

static bool take(struct cursor *c, char want)
{
	if (*c->at != want)
		return false;
	c->at++;
	return true;
}

static void skip_spaces(struct cursor *c)
{
	while (*c->at == ' ')
		c->at++;
}

static bool is_word(char ch)
{
	return isalnum((unsigned char)ch) || ch == '_' || ch == '.' || ch == '$';
}

/* Letters, digits, '_', '.': a register or a symbol. */
static bool take_word(struct cursor *c, char *to, size_t max)
{
	size_t n = 0;

	while (is_word(c->at[n]))
		n++;
	if (!n || n >= max)
		return false;
	memcpy(to, c->at, n);
	to[n] = 0;
	c->at += n;
	return true;
}

static bool take_number(struct cursor *c, int64_t *ret)
{
	bool negative = take(c, '-');
	unsigned long long v;
	char *end;

	if (!isdigit((unsigned char)*c->at))
		return false;
	errno = 0;
	v = strtoull(c->at, &end, 0);
	if (errno)
		return false;
	c->at = end;
	*ret = (int64_t)(negative ? 0 - v : v);
	return true;
}

/* The 64-bit register that holds an x86 register: "eax" is in "rax", "r8d" in "r8". */
static bool x86_register(const char *name, struct usdt_arg *a, char *to)
{
	static const char *const letters = "abcd";
	static const char *const pairs[] = {"si", "di", "bp", "sp", "ip"};
	const char *p = name + (*name == 'r' || *name == 'e');
	size_t len = strlen(p);
	const char *l = *p ? strchr(letters, *p) : NULL;

	if (l && ((len == 2 && p[1] == 'x') || (len == 2 && p == name && strchr("lh", p[1])))) {
		snprintf(to, 8, "r%cx", *p);
		a->shift = p[1] == 'h' ? 8 : 0;
		return true;
	}
	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++)
		if (!strncmp(p, pairs[i], 2) && (len == 2 || (len == 3 && p[2] == 'l'))) {
			snprintf(to, 8, "r%s", pairs[i]);
			return true;
		}
	if (*name == 'r' && isdigit((unsigned char)name[1])) {
		char *end;
		unsigned long n = strtoul(name + 1, &end, 10);

		if (n >= 8 && n <= 15 && (!*end || (strchr("dwb", *end) && !end[1]))) {
			snprintf(to, 8, "r%lu", n);
			return true;
		}
	}
	if ((starts_with(name, "xmm") || starts_with(name, "ymm") || starts_with(name, "zmm")) &&
	    strlen(name) <= 5) {
		snprintf(to, 8, "%.7s", name);
		a->is_float = true;
		return true;
	}
	return false;
}

/* x0 to x30, sp; the halves w0 to w30. */
static bool arm_register(const char *name, struct usdt_arg *a, char *to)
{
	char *end;
	unsigned long n;

	if (streq(name, "sp") || streq(name, "wsp")) {
		snprintf(to, 8, "sp");
		return true;
	}
	if (!*name || !strchr("xwdsqvhb", *name) || !isdigit((unsigned char)name[1]))
		return false;
	n = strtoul(name + 1, &end, 10);
	if (*end || n > 31)
		return false;
	a->is_float = *name != 'x' && *name != 'w';
	if (!a->is_float && n > 30)
		return false;
	snprintf(to, 8, "%c%lu", a->is_float ? *name : 'x', n);
	return true;
}

/* %rax: a percent sign and a register of x86. */
static bool take_x86_register(struct cursor *c, struct usdt_arg *a, char *to)
{
	char name[16];

	return take(c, '%') && take_word(c, name, sizeof(name)) && x86_register(name, a, to);
}

/* DISPLACEMENT: numbers and at most one symbol, added: "-20", "sym", "sym+8", "8+sym". */
static bool take_displacement(struct cursor *c, struct usdt_arg *a)
{
	bool first = true;
	int64_t n;

	while (*c->at && *c->at != '(' && *c->at != ' ') {
		if (!first && !take(c, '+') && *c->at != '-')
			return false;
		first = false;
		if (*c->at == '-' || isdigit((unsigned char)*c->at)) {
			if (!take_number(c, &n))
				return false;
			a->value = (int64_t)((uint64_t)a->value + (uint64_t)n);
			continue;
		}
		if (*a->symbol || !take_word(c, a->symbol, sizeof(a->symbol)))
			return false;
		/* sym@GOTPCREL(%rip): what is there is a pointer to the value */
		if (take(c, '@')) {
			char how[16];

			a->unfetchable = true;
			if (!take_word(c, how, sizeof(how)))
				return false;
		}
	}
	return true;
}

/* DISPLACEMENT(BASE,INDEX,SCALE) */
static bool take_x86_memory(struct cursor *c, struct usdt_arg *a)
{
	const char *start = c->at;
	int64_t scale = 1;

	a->kind = USDT_MEMORY;
	if (!take_displacement(c, a) || (c->at == start && *c->at != '('))
		return false;
	if (!take(c, '('))
		return !*c->at || *c->at == ' ';
	if (*c->at == '%' && !take_x86_register(c, a, a->reg))
		return false;
	if (take(c, ',')) {
		skip_spaces(c);
		if (!take_x86_register(c, a, a->index))
			return false;
		if (take(c, ',')) {
			skip_spaces(c);
			if (!take_number(c, &scale) ||
			    (scale != 1 && scale != 2 && scale != 4 && scale != 8))
				return false;
		}
		a->scale = (uint8_t)scale;
	}
	/* an address is in a whole register */
	return (*a->reg || *a->index) && !a->is_float && !a->shift && take(c, ')');
}

/* %fs:8(%rax), %fs:sym@tpoff: of the thread, whose base is in no register of ours. */
static bool take_segment(struct cursor *c, struct usdt_arg *a)
{
	if (!starts_with(c->at, "%fs:") && !starts_with(c->at, "%gs:"))
		return false;
	a->kind = USDT_MEMORY;
	a->unfetchable = true;
	c->at += strcspn(c->at, " ");
	return true;
}

/* [BASE], [BASE, 16], [BASE, #16], [BASE, INDEX], [BASE, INDEX, lsl 3] */
static bool take_arm_memory(struct cursor *c, struct usdt_arg *a)
{
	char word[64];
	int64_t n;

	a->kind = USDT_MEMORY;
	if (!take(c, '[') || !take_word(c, word, sizeof(word)) || !arm_register(word, a, a->reg))
		return false;
	skip_spaces(c);
	if (take(c, ']'))
		return true;
	if (!take(c, ','))
		return false;
	skip_spaces(c);
	if (take(c, '#') || *c->at == '-' || isdigit((unsigned char)*c->at)) {
		if (*c->at == ':') { /* #:lo12:sym */
			a->unfetchable = true;
			c->at += strcspn(c->at, "]");
		} else if (!take_number(c, &a->value)) {
			return false;
		}
		return take(c, ']');
	}
	if (!take_word(c, word, sizeof(word)) || !arm_register(word, a, a->index))
		return false;
	a->unfetchable |= *word == 'w';
	a->scale = 1;
	skip_spaces(c);
	if (!take(c, ','))
		return take(c, ']');
	skip_spaces(c);
	if (!take_word(c, word, sizeof(word)))
		return false;
	skip_spaces(c);
	take(c, '#');
	n = 0;
	if (*c->at != ']' && (!take_number(c, &n) || n < 0 || n > 3))
		return false;
	if (streq(word, "lsl"))
		a->scale = (uint8_t)(1 << n);
	else
		a->unfetchable = true; /* uxtw, sxtw: of half of a register */
	return take(c, ']');
}

static bool at_end(const struct cursor *c)
{
	return !*c->at || *c->at == ' ';
}

/* A word alone: a register of arm64, else a number, or memory at a symbol. */
static bool take_bare(struct cursor *c, struct usdt_arg *a)
{
	struct cursor start = *c;
	char word[64];

	if (take_word(c, word, sizeof(word)) && at_end(c)) {
		a->kind = USDT_REG;
		if (streq(word, "xzr") || streq(word, "wzr")) {
			a->kind = USDT_CONST;
			return true;
		}
		if (arm_register(word, a, a->reg))
			return true;
	}
	*c = start;
	if (take_number(c, &a->value) && at_end(c)) {
		a->kind = USDT_CONST;
		return true;
	}
	*c = start;
	a->value = 0;
	return take_x86_memory(c, a);
}

static bool take_operand(struct cursor *c, struct usdt_arg *a)
{
	switch (*c->at) {
	case '$':
		c->at++;
		a->kind = USDT_CONST;
		if (take_number(c, &a->value))
			return at_end(c);
		/* $sym: an address */
		a->unfetchable = true;
		return take_displacement(c, a) && *a->symbol && at_end(c);
	case '#':
		c->at++;
		a->kind = USDT_CONST;
		return take_number(c, &a->value);
	case '[':
		return take_arm_memory(c, a);
	case '%':
		if (take_segment(c, a))
			return true;
		a->kind = USDT_REG;
		return take_x86_register(c, a, a->reg);
	default:
		return take_bare(c, a);
	}
}

static bool take_size(struct cursor *c, struct usdt_arg *a)
{
	struct cursor start = *c;
	int64_t size;

	a->size = 8;
	if (!take_number(c, &size) || (*c->at != '@' && *c->at != 'f')) {
		*c = start; /* without a size it is a word: "%rdi" */
		return true;
	}
	a->is_float = take(c, 'f');
	a->is_signed = size < 0;
	size = size < 0 ? -(size + 1) + 1 : size;
	if (size == 1 || size == 2 || size == 4 || size == 8)
		a->size = (uint8_t)size;
	else if (size >= 3 && size <= 64)
		a->unfetchable = true;
	else
		return false;
	return take(c, '@');
}

static bool take_arg(struct cursor *c, struct usdt_arg *a)
{
	bool is_float;

	*a = (struct usdt_arg){0};
	if (!take_size(c, a))
		return false;
	is_float = a->is_float;
	a->is_float = false; /* of its registers */
	if (!take_operand(c, a) || !at_end(c))
		return false;
	a->unfetchable |= a->is_float || (is_float && a->size < 4);
	a->is_float |= is_float;
	return true;
}

int usdt_args_parse(const char *text, struct usdt *u, struct error *e)
{
	struct cursor c = {.at = text};
	size_t n = 0;

	u->n_args = 0;
	for (skip_spaces(&c); *c.at; skip_spaces(&c)) {
		const char *start = c.at;

		if (n == USDT_ARGS_MAX)
			return error_set(e, -E2BIG,
					 "a USDT probe with more than %d arguments cannot be used",
					 USDT_ARGS_MAX);
		if (!take_arg(&c, &u->args[n++]))
			return error_set(
				e, -EINVAL,
				"argument %zu of the USDT probe, '%.*s', is of no known form", n,
				(int)(strcspn(start, " ") < 100 ? strcspn(start, " ") : 100),
				start);
	}
	u->n_args = n;
	return 0;
}
