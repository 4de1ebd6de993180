/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files of the engine share. */
#ifndef AX_PROBES_ENGINE_PRIV_H
#define AX_PROBES_ENGINE_PRIV_H

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "probes/engine/defaults.h"
#include "probes/engine/engine.h"
#include "probes/engine/link.h"

enum engine_map {
	MAP_PROBES,
	MAP_SCRATCHES,
	MAP_OPS,
	MAP_TEXTS,
	MAP_HITS,
	MAP_COUNTERS,
	MAP_RECORDS,
	MAP_AT_WORK,
	MAP_TABLE,
	MAP_CALLS,
	MAP_STACKS,
	MAP_STACK_COPIES,
	MAP_FLIGHT,
	MAP_FLIGHT_NUMBER,
	MAP_STATES,
	MAP_THREAD_STATES,
	MAP_ABOUT,
	MAP_GLOBALS,
	MAP_THREAD_VARIABLES,
	MAP_TEXT_VARIABLES,
	MAP_TREE,
	MAPS,
};
/* As in the program, and as a pinned file. */
extern const char *const engine_map_names[MAPS];
/* Of one that is pinned: it holds what was seen, or what it was. What programs need besides (open
 * calls, what is armed) begins anew when they are attached again. */
bool engine_map_is_kept(enum engine_map which);

enum engine_program {
	PROGRAM_USER,
	PROGRAM_KERNEL,
	PROGRAM_CLASSIC, /* tracepoints with their records */
	PROGRAM_RAW,
	PROGRAM_CLOCK,	  /* on each processor's */
	PROGRAM_FORGET,	  /* on the end of threads, where they have variables */
	PROGRAM_RENUMBER, /* on exec, for the same */
	PROGRAM_SELF,	  /* attached to nothing: run by us */
	PROGRAMS,
};

struct interpreter;
struct engine {
	struct interpreter *skel; /* NULL: it was pinned by somebody else */
	const struct engine_plan *plan;
	int maps[MAPS]; /* without a skeleton: its own */
	size_t n_probes;
	uint32_t key_words;
	struct bpf_program *programs[PROGRAMS];
	bool uses[PROGRAMS];
	bool user_multi, kernel_multi; /* one link for many functions */
	struct ring_buffer *ring;
	int (*on_record)(void *arg, const struct ax_probe_record *r, size_t len);
	void *arg;
	struct ring_buffer *copies;
	int (*on_copy)(void *arg, const struct ax_stack_copy *c);
	void *copies_arg;
	int *link_fds;
	struct bpf_link **links;
	size_t n_link_fds, n_links, max_link_fds, max_links;
	int *event_links, *events; /* of tracepoints, each with its own */
	size_t n_events, max_events;
	struct mapping { /* of a file */
		void *at;
		size_t bytes;
	} * mappings;
	size_t n_mappings;
	const uint64_t *at_work; /* NULL: it is not kept */
	const char *ring_pages;	 /* with at_work: how far records were read, and were written */
	uint64_t settled_at;	 /* how far they were written when at_work was looked at */
	int n_cpus;
	struct link_expected expecting;
};

/* attach.c: the plan's sites from number `first` on. */
int engine_attach_sites(struct engine *g, size_t first, struct error *e);
int engine_attach_threads(struct engine *g, struct error *e);

/* close.c: unlinks and closes */
void engine_close_links(struct engine *g);
/* A tracepoint's; both are closed, also on failure. */
int engine_keep_event(struct engine *g, int link, int event);

/* kernel_offsets.c: sets offsets of what is read of tasks, if they are known. */
void engine_find_offsets(struct ax_probe_config *config);

/* read.c: of what is loaded with ax_probe_config.copies */
int engine_copies_open(struct engine *g);

/* quick.c */
bool engine_is_quick(const struct engine_plan *p, const struct ax_probe *d);
bool engine_keys_are_short(const struct engine_plan *p);

/* pin.c */
int engine_pin_links(struct engine *g, struct error *e);
int engine_pin_directory(const char *pin, struct error *e);

#endif
