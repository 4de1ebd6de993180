/* SPDX-License-Identifier: GPL-2.0-or-later */
/* YAML text as a tree of nodes that know their line and column. */
#ifndef AX_YAML_NODE_H
#define AX_YAML_NODE_H

#include "yaml/errors.h"

#define NODE_DEPTH_MAX 16 /* far more than any of our files has */

enum node_kind { NODE_SCALAR, NODE_LIST, NODE_MAPPING };

struct node {
	enum node_kind kind;
	unsigned line, column; /* from 1 */
	bool plain;	       /* a scalar without quotes */
	bool block;	       /* a mapping of lines, without braces */
	bool shared;	       /* made by an alias: the contents belong to the anchor's node */
	char *text;	       /* of a scalar; NUL-terminated, but may hold more NULs */
	size_t len;
	struct node *items; /* of a list, or key, value, key, value ... of a mapping */
	size_t n;	    /* items, or pairs */
	size_t weight;	    /* nodes and bytes of text in it, with aliases expanded */
	size_t anchors;	    /* of node_parse()'s result: different ones in the text */
};

/* Parses one YAML document. What is no YAML gives -EINVAL and one error; an empty text an empty
 * scalar. The result is for node_free(), also after a failure. */
int node_parse(const char *text, size_t len, struct node *ret, struct config_errors *errs);
void node_free(struct node *n);
/* Nothing was written (or ~, or null). */
bool node_is_null(const struct node *n);
/* The key of that name in a mapping; its value is behind it. NULL: not there, or no mapping. */
const struct node *node_key(const struct node *mapping, const char *name);

#endif
