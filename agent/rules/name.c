// SPDX-License-Identifier: GPL-2.0-or-later
/* Names that packets carry, as text: "example.org", which is also what ends with ".example.org". */
#include "rules/field.h"
#include "rules/priv.h"

#include <ctype.h>

#define LABEL_MAX 63

static bool is_label_char(char c)
{
	return isalnum((unsigned char)c) || c == '-' || c == '_';
}

/* Whether it is labels with dots between, or "." alone. */
static bool is_name(const char *s)
{
	size_t label = 0;

	if (streq(s, "."))
		return true;
	for (; *s; s++) {
		if (*s == '.' && !label)
			return false;
		if (*s != '.' && (!is_label_char(*s) || label == LABEL_MAX))
			return false;
		label = *s == '.' ? 0 : label + 1;
	}
	return label;
}

static int bad_name(const char *item, struct rule_fault *f)
{
	for (const char *p = item; *p; p++)
		if (*p & '\x80')
			return fault_set(f, NULL,
					 "the name's form in packets, which begins with xn--");
	if (!strncmp(item, "*.", 2) && (!item[2] || is_name(item + 2)))
		return fault_set(f, NULL, "%.*s, which stands for all names under it, too",
				 AX_NAME_MAX, item[2] ? item + 2 : ".");
	return -EINVAL;
}

static int add(enum ax_name_kind kind, struct condition *c, const char *item, struct rule_fault *f)
{
	struct rule_name name = {.kind = (uint8_t)kind};
	size_t len = strlen(item);

	if (len > 1 && item[len - 1] == '.' && item[len - 2] != '.')
		len--;
	if (len > AX_NAME_MAX)
		return fault_set(f, NULL, "a name of up to %d characters", AX_NAME_MAX);
	for (size_t i = 0; i < len; i++)
		name.text[i] = (char)tolower((unsigned char)item[i]);
	if (!is_name(name.text))
		return bad_name(item, f);
	if (array_grow(&c->items, c->n, sizeof(name)) < 0)
		return -ENOMEM;
	c->names[c->n++] = name;
	return 0;
}

int dns_name_add(const struct rule_field *row, struct condition *c, const char *item,
		 struct rule_fault *f)
{
	(void)row;
	return add(AX_NAME_DNS, c, item, f);
}

int tls_sni_add(const struct rule_field *row, struct condition *c, const char *item,
		struct rule_fault *f)
{
	(void)row;
	return add(AX_NAME_TLS, c, item, f);
}

int http_host_add(const struct rule_field *row, struct condition *c, const char *item,
		  struct rule_fault *f)
{
	(void)row;
	return add(AX_NAME_HTTP, c, item, f);
}

void name_write(struct field_text *to, const struct rule_field *row, const void *item)
{
	(void)row;
	field_separate(to);
	fputs(((const struct rule_name *)item)->text, to->f);
}

/* By kind, then by text. */
static int compare(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct rule_name));
}

void names_sort(struct condition *c)
{
	size_t n = 0;

	if (c->n == 0)
		return;
	qsort(c->names, c->n, sizeof(*c->names), compare);
	for (size_t i = 1; i < c->n; i++)
		if (compare(&c->names[n], &c->names[i]) != 0)
			c->names[++n] = c->names[i];
	c->n = n + 1;
}
