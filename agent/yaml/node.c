// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * YAML text to a tree of nodes. libyaml's events are used instead of its documents, because the
 * latter would expand nesting and aliases without a bound.
 */
#include "base/quote.h"
#include "yaml/node.h"

#include <yaml.h>

#define ANCHORS_MAX   256	 /* looked up one after the other */
#define EXPANSION_MAX (1u << 20) /* weight of all that aliases stand for */

struct anchor {
	char *name;
	struct node node; /* a copy that owns nothing */
};

struct loader {
	yaml_parser_t parser;
	const char *text;
	size_t len;
	struct config_errors *errs;
	struct anchor anchors[ANCHORS_MAX];
	size_t n_anchors;
	size_t expanded;
};

void node_free(struct node *n)
{
	size_t n_items = n->kind == NODE_MAPPING ? 2 * n->n : n->n;

	if (!n->shared) {
		for (size_t i = 0; i < n_items; i++)
			node_free(&n->items[i]);
		free(n->items);
		free(n->text);
	}
	*n = (struct node){0};
}

bool node_is_null(const struct node *n)
{
	return n->kind == NODE_SCALAR && n->plain &&
	       (n->len == 0 || streq(n->text, "~") || strcasecmp(n->text, "null") == 0);
}

static int fail(struct loader *l, unsigned line, unsigned column, char *found, const char *expected)
{
	int r = config_errors_add(l->errs, line, column, strdup(""), found, strdup(expected));

	return r < 0 ? r : -EINVAL;
}

static int fail_at(struct loader *l, const yaml_mark_t *mark, char *found, const char *expected)
{
	return fail(l, (unsigned)mark->line + 1, (unsigned)mark->column + 1, found, expected);
}

static char *describe_problem(const yaml_parser_t *p)
{
	const char *problem = p->problem ? p->problem : "a syntax error";
	char *s;

	if (!p->context)
		return strdup(starts_with(problem, "found ") ? problem + 6 : problem);
	return asprintf(&s, "%s: %s", p->context, problem) < 0 ? NULL : s;
}

/* libyaml gives only an offset for bytes that are no text. */
static int fail_encoding(struct loader *l)
{
	const yaml_parser_t *p = &l->parser;
	size_t end = p->problem_offset < l->len ? p->problem_offset : l->len;
	unsigned line = 1, column = 1;
	char *found;

	for (size_t i = 0; i < end; i++) {
		if (l->text[i] == '\n') {
			line++;
			column = 1;
		} else if (((unsigned char)l->text[i] & 0xc0) != 0x80) {
			column++; /* not a continuation byte: one more character */
		}
	}
	if (asprintf(&found, "%s (0x%02x)", p->problem ? p->problem : "invalid bytes",
		     (unsigned)p->problem_value) < 0)
		found = NULL;
	return fail(l, line, column, found, "UTF-8 text without control characters");
}

/* The byte at the parser's mark, which counts characters. */
static char byte_at(const struct loader *l, const yaml_mark_t *mark)
{
	size_t chars = 0;

	for (size_t i = 0; i < l->len; i++)
		if (((unsigned char)l->text[i] & 0xc0) != 0x80 && chars++ == mark->index)
			return l->text[i];
	return '\0';
}

static int fail_syntax(struct loader *l)
{
	const yaml_parser_t *p = &l->parser;
	const char *expected = "valid YAML";

	switch (p->error) {
	case YAML_MEMORY_ERROR:
		return -ENOMEM;
	case YAML_READER_ERROR:
		return fail_encoding(l);
	default:
		switch (byte_at(l, &p->problem_mark)) {
		case '\t':
			expected = "spaces, since YAML allows no tabs here";
			break;
		case '@':
			expected = "quotes around a text that starts with @";
			break;
		}
		return fail_at(l, &p->problem_mark, describe_problem(p), expected);
	}
}

static int next_event(struct loader *l, yaml_event_t *ev)
{
	return yaml_parser_parse(&l->parser, ev) ? 0 : fail_syntax(l);
}

static int remember_anchor(struct loader *l, const char *name, const yaml_mark_t *mark,
			   const struct node *n)
{
	struct anchor *a = NULL;

	for (size_t i = 0; i < l->n_anchors && !a; i++)
		if (streq(l->anchors[i].name, name))
			a = &l->anchors[i]; /* YAML: the latest one counts */
	if (!a) {
		if (l->n_anchors == ANCHORS_MAX)
			return fail_at(l, mark, quote_text(name, strlen(name)),
				       "at most 256 different anchors");
		a = &l->anchors[l->n_anchors];
		a->name = strdup(name);
		if (!a->name)
			return -ENOMEM;
		l->n_anchors++;
	}
	a->node = *n;
	a->node.shared = true;
	return 0;
}

/* Only finished nodes can be found here, so an alias never leads back to itself. */
static int resolve_alias(struct loader *l, const yaml_event_t *ev, struct node *ret)
{
	const char *name = (const char *)ev->data.alias.anchor;

	for (size_t i = 0; i < l->n_anchors; i++) {
		if (!streq(l->anchors[i].name, name))
			continue;
		*ret = l->anchors[i].node;
		l->expanded += ret->weight;
		if (l->expanded > EXPANSION_MAX)
			return fail_at(l, &ev->start_mark, quote_text(name, strlen(name)),
				       "aliases that stand for less than 1 MiB altogether");
		return 0;
	}
	return fail_at(l, &ev->start_mark, quote_text(name, strlen(name)),
		       "an alias of an anchor that is complete before it");
}

static int build(struct loader *l, yaml_event_t *ev, unsigned depth, struct node *ret);

