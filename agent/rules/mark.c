// SPDX-License-Identifier: GPL-2.0-or-later
/* Marks as text, as `ip rule` has them: "0x10", "16" or "0x10/0xff". */
#include "rules/field.h"
#include "rules/priv.h"

#include <ctype.h>

#define HEX_DIGITS 8

int mark_parse(const char *s, uint32_t *ret)
{
	uint64_t n = 0;

	if (s[0] != '0' || s[1] != 'x') {
		if (value_number(s, UINT32_MAX, &n) < 0)
			return -EINVAL;
		*ret = (uint32_t)n;
		return 0;
	}
	s += 2;
	if (!*s || strlen(s) > HEX_DIGITS)
		return -EINVAL;
	for (; *s; s++) {
		char c = (char)tolower((unsigned char)*s);

		if (!isxdigit((unsigned char)c))
			return -EINVAL;
		n = n * 16 + (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
	}
	*ret = (uint32_t)n;
	return 0;
}

int mark_add(const struct rule_field *row, struct condition *c, const char *item,
	     struct rule_fault *f)
{
	autofree char *copy = strdup(item);
	char *mask = copy ? strchr(copy, '/') : NULL;
	struct rule_mark m = {.mask = UINT32_MAX};

	(void)row;
	if (!copy)
		return -ENOMEM;
	if (mask)
		*mask++ = '\0';
	if (mark_parse(copy, &m.value) < 0 || (mask && mark_parse(mask, &m.mask) < 0))
		return -EINVAL;
	if (m.value & ~m.mask)
		return fault_set(f, NULL, "a mark within its mask: 0x%x/0x%x", m.value & m.mask,
				 m.mask);
	if (array_grow(&c->items, c->n, sizeof(m)) < 0)
		return -ENOMEM;
	c->marks[c->n++] = m;
	return 0;
}

void mark_write(struct field_text *to, const struct rule_field *row, const void *item)
{
	const struct rule_mark *m = item;

	(void)row;
	field_separate(to);
	fprintf(to->f, "0x%x", m->value);
	if (m->mask != UINT32_MAX)
		fprintf(to->f, "/0x%x", m->mask);
}
