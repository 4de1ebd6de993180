/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What `ax get` lists: one file for each noun, get_<noun>.c, with a row for each of its columns. */
#ifndef AX_TOOLS_CMD_GET_H
#define AX_TOOLS_CMD_GET_H

#include "tools/lib/cmd.h"
#include "tools/lib/table.h"

struct cell {
	const json_t *item;
	const json_t *reply; /* the agent's whole answer */
	const char *key;     /* of the column: the item's member that it shows */
};

struct column {
	struct table_column shown;
	void (*add)(struct table *t, const struct cell *c);
	const char *key;
};

struct noun {
	const char *name;
	const char *aliases[4]; /* besides every unambiguous abbreviation */
	const char *keys[4];	/* members by which one can be asked for */
	const struct column *columns;
	size_t n_columns;      /* at most COLUMNS_MAX */
	const char *all_nodes; /* the column for all nodes alone; NULL: others' are not known */
	void (*name_of)(const json_t *item, char *buf, size_t size); /* for -o name */
};
#define COLUMNS_MAX 32

extern const struct noun noun_apps, noun_services, noun_servers, noun_conns, noun_names;
extern const struct noun noun_interfaces, noun_policy, noun_nodes;

/* --- get_cells.c: cells that several nouns have --- */

void cell_text(struct table *t, const struct cell *c);
void cell_int(struct table *t, const struct cell *c);
void cell_bytes(struct table *t, const struct cell *c);
void cell_yes(struct table *t, const struct cell *c); /* "yes" or "no" */
void cell_age(struct table *t, const struct cell *c); /* of a time of day in seconds */
void cell_wait(struct table *t, const struct cell *c);
void cell_list(struct table *t, const struct cell *c); /* of texts */
/* IPv4 if there is one: the one column for addresses is never empty without need. */
void cell_ip(struct table *t, const struct cell *c);
void cell_state(struct table *t, const struct cell *c);

/* The member "name", for -o name. */
void name_member(const json_t *item, char *buf, size_t size);

/* Collects text of any length; a failure leaves text NULL. */
struct builder {
	FILE *f;
	char *text;
	size_t size;
};
bool builder_open(struct builder *b);
/* The text becomes a cell. */
void builder_add_to(struct table *t, struct builder *b);

#endif
