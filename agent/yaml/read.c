// SPDX-License-Identifier: GPL-2.0-or-later
/* Readers: from nodes to fields, with everything that does not fit reported by its path. */
#include "app.h"
#include "base/labels.h"
#include "base/near.h"
#include "base/quote.h"
#include "base/values.h"
#include "yaml/read.h"

#include <stdarg.h>

#define PLAIN_KEY_MAX 60 /* bytes of a key that stands in a path without quotes */

/* --- messages --- */

static char *describe(const struct node *n)
{
	if (n->kind == NODE_MAPPING)
		return strdup(n->n ? "a mapping" : "an empty mapping");
	if (n->kind == NODE_LIST)
		return strdup(n->n ? "a list" : "an empty list");
	if (n->len == 0 && n->plain)
		return strdup("nothing");
	return quote_text(n->text, n->len);
}

static bool is_plain_key(const struct node *n)
{
	return n->kind == NODE_SCALAR && n->len > 0 && n->len <= PLAIN_KEY_MAX &&
	       strspn(n->text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
			       "0123456789_-") == n->len;
}

static char *format_path(const struct reader *r)
{
	autofree char *buf = NULL;
	bool good = true;
	size_t size;
	FILE *f = open_memstream(&buf, &size);

	if (!f)
		return NULL;
	for (size_t i = 0; i < r->depth && good; i++) {
		const struct node *key = r->path[i].key;
		autofree char *quoted = NULL;

		if (!key) {
			fprintf(f, "[%zu]", r->path[i].index);
		} else if (is_plain_key(key)) {
			fprintf(f, "%s%s", i ? "." : "", key->text);
		} else {
			quoted = describe(key);
			good = quoted != NULL;
			fprintf(f, "%s%s", i ? "." : "", good ? quoted : "");
		}
	}
	return fclose(f) == 0 && good ? take_ptr(&buf) : NULL;
}

bool have(struct reader *r, const void *p)
{
	if (!p)
		r->out_of_memory = true;
	return p != NULL;
}

bool done(struct reader *r, int result)
{
	if (result < 0)
		r->out_of_memory = true;
	return result >= 0;
}

static void vreport(struct reader *r, const struct node *at, char *found, const char *fmt,
		    va_list ap)
{
	char *expected;

	if (r->errs->n == CONFIG_ERRORS_MAX) { /* no need to make a text that is not kept */
		free(found);
		return;
	}
	if (vasprintf(&expected, fmt, ap) < 0)
		expected = NULL;
	done(r, config_errors_add(r->errs, at->line, at->column, format_path(r), found, expected));
}

void report(struct reader *r, const struct node *at, const char *found, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vreport(r, at, strdup(found), fmt, ap);
	va_end(ap);
}

void reject(struct reader *r, const struct node *n, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vreport(r, n, describe(n), fmt, ap);
	va_end(ap);
}

void report_taken(struct reader *r, const struct node *n, const char *holder, unsigned line,
		  const char *expected)
{
	autofree char *what = describe(n), *found = NULL;

	if (have(r, what) && done(r, asprintf(&found, "%s, %s since line %u", what, holder, line)))
		report(r, n, found, "%s", expected);
}

/* --- mappings and lists --- */

void path_push(struct reader *r, const struct node *key, size_t index)
{
	r->path[r->depth].key = key;
	r->path[r->depth].index = index;
	r->depth++;
}

static void read_below(struct reader *r, const struct node *key, const struct node *value,
		       read_fn read, void *to)
{
	path_push(r, key, 0);
	read(r, value, to);
	r->depth--;
}

#define KEYS_MAX 32 /* of a section; none comes near */

/* "a, b, c" */
static char *list_keys(const struct key *keys, size_t n)
{
	autofree char *buf = NULL;
	size_t size;
	FILE *f = open_memstream(&buf, &size);

	if (!f)
		return NULL;
	for (size_t i = 0; i < n; i++)
		fprintf(f, "%s%s", i ? ", " : "", keys[i].name);
	return fclose(f) == 0 ? take_ptr(&buf) : NULL;
}

static const char *nearest_key(const struct node *key, const struct key *keys, size_t n_keys)
{
	const char *names[KEYS_MAX];
	size_t n = 0;

	for (; n < n_keys && n < KEYS_MAX; n++)
		names[n] = keys[n].name;
	return key->kind == NODE_SCALAR ? nearest_word(key->text, names, n) : NULL;
}

static void report_unknown_key(struct reader *r, const struct node *key, const struct key *keys,
			       size_t n_keys)
{
	autofree char *all = NULL, *what = NULL, *found = NULL;
	const char *near;

	if (r->errs->n == CONFIG_ERRORS_MAX)
		return;
	all = list_keys(keys, n_keys);
	what = describe(key);
	if (!have(r, all) || !have(r, what) || !done(r, asprintf(&found, "unknown key %s", what)))
		return;
	near = nearest_key(key, keys, n_keys);
	path_push(r, key, 0);
	if (near)
		report(r, key, found, "one of %s; did you mean \"%s\"?", all, near);
	else
		report(r, key, found, "one of %s", all);
	r->depth--;
}

static const struct key *find_key(const struct node *n, const struct key *keys, size_t n_keys)
{
	if (n->kind != NODE_SCALAR)
		return NULL;
	for (size_t i = 0; i < n_keys; i++)
		if (n->len == strlen(keys[i].name) && memcmp(n->text, keys[i].name, n->len) == 0)
			return &keys[i];
	return NULL;
}

/* Reports a key that the mapping had before. */
static bool is_first(struct reader *r, struct registry *seen, const struct node *key)
{
	const struct claim c = {.key = key->text, .len = key->len, .line = key->line};
	struct claim earlier;
	int taken = registry_claim(seen, &c, &earlier);

	if (taken <= 0)
		return done(r, taken);
	path_push(r, key, 0);
	report_taken(r, key, "which is there", earlier.line, "each key once");
	r->depth--;
	return false;
}