/* Room for one more item: the capacity is 2 and doubles. */
static int grow(struct node *parent, size_t n)
{
	struct node *items = parent->items;

	if (n != 1 && (n & (n - 1)) == 0) {
		items = realloc(items, (n ? 2 * n : 2) * sizeof(*items));
		if (!items)
			return -ENOMEM;
		parent->items = items;
	}
	items[n] = (struct node){0};
	return 0;
}

static int build_items(struct loader *l, const yaml_mark_t *start, yaml_event_type_t end,
		       unsigned depth, struct node *ret)
{
	size_t n = 0;
	int r;

	if (depth == NODE_DEPTH_MAX)
		return fail_at(l, start, strdup("deeper nesting"),
			       "lists and mappings at most 16 levels deep");
	for (;;) {
		yaml_event_t ev;

		r = next_event(l, &ev);
		if (r < 0)
			break;
		if (ev.type == end) {
			yaml_event_delete(&ev);
			break;
		}
		r = grow(ret, n);
		if (r < 0) {
			yaml_event_delete(&ev);
			break;
		}
		r = build(l, &ev, depth + 1, &ret->items[n]);
		ret->weight += ret->items[n++].weight;
		if (r < 0)
			break;
	}
	if (ret->kind == NODE_MAPPING && n % 2)
		ret->items[n++] = (struct node){0}; /* cut off by an error: complete the pair */
	ret->n = ret->kind == NODE_MAPPING ? n / 2 : n;
	return r;
}

static int build_scalar(const yaml_event_t *ev, struct node *ret)
{
	ret->len = ev->data.scalar.length;
	ret->plain = ev->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
	ret->weight += ret->len;
	ret->text = malloc(ret->len + 1);
	if (!ret->text)
		return -ENOMEM;
	memcpy(ret->text, ev->data.scalar.value, ret->len);
	ret->text[ret->len] = '\0';
	return 0;
}

/* Builds the node that starts with *ev and takes the event. */
static int build(struct loader *l, yaml_event_t *ev, unsigned depth, struct node *ret)
{
	yaml_mark_t start = ev->start_mark;
	yaml_char_t *anchor = NULL;
	int r = -EINVAL;

	*ret = (struct node){.kind = NODE_SCALAR, .weight = 1};
	switch (ev->type) {
	case YAML_ALIAS_EVENT:
		r = resolve_alias(l, ev, ret);
		break;
	case YAML_SCALAR_EVENT:
		anchor = ev->data.scalar.anchor;
		r = build_scalar(ev, ret);
		break;
	case YAML_SEQUENCE_START_EVENT:
		anchor = ev->data.sequence_start.anchor;
		ret->kind = NODE_LIST;
		r = build_items(l, &start, YAML_SEQUENCE_END_EVENT, depth, ret);
		break;
	case YAML_MAPPING_START_EVENT:
		anchor = ev->data.mapping_start.anchor;
		ret->kind = NODE_MAPPING;
		ret->block = ev->data.mapping_start.style == YAML_BLOCK_MAPPING_STYLE;
		r = build_items(l, &start, YAML_MAPPING_END_EVENT, depth, ret);
		break;
	default: /* the parser's grammar leaves no other event here */
		break;
	}
	ret->line = (unsigned)start.line + 1;
	ret->column = (unsigned)start.column + 1;
	if (r == 0 && anchor)
		r = remember_anchor(l, (const char *)anchor, &start, ret);
	yaml_event_delete(ev);
	return r;
}

/* Stream start, at most one document, stream end. */
static int build_stream(struct loader *l, struct node *ret)
{
	bool seen = false;
	int r;

	for (;;) {
		yaml_event_type_t type;
		yaml_event_t ev;

		r = next_event(l, &ev);
		if (r < 0)
			return r;
		type = ev.type;
		if (type == YAML_DOCUMENT_START_EVENT && seen)
			r = fail_at(l, &ev.start_mark, strdup("a second document"),
				    "one document in the file");
		if (type == YAML_DOCUMENT_START_EVENT || type == YAML_DOCUMENT_END_EVENT ||
		    type == YAML_STREAM_START_EVENT || type == YAML_STREAM_END_EVENT) {
			seen |= type == YAML_DOCUMENT_START_EVENT;
			yaml_event_delete(&ev);
		} else {
			r = build(l, &ev, 0, ret);
		}
		if (r < 0 || type == YAML_STREAM_END_EVENT)
			return r;
	}
}

int node_parse(const char *text, size_t len, struct node *ret, struct config_errors *errs)
{
	autofree struct loader *l = calloc(1, sizeof(*l));
	int r;

	*ret = (struct node){.plain = true, .line = 1, .column = 1};
	if (!l || !yaml_parser_initialize(&l->parser))
		return -ENOMEM;
	l->text = text;
	l->len = len;
	l->errs = errs;
	/* otherwise two odd bytes at the start would make it UTF-16 */
	yaml_parser_set_encoding(&l->parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&l->parser, (const unsigned char *)text, len);
	r = build_stream(l, ret);
	ret->anchors = l->n_anchors;
	for (size_t i = 0; i < l->n_anchors; i++)
		free(l->anchors[i].name);
	yaml_parser_delete(&l->parser);
	return r;
}

const struct node *node_key(const struct node *mapping, const char *name)
{
	for (size_t i = 0; mapping->kind == NODE_MAPPING && i < mapping->n; i++) {
		const struct node *key = &mapping->items[2 * i];

		if (key->kind == NODE_SCALAR && key->text && streq(key->text, name))
			return key;
	}
	return NULL;
}
