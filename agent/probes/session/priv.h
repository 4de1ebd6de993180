/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef AX_PROBES_SESSION_PRIV_H
#define AX_PROBES_SESSION_PRIV_H

#include "probes/engine/engine.h"
#include "probes/types/btf.h"
#include "probes/types/dwarf.h"
#include "probes/session/session.h"

/* A file that parts of the session are in. */
struct session_file {
	char *name; /* as the probe's text has it */
	struct binary *binary;
	struct dwarf *dwarf;
	bool throws; /* binary_throws(), where a return is probed */
};

struct session {
	struct session_part parts[SESSION_PARTS_MAX];
	size_t n_parts;
	struct session_options options;
	struct session_file files[SESSION_FILES_MAX];
	size_t n_files;
	struct btf_types *btf;
	struct session_probe *probes;
	struct engine_site *sites; /* of each probe; then of the entries that belong to returns */
	size_t n_probes, size_probes;
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
	struct engine *engine;
	char *about;
};

/* resolve.c: fills probes, names and what they were found in. */
int session_resolve(struct session *s, struct error *e);

/* chain.c: probes that name the same place are put onto the same instruction; of sites that are
 * one place only one is left, whose probe goes on with the others'. -ENOMEM. */
int session_align(struct session *s);
int session_chain(struct session *s);

/* pinned.c: what session_open_pinned() needs to know of a session. malloc'ed. */
char *session_about(const struct session *s);

#endif