bool read_mapping(struct reader *r, const struct node *n, const struct key *keys, size_t n_keys,
		  void *to)
{
	struct registry seen = {0};

	if (node_is_null(n))
		return true;
	if (n->kind != NODE_MAPPING) {
		autofree char *all = list_keys(keys, n_keys);

		if (have(r, all))
			reject(r, n, "a mapping of %s", all);
		return false;
	}
	for (size_t i = 0; i < n->n; i++) {
		const struct node *name = &n->items[2 * i];
		const struct key *key = find_key(name, keys, n_keys);

		if (!key)
			report_unknown_key(r, name, keys, n_keys);
		else if (is_first(r, &seen, name))
			read_below(r, name, name + 1, key->read, (char *)to + key->offset);
	}
	registry_free(&seen);
	return true;
}

void read_entries(struct reader *r, const struct node *n, const char *what, read_entry_fn read,
		  void *to)
{
	struct registry seen = {0};

	if (node_is_null(n))
		return;
	if (n->kind != NODE_MAPPING) {
		reject(r, n, "a mapping of %s", what);
		return;
	}
	for (size_t i = 0; i < n->n; i++) {
		const struct node *key = &n->items[2 * i];

		if (scalar_text(r, key, what) && is_first(r, &seen, key)) {
			path_push(r, key, 0);
			read(r, key, key + 1, to);
			r->depth--;
		}
	}
	registry_free(&seen);
}

void read_list(struct reader *r, const struct node *n, const char *what, size_t max, read_fn read,
	       void *to)
{
	if (node_is_null(n))
		return;
	if (n->kind != NODE_LIST) {
		reject(r, n, "a list of %s", what);
		return;
	}
	for (size_t i = 0; i < n->n; i++) {
		path_push(r, NULL, i);
		if (i < max)
			read(r, &n->items[i], to);
		else
			reject(r, &n->items[i], "at most %zu items in this list", max);
		r->depth--;
		if (i == max)
			break;
	}
}

/* --- scalars --- */

const char *maybe_empty_text(struct reader *r, const struct node *n, const char *what)
{
	if (n->kind == NODE_SCALAR && !n->text)
		return "";
	if (n->kind == NODE_SCALAR && memchr(n->text, '\0', n->len))
		report(r, n, "text with a NUL byte", "%s", what);
	else if (n->kind == NODE_SCALAR)
		return node_is_null(n) ? "" : n->text;
	else
		reject(r, n, "%s", what);
	return NULL;
}

const char *scalar_text(struct reader *r, const struct node *n, const char *what)
{
	if (!node_is_null(n))
		return maybe_empty_text(r, n, what);
	if (n->len == 0)
		reject(r, n, "%s", what);
	else
		reject(r, n, "%s (in quotes if \"%s\" is meant as text)", what, n->text);
	return NULL;
}

void read_bool(struct reader *r, const struct node *n, void *to)
{
	static const struct {
		const char *word;
		bool value;
	} words[] = {{"true", true}, {"false", false}, {"yes", true},
		     {"no", false},  {"on", true},     {"off", false}};
	const char *s = scalar_text(r, n, "true or false");

	if (!s)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		if (strcasecmp(s, words[i].word) == 0) {
			*(bool *)to = words[i].value;
			return;
		}
	}
	reject(r, n, "true or false");
}

void read_duration_ms(struct reader *r, const struct node *n, void *to)
{
	const char *s = scalar_text(r, n, "a duration such as 5s");
	const char *want = s ? want_duration_ms(s, to) : NULL;

	if (want)
		reject(r, n, "%s", want);
}

void read_absolute_path(struct reader *r, const struct node *n, void *to)
{
	const char *s = scalar_text(r, n, "an absolute path");
	char **path = to;

	if (!s)
		return;
	if (s[0] != '/') {
		reject(r, n, "an absolute path");
		return;
	}
	*path = strdup(s);
	have(r, *path);
}

#define LABEL_PARTS "at most 63 letters, digits and . _ / - in a key and in a value"

static void reject_label(struct reader *r, const struct node *key, const struct node *value)
{
	autofree char *k = describe(key), *v = describe(value), *found = NULL;

	if (have(r, k) && have(r, v) && done(r, asprintf(&found, "%s: %s", k, v)))
		report(r, key, found, LABEL_PARTS);
}

static void read_label(struct reader *r, const struct node *key, const struct node *value, void *to)
{
	const char *text = maybe_empty_text(r, value, "the label's value");

	if (!text)
		return;
	switch (labels_add(to, key->text, text, NULL)) {
	case 0:
		break;
	case -ENOMEM:
		r->out_of_memory = true;
		break;
	default:
		reject_label(r, key, value);
	}
}

static void read_labels_text(struct reader *r, const struct node *n, struct labels *to)
{
	const char *text = scalar_text(r, n, "labels");
	int code = text ? labels_parse(text, to, NULL) : 0;

	if (code == -ENOMEM)
		done(r, code);
	else if (code < 0)
		reject(r, n, "k=v or k=v,k2=v2, each key once, " LABEL_PARTS);
}

void read_labels(struct reader *r, const struct node *n, void *to)
{
	struct labels labels = {0};

	if (node_is_null(n))
		return;
	if (n->kind == NODE_SCALAR)
		read_labels_text(r, n, &labels);
	else if (n->n > AX_LABELS_MAX)
		reject(r, n, "at most %d labels", AX_LABELS_MAX);
	else
		read_entries(r, n, "labels, or text such as k=v,k2=v2", read_label, &labels);
	labels_free(to);
	*(struct labels *)to = labels;
}
