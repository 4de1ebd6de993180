/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the ready commands that count have in common: whom they count apart, and their tables. */
#ifndef AX_TOOLS_TRACE_READY_TALLY_H
#define AX_TOOLS_TRACE_READY_TALLY_H

#include "tally_event.h"
#include "tools/trace/ready/ready.h"

struct tally_name {
	uint64_t id;
	struct ax_tally_group is;
	bool is_shared; /* another app has the same name */
};

/* Of the command line, and of the run. */
struct tally_view {
	int by; /* enum ax_tally_by */
	uint32_t top;
	bool hist;
	/* of processes or apps, sorted by number */
	struct tally_name *names;
	size_t n_names;
};

#define TALLY_TOP	25 /* lines of text; of JSON all */
#define TALLY_TOP_UNSET UINT32_MAX
/* --top, --by; of a struct tally_view. */
extern const struct opt tally_opts[2];
#define TALLY_OPTS_TOP 1 /* so many of them have commands that always count processes apart */
/* After the options were read: what is not said gets its default. */
void tally_begin(const struct ready *r, struct tally_view *v);

/* A growing array of lines of `size` bytes each. */
struct tally_lines {
	void *v;
	size_t n, max, size;
	/* of those of a table of the programs: the key is at the beginning */
	size_t key_size, value_at, value_size;
};
/* Room for one more, NULL: out of memory. */
void *tally_add(struct tally_lines *l);

/* Reads a table of r->watch anew. Below 0, here and below, with a sentence. */
int tally_read(struct ready *r, const char *table, struct tally_lines *l, struct error *e);
int tally_read_failed(int err, struct error *e); /* 0 or more: it has not */
/* Reads the table "groups" of r->watch. */
int tally_read_names(struct ready *r, struct tally_view *v, struct error *e);
void tally_free(struct tally_view *v);

/* Columns of who it was, if that is counted apart. */
void tally_put_group(struct ready *r, const struct tally_view *v, uint64_t id);
/* Members "pid", "comm" and "app", the first ones of an object: false if there were none. */
bool tally_put_json_group(struct ready *r, const struct tally_view *v, uint64_t id);
/* A whole table: the first lines, and in text how many are left out. */
struct tally_table {
	const char *heading; /* of text, behind that of who it was; NULL: there is none */
	const char *what;    /* the lines are */
	void (*put_text)(struct ready *r, const void *line);
	void (*put_json)(struct ready *r, const void *line);
};
void tally_put_table(struct ready *r, const struct tally_view *v, const struct tally_lines *l,
		     const struct tally_table *t);
void tally_sort(struct tally_lines *l, int (*compare)(const void *a, const void *b, void *arg),
		void *arg);

/* A histogram of times. */
void tally_put_times(struct ready *r, const struct ax_tally_times *t);
void tally_put_json_times(struct ready *r, const struct ax_tally_times *t);

#endif
