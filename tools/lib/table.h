/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tables for people: columns fit the terminal, cells are escaped, colours are optional. */
#ifndef AX_TOOLS_LIB_TABLE_H
#define AX_TOOLS_LIB_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum table_colour {
	COLOUR_NONE,
	COLOUR_BOLD,
	COLOUR_DIM,
	COLOUR_RED,
	COLOUR_GREEN,
	COLOUR_YELLOW,
};

struct table_column {
	const char *title;
	unsigned keep; /* of two columns, the one with the lower number is cut and dropped first */
	unsigned min;  /* may be cut to this many columns of the terminal; 0: never cut */
	bool right;    /* aligned to the right */
	bool wide;     /* shown only in a wide table */
};

struct table_style {
	unsigned width; /* of the terminal; 0: no limit */
	bool colour;
	bool headers;
	bool wide; /* every column is shown, cut if need be, but never dropped */
};

struct table {
	const struct table_column *columns;
	size_t n_columns;
	struct table_cell *cells; /* row by row */
	size_t n, size;
	bool failed; /* memory was out: nothing will be printed */
};

void table_init(struct table *t, const struct table_column *columns, size_t n_columns);
void table_free(struct table *t);
/* The next cell, from left to right; NULL and "" stand as "-". */
void table_add(struct table *t, const char *text);
void table_addf(struct table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Colours the cell that was added last. */
void table_colour(struct table *t, enum table_colour colour);
/* Prints whole rows. Returns 0 or -ENOMEM; the stream's errors stay in the stream. */
int table_print(const struct table *t, const struct table_style *style, FILE *to);

/* How a stream wants its tables: width and colours only for a terminal; NO_COLOR is obeyed. */
struct table_style table_style_for(FILE *to);
/* The sequences that switch a colour on and off. */
const char *table_colour_on(enum table_colour colour);
const char *table_colour_off(void);

#endif
