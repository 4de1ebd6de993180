// SPDX-License-Identifier: GPL-2.0-or-later
/* The small pieces that a probe's text is made of, and its errors. */
#include <stdarg.h>

#include "probes/text/priv.h"

#define WORD_SHOWN 40

bool blank_char(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

const char *skip_blanks(const char *s)
{
	while (blank_char(*s))
		s++;
	return s;
}

bool ident_start(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool ident_char(char c)
{
	return ident_start(c) || (c >= '0' && c <= '9');
}

size_t ident_len(const char *s)
{
	size_t n = 0;

	if (!ident_start(*s))
		return 0;
	while (ident_char(s[n]))
		n++;
	return n;
}

/* --- errors --- */

/* What a person would call the word at s. */
static size_t shown_len(const char *s)
{
	size_t n = 0;

	if (ident_char(*s)) {
		while (ident_char(s[n]))
			n++;
	} else {
		n = (size_t)(word_end(s) - s);
	}
	if (n <= WORD_SHOWN)
		return n;
	/* not through the middle of a UTF-8 sequence */
	for (n = WORD_SHOWN; n > WORD_SHOWN - 3 && ((unsigned char)s[n] & 0xc0) == 0x80;)
		n--;
	return n;
}

int probe_fault(struct probe_parser *p, const char *at, const char *fmt, ...)
{
	char message[400], word[WORD_SHOWN + 1];
	size_t n = shown_len(at);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(message, sizeof(message), fmt, ap);
	va_end(ap);
	if (p->scope)
		p->scope->fault = (size_t)(at - p->text);
	for (size_t i = 0; i < n; i++)
		word[i] = (unsigned char)at[i] < ' ' || at[i] == 127 ? '?' : at[i];
	word[n] = '\0';
	if (p->scope)
		return error_set(p->error, -EINVAL, n ? "'%s': %s" : "%s%s", word, message);
	if (n)
		return error_set(p->error, -EINVAL, "in the probe at column %zu, '%s': %s",
				 (size_t)(at - p->text) + 1, word, message);
	return error_set(p->error, -EINVAL, "in the probe at column %zu, %s: %s",
			 (size_t)(at - p->text) + 1, *at ? "a blank" : "its end", message);
}

int probe_no_memory(struct probe_parser *p)
{
	return error_set(p->error, -ENOMEM, "there is no memory left to read the probe");
}

/* --- words and colons --- */

/* Behind the quotes that begin at s; its end when they are not closed. */
static const char *quotes_end(const char *s)
{
	for (s++; *s && *s != '"'; s++)
		if (*s == '\\' && s[1])
			s++;
	return *s ? s + 1 : s;
}

const char *word_end(const char *s)
{
	while (*s && !blank_char(*s))
		s = *s == '"' ? quotes_end(s) : s + 1;
	return s;
}

const char *find_colon(const char *s, const char *end, bool last)
{
	const char *found = NULL;

	while (s < end) {
		if (*s == ':') {
			found = s;
			if (!last)
				break;
		}
		s = *s == '"' ? quotes_end(s) : s + 1;
	}
	return found;
}

/* --- numbers --- */

static int digit_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : 16;
}

int probe_number(struct probe_parser *p, uint64_t max, uint64_t *ret)
{
	bool hex = p->s[0] == '0' && (p->s[1] == 'x' || p->s[1] == 'X');
	const char *start = p->s, *s = hex ? start + 2 : start;
	int base = hex ? 16 : 10;
	uint64_t v = 0;
	size_t n;

	for (n = 0; digit_value(s[n]) < base; n++) {
		uint64_t digit = (uint64_t)digit_value(s[n]);

		if (digit > max || v > (max - digit) / (uint64_t)base)
			return probe_fault(p, start,
					   "the number is too large: expected at most %llu",
					   (unsigned long long)max);
		v = v * (uint64_t)base + digit;
	}
	if (!n || ident_char(s[n]))
		return probe_fault(p, start, "expected a number, as 42 or 0x2a");
	if (!hex && n > 1 && *s == '0')
		return probe_fault(
			p, start,
			"a number with a zero before it could be octal: expected decimal "
			"without one, or 0x");
	p->s = s + n;
	*ret = v;
	return 0;
}

static size_t digits_len(const char *s)
{
	size_t n = 0;

	while (s[n] >= '0' && s[n] <= '9')
		n++;
	return n;
}

size_t float_len(const char *s)
{
	size_t n = *s == '-', whole = digits_len(s + n), part;

	n += whole;
	if (!whole || s[n] != '.')
		return 0;
	part = digits_len(s + n + 1);
	if (!part)
		return 0;
	n += 1 + part;
	if (s[n] == 'e' || s[n] == 'E') {
		size_t sign = s[n + 1] == '-' || s[n + 1] == '+';
		size_t power = digits_len(s + n + 1 + sign);

		n += power ? 1 + sign + power : 0;
	}
	return n;
}

/* --- quotes --- */

/* Reads what is behind a backslash; returns how many characters that were, 0: it is none of ours.
 */
static size_t unescape(const char *s, char *ret)
{
	static const char from[] = "\"\\ntr", to[] = "\"\\\n\t\r";
	const char *found = *s ? strchr(from, *s) : NULL;
	int value;

	if (found) {
		*ret = to[found - from];
		return 1;
	}
	if (*s != 'x' || digit_value(s[1]) > 15 || digit_value(s[2]) > 15)
		return 0;
	value = digit_value(s[1]) << 4 | digit_value(s[2]);
	*ret = (char)value;
	return value ? 3 : 0;
}

int probe_quoted(struct probe_parser *p, char **ret)
{
	const char *start = p->s, *end = quotes_end(start), *s = start + 1;
	autofree char *text = malloc((size_t)(end - start) + 1);
	size_t n = 0;

	if (!text)
		return probe_no_memory(p);
	while (*s && *s != '"') {
		size_t used = 0;

		if (*s != '\\') {
			text[n++] = *s++;
			continue;
		}
		used = unescape(s + 1, &text[n++]);
		if (!used)
			return probe_fault(p, s,
					   "expected \\\", \\\\, \\n, \\t, \\r or \\xHH in a text");
		s += 1 + used;
	}
	if (!*s)
		return probe_fault(p, start, "the quote is not closed: expected another \"");
	text[n] = '\0';
	p->s = s + 1;
	*ret = take_ptr(&text);
	return 0;
}

void write_quoted(FILE *f, const char *s)
{
	putc('"', f);
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			fprintf(f, "\\%c", *s);
		else if ((unsigned char)*s < ' ' || *s == 127)
			fprintf(f, "\\x%02x", (unsigned char)*s);
		else
			putc(*s, f);
	}
	putc('"', f);
}
