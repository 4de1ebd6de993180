// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/labels.h"
#include "app.h"

#define PART_MAX 63 /* of a key or a value */

static bool part_valid(const char *s, size_t len)
{
	static const char chars[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789._/-";

	return len <= PART_MAX && strspn(s, chars) >= len;
}

/* Where an item whose first `len` bytes are `prefix` is, or would have to go. */
static size_t lower_bound(const struct labels *l, const char *prefix, size_t len)
{
	size_t low = 0, high = l->n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (strncmp(l->items[mid], prefix, len) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static int insert(struct labels *l, size_t at, const char *item, struct error *e)
{
	autofree char *copy = strdup(item);
	char **items = copy ? realloc(l->items, (l->n + 1) * sizeof(*items)) : NULL;

	if (!items)
		return error_set(e, -ENOMEM, "out of memory for labels");
	l->items = items;
	memmove(items + at + 1, items + at, (l->n - at) * sizeof(*items));
	items[at] = take_ptr(&copy);
	l->n++;
	return 0;
}

static int add(struct labels *l, const char *key, size_t key_len, const char *value,
	       size_t value_len, struct error *e)
{
	char item[2 * PART_MAX + 2];
	size_t at;

	if (key_len == 0 || !part_valid(key, key_len))
		return error_set(e, -EINVAL,
				 "label key \"%.*s\" must be 1 to 63 letters, digits or . _ / -",
				 (int)(key_len < 80 ? key_len : 80), key);
	if (!part_valid(value, value_len))
		return error_set(e, -EINVAL,
				 "value \"%.*s\" of label \"%.*s\" must be 0 to 63 letters, digits "
				 "or . _ / -",
				 (int)(value_len < 80 ? value_len : 80), value, (int)key_len, key);
	snprintf(item, sizeof(item), "%.*s=%.*s", (int)key_len, key, (int)value_len, value);
	at = lower_bound(l, item, key_len + 1);
	if (at < l->n && strncmp(l->items[at], item, key_len + 1) == 0)
		return error_set(e, -EEXIST, "label \"%.*s\" is given twice, give it one value",
				 (int)key_len, key);
	if (l->n == AX_LABELS_MAX)
		return error_set(e, -E2BIG, "there are more than %d labels, use fewer",
				 AX_LABELS_MAX);
	return insert(l, at, item, e);
}

int labels_add(struct labels *l, const char *key, const char *value, struct error *e)
{
	return add(l, key, strlen(key), value, strlen(value), e);
}

/* Adds the item that ends at `end`. */
static int add_item(struct labels *l, const char *s, const char *end, struct error *e)
{
	size_t len = (size_t)(end - s);
	const char *eq = memchr(s, '=', len);

	if (!eq)
		return error_set(e, -EINVAL, "label \"%.*s\" must have the form key=value",
				 (int)(len < 80 ? len : 80), s);
	return add(l, s, (size_t)(eq - s), eq + 1, (size_t)(end - eq - 1), e);
}

int labels_parse(const char *s, struct labels *ret, struct error *e)
{
	struct labels l = {0};

	while (*s) {
		const char *end = strchrnul(s, ',');
		int r = add_item(&l, s, end, e);

		if (r == 0 && *end && !end[1])
			r = error_set(e, -EINVAL, "a label must follow the comma at the end");
		if (r < 0) {
			labels_free(&l);
			if (r != -ENOMEM)
				r = -EINVAL;
			if (e)
				e->code = r;
			return r;
		}
		s = *end ? end + 1 : end;
	}
	*ret = l;
	return 0;
}

void labels_free(struct labels *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->items[i]);
	free(l->items);
	*l = (struct labels){0};
}

int labels_copy(const struct labels *from, struct labels *to)
{
	struct labels l = {0};
	struct error e;

	for (size_t i = 0; i < from->n; i++) {
		if (insert(&l, i, from->items[i], &e) < 0) {
			labels_free(&l);
			return -ENOMEM;
		}
	}
	*to = l;
	return 0;
}

bool labels_has(const struct labels *l, const char *item)
{
	size_t at = lower_bound(l, item, strlen(item) + 1);

	return at < l->n && streq(l->items[at], item);
}

bool labels_subset(const struct labels *part, const struct labels *whole)
{
	for (size_t i = 0; i < part->n; i++)
		if (!labels_has(whole, part->items[i]))
			return false;
	return true;
}

bool labels_eq(const struct labels *a, const struct labels *b)
{
	return a->n == b->n && labels_subset(a, b);
}

char *labels_format(const struct labels *l)
{
	size_t size = 1;
	char *buf, *p;

	for (size_t i = 0; i < l->n; i++)
		size += strlen(l->items[i]) + 1;
	p = buf = malloc(size);
	if (!buf)
		return NULL;
	*p = '\0';
	for (size_t i = 0; i < l->n; i++) {
		if (i)
			*p++ = ',';
		p = stpcpy(p, l->items[i]);
	}
	return buf;
}
