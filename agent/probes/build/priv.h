/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef AX_PROBES_BUILD_PRIV_H
#define AX_PROBES_BUILD_PRIV_H

#include "probes/build/build.h"
#include "probes/build/log.h"

/* --- store.c: texts that live as long as the build, and tables --- */

struct build_store;
void *build_store_room(struct build_store **s, size_t size); /* NULL: out of memory */
char *build_store_text(struct build_store **s, const char *text, size_t len);
void build_store_free(struct build_store *s);

/* Makes room for one more in an array that has n of them. -ENOMEM. */
int build_grow(void *array, size_t n, size_t *size, size_t item);

/* From a name or a number to an index. */
struct build_map {
	struct build_slot {
		uint64_t hash;
		const char *name; /* NULL: by its number alone */
		uint32_t value;	  /* BUILD_NONE: it has none any more */
		bool used;
	} * v;
	size_t n, size;
};
uint32_t build_map_get(const struct build_map *m, const char *name, uint64_t number);
/* The name is borrowed. -ENOMEM. */
int build_map_set(struct build_map *m, const char *name, uint64_t number, uint32_t value);

/* --- records.c: the records, by time, with what belongs together put together --- */

/* Of an exec, from its pieces. */
struct build_texts {
	const char *file, *cwd;
	struct build_words argv, env;
	bool gap;
};
struct build_item {
	struct build_record r;
	struct build_texts *texts; /* of AX_BUILD_EXEC */
	size_t order;
};
struct build_items {
	struct build_item *v;
	size_t n, size;
};
/* Fills b->head, totals, whole and incomplete as well. */
int build_items_read(struct build *b, struct build_items *items, const void *data, size_t len,
		     struct error *e);

/* --- files.c: files and their names --- */

struct build_files {
	struct build *b;
	struct build_map by_path; /* those that are not gone */
	size_t size;		  /* of b->nodes */
};
/* The file of that name, which lives as long as the build; a new one if there is none. -ENOMEM. */
int build_file_get(struct build_files *f, const char *path, uint32_t *ret);
/* -ENOMEM */
int build_file_remove(struct build_files *f, uint32_t file);
/* *replaced: what had the name before, or BUILD_NONE. */
int build_file_rename(struct build_files *f, uint32_t file, const char *path, uint32_t *replaced);
int build_file_exchange(struct build_files *f, uint32_t a, uint32_t b);

/* --- uses.c --- */

#define BUILD_RENAME_EXCHANGE 2 /* of a rename's flags: as Linux has it */
/* What an event did with its file (or its second one). 0: nothing. */
uint32_t build_event_access(const struct build_event *ev, bool second);
int build_uses_make(struct build *b);

#endif
