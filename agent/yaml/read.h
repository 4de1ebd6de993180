/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Readers: each turns a node into a field of a struct, and reports what does not fit by its place
 * and path. Sections are tables that say which key has which reader. What the fields mean is the
 * caller's.
 */
#ifndef AX_YAML_READ_H
#define AX_YAML_READ_H

#include "yaml/node.h"
#include "yaml/registry.h"

struct reader {
	void *context; /* the caller's: what its readers know of the whole file */
	struct config_errors *errs;
	struct {
		const struct node *key; /* NULL: an item of a list */
		size_t index;
	} path[NODE_DEPTH_MAX];
	size_t depth;
	bool out_of_memory;
};

/* Reads a node into *to, or reports what is wrong with it. */
typedef void (*read_fn)(struct reader *r, const struct node *n, void *to);

/* One key of a section: what reads its value, into the field at that offset. */
struct key {
	const char *name;
	read_fn read;
	size_t offset;
};

/* Reports an error at a node: what was found there (reject: the node itself), what was expected. */
void report(struct reader *r, const struct node *at, const char *found, const char *fmt, ...)
	PRINTF(4, 5);
void reject(struct reader *r, const struct node *n, const char *fmt, ...) PRINTF(3, 4);
/* Reports that the thing at the node is taken: found "THING, HOLDER since line LINE". */
void report_taken(struct reader *r, const struct node *n, const char *holder, unsigned line,
		  const char *expected);
/* Where what is reported next is, in addition (NULL: item `index` of a list); until depth is put
 * back. */
void path_push(struct reader *r, const struct node *key, size_t index);
/* Notes that memory is out when `p` is NULL; returns whether it is there. */
bool have(struct reader *r, const void *p);
/* The same for a negative errno. */
bool done(struct reader *r, int result);

/* A mapping with known keys; nothing written is an empty one. Returns whether it was a mapping. */
bool read_mapping(struct reader *r, const struct node *n, const struct key *keys, size_t n_keys,
		  void *to);
/* A mapping whose keys are the user's; `what` completes "expected a mapping of ...". */
typedef void (*read_entry_fn)(struct reader *r, const struct node *key, const struct node *value,
			      void *to);
void read_entries(struct reader *r, const struct node *n, const char *what, read_entry_fn read,
		  void *to);
/* A list of at most `max` items; `what` completes "expected a list of ...". */
void read_list(struct reader *r, const struct node *n, const char *what, size_t max, read_fn read,
	       void *to);
/* The text of a scalar, or NULL after a report that `what` was expected. A scalar of which nothing
 * was written counts as text only for maybe_empty_text(), where it is "". */
const char *scalar_text(struct reader *r, const struct node *n, const char *what);
const char *maybe_empty_text(struct reader *r, const struct node *n, const char *what);

/* Readers of one field. */
void read_bool(struct reader *r, const struct node *n, void *to);	   /* bool */
void read_duration_ms(struct reader *r, const struct node *n, void *to);   /* uint32_t */
void read_labels(struct reader *r, const struct node *n, void *to);	   /* struct labels */
void read_absolute_path(struct reader *r, const struct node *n, void *to); /* char * */

#endif
