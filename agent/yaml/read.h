/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the files of the config parser share, in three layers: text to a tree of nodes that know
 * their line and column (config_yaml.c), readers that turn a node into a field of a struct and
 * report what does not fit (config_read.c), and tables that say which key has which reader
 * (config_agent.c, config_apps.c, config_services.c ...). Private to them.
 */
#ifndef AX_YAML_READ_H
#define AX_YAML_READ_H

#include "base/near.h"
#include "base/quote.h"
#include "base/values.h"
#include "config/config.h"

/* --- the tree --- */

#define NODE_DEPTH_MAX 16 /* far more than the schema has */

enum node_kind { NODE_SCALAR, NODE_LIST, NODE_MAPPING };

struct node {
	enum node_kind kind;
	unsigned line, column; /* from 1 */
	bool plain;	       /* a scalar without quotes */
	bool shared;	       /* made by an alias: the contents belong to the anchor's node */
	char *text;	       /* of a scalar; NUL-terminated, but may hold more NULs */
	size_t len;
	struct node *items; /* of a list, or key, value, key, value ... of a mapping */
	size_t n;	    /* items, or pairs */
	size_t weight;	    /* nodes and bytes of text in it, with aliases expanded */
};

/* Parses one YAML document. What is no YAML gives -EINVAL and one error; an empty text an empty
 * scalar. The result is for node_free(), also after a failure. */
int node_parse(const char *text, size_t len, struct node *ret, struct config_errors *errs);
void node_free(struct node *n);
/* Nothing was written (or ~, or null). */
bool node_is_null(const struct node *n);

/* Adds an error, keeping them in the file's order; takes the three strings. -ENOMEM also when one
 * of them is NULL. Beyond CONFIG_ERRORS_MAX errors no more are kept. */
#define CONFIG_ERRORS_MAX 1000
int config_errors_add(struct config_errors *errs, unsigned line, unsigned column, char *path,
		      char *found, char *expected);

/* --- who has what --- */

/* Remembers keys (any bytes) and the line that took each one. */
struct registry {
	void *root;
};
struct claim {
	const void *key;
	size_t len;
	unsigned line;
	int owner; /* the caller's enum */
};
/* Returns 1 when the key is taken, with that claim in *earlier; else takes it and returns 0. */
int registry_claim(struct registry *reg, const struct claim *c, struct claim *earlier);
void registry_free(struct registry *reg);

/* --- reading --- */

enum owner { OWNER_NONE, OWNER_APP, OWNER_SERVICE };

struct reader {
	struct config *config;
	const struct node *root; /* of the config; NULL: it is another file */
	struct config_errors *errs;
	struct {
		const struct node *key; /* NULL: an item of a list */
		size_t index;
	} path[NODE_DEPTH_MAX];
	size_t depth;
	struct registry names;	   /* of apps and services */
	struct registry addresses; /* of apps and services */
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
/* An app's or service's addresses, which nobody else may have. */
void read_vips(struct reader *r, const struct node *n, enum owner owner, struct ax_addr *ip4,
	       struct ax_addr *ip6);
/* Takes a name for an app or service; apps may share one. */
void claim_name(struct reader *r, const struct node *n, const char *name, enum owner owner);

/* --- sections --- */

void read_agent(struct reader *r, const struct node *n, void *to);    /* struct config */
void read_policy(struct reader *r, const struct node *n, void *to);   /* struct config */
void read_apps(struct reader *r, const struct node *n, void *to);     /* struct config */
void read_services(struct reader *r, const struct node *n, void *to); /* struct config */

void read_xdp(struct reader *r, const struct node *n, void *to);    /* struct config */
void read_probes(struct reader *r, const struct node *n, void *to); /* struct config */

/* Also for the commands of triggers. */
void read_command(struct reader *r, const struct node *n, void *to); /* struct strv */
void read_user(struct reader *r, const struct node *n, void *to);    /* char * */

/* --- values, shared with the flags (config_spec.c) --- */

/* Each returns NULL, or what was expected instead and leaves its results alone. */
const char *want_vips(const char *s, struct ax_addr *ip4, struct ax_addr *ip6);
const char *want_net(const char *s, enum net_mode *ret);
const char *want_restart(const char *s, enum restart_policy *ret);
/* Splits a command line into words as a shell does, without any expansion. *want is NULL or what
 * was expected. -EINVAL, -ENOMEM. */
int split_words(const char *s, struct strv *ret, const char **want);

#endif
