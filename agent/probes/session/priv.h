/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef AX_PROBES_SESSION_PRIV_H
#define AX_PROBES_SESSION_PRIV_H

#include <sys/types.h>

#include "probes/engine/engine.h"
#include "probes/follow/follow.h"
#include "probes/types/btf.h"
#include "probes/types/dwarf.h"
#include "probes/session/session.h"

/* A file that parts of the session are in. */
struct session_file {
	char *name; /* as the probe's text has it */
	struct binary *binary;
	struct dwarf *dwarf;
	bool throws; /* binary_throws(), where a return is probed */
	dev_t dev;
	ino_t ino;
};

struct session {
	struct session_part parts[SESSION_SCRIPT_MAX];
	size_t n_parts;
	bool in_order; /* a script's parts */
	bool tables;   /* several: the key begins with the table's number */
	struct session_options options;
	struct session_file files[SESSION_FILES_MAX];
	size_t n_files;
	struct btf_types *btf;
	struct given_types *given; /* options.types, NULL: none */
	struct session_probe *probes;
	struct engine_site *sites; /* of each probe; then of the entries that belong to returns */
	size_t n_probes, size_probes, n_selves;
	bool later_absent; /* a name was not there for the process that is looked at */
	size_t room;	   /* how many probes there may be; those on entries are that much behind */
	struct strv names;
	struct strv texts_kept; /* what sites point to */
	struct fetch_texts texts;
	size_t n_refused;
	int table_part;	    /* the part that fills the table, -1: none does */
	uint32_t key_words; /* the most that one of its probes has */

	/* what the engine was given */
	struct ax_probe *descriptions;
	struct ax_probe_op *ops;
	struct engine_site *all_sites;
	struct engine_plan plan;
	size_t n_places; /* that something is done at, of programs and of the kernel */
	struct engine *engine;
	struct follow *follow; /* NULL: nothing is followed */
	struct session_dynamics *dynamics;
	char *about;
};

/* dynamic.c */
void session_free_dynamics(struct session *s);

/* resolve.c: fills probes, names and what they were found in. */
int session_resolve(struct session *s, struct error *e);
/* The same for parts in a file of that name as a process sees it, if it is a new one. 1: there are
 * more probes, 0: there is nothing to do; *path is the file's, if it is new. */
int session_resolve_later(struct session *s, const char *name, int pid, const char **path,
			  struct error *e);
bool session_is_glob(const char *name);

/* session.c: the plan's parts of a probe, and what it needs. */
void session_plan_probe(struct session *s, size_t i);
size_t session_ops_of(const struct session *s, size_t i);
uint32_t session_key_words_of(const struct session *s, size_t i); /* 0: it fills no table */

/* later.c */
void session_make_room(struct session *s, size_t *n_ops);
int session_open_follow(struct session *s, struct error *e);
int session_attach_follow(struct session *s, struct error *e);

/* chain.c: probes that name the same place are put onto the same instruction; of sites that are
 * one place only one is left, whose probe goes on with the others'. -ENOMEM. */
int session_align(struct session *s, size_t first_probe);
int session_chain(struct session *s, size_t first_site);

/* pinned.c: what session_open_pinned() needs to know of a session. malloc'ed. */
char *session_about(const struct session *s);

#endif
