/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The interpreter in the kernel: loading it with its probes, attaching, reading what comes out. */
#ifndef AX_PROBES_ENGINE_ENGINE_H
#define AX_PROBES_ENGINE_ENGINE_H

#include "probe.h"
#include "base/util.h"

/* Where a program goes, and which probe it then is. Texts are borrowed. */
enum engine_site_kind { SITE_USER, SITE_KERNEL, SITE_TRACEPOINT, SITE_CLOCK, SITE_SELF };
struct engine_site {
	enum engine_site_kind kind;
	uint32_t probe;
	bool is_return;	  /* functions */
	bool is_optional; /* left out where each place is an attachment, and there are too many */
	const char *path; /* SITE_USER; the same text for the same file */
	int fd;		  /* SITE_USER: of the file, open, whose path may be another one's by now */
	/* in the file; of SITE_KERNEL from the function, or an address; of SITE_CLOCK how often in
	 * a second; of SITE_SELF a number */
	uint64_t offset;
	uint64_t semaphore; /* in the file, 0: none */
	const char *name;   /* SITE_KERNEL: function, NULL: an address; SITE_TRACEPOINT */
	uint64_t address;   /* SITE_KERNEL: of the function; 0: not known */
	const char *category;
	uint32_t id;	 /* of the tracepoint */
	bool has_fields; /* SITE_TRACEPOINT: the probe reads its record */
};

struct engine_plan {
	const struct ax_probe *probes;
	size_t n_probes;
	const struct ax_probe_op *ops;
	size_t n_ops;
	const struct ax_probe_text *texts;
	size_t n_texts;
	uint32_t key_words; /* with that of a histogram's bucket; 0: there is no table */
	bool records, paired, states, stacks;
	bool maps, texts_set; /* a script's variables: some are maps, some are texts */
	uint32_t ring_bytes;  /* for records on their way, a power of two; 0: ENGINE_RING_BYTES */
	bool sleeps; /* programs on functions of programs, whose memory is read; without stacks */
	struct ax_probe_config config;
	int pid; /* functions of programs: only in this process, 0: in all */
	const struct engine_site *sites;
	size_t n_sites;
	const char *pin; /* a directory of a bpf filesystem, made when it is missing; NULL: none */
	const char *about; /* with `pin`: a text that is kept with it */
	int tree;	   /* with config.tree: the map of processes */
	/* More can come by engine_extend(), up to these numbers; of `probes`, n_probes is how many
	 * there may be, and n_used of each half are there. They fetch what those do that are there,
	 * or variables that are elsewhere; or, with `any`, whatever there is. */
	bool later, any;
	uint32_t actions; /* of those that may come, a bit for each */
	size_t n_used, max_ops, max_texts;
};

struct engine;
int engine_load(const struct engine_plan *p, struct engine **ret, struct error *e);
int engine_attach(struct engine *g, struct error *e);
/* Probes, operations, texts and sites that the plan has got since, from these on. Probes of entries
 * are in the second half. Those that were attached stay so when it fails. */
struct engine_from {
	size_t probe, end; /* of both halves */
	size_t op, text, site;
};
int engine_extend(struct engine *g, const struct engine_from *from, struct error *e);
void engine_detach(struct engine *g);
void engine_free(struct engine *g);
/* Makes a probe of SITE_SELF happen, and those that are chained to it. */
int engine_run(struct engine *g, uint32_t probe);
/* How it attaches: "one uprobe_multi link" ... */
const char *engine_method(const struct engine *g);

/* A plan with `pin`, whose links stay as files there when this process ends (unless the engine is
 * detached), and its maps in any case: attached again, it goes on with what they had. */
#define ENGINE_ABOUT_MAX (4u << 20) /* bytes */
/* What was pinned, for reading only. `about` is malloc'ed. -ENOENT: there is nothing. */
int engine_open(const char *pin, struct engine **ret, char **about, struct error *e);
/* Whether links are there; removes them, so that nothing happens any more; removes everything. */
bool engine_is_enabled(const char *pin);
int engine_disable(const char *pin);
int engine_remove(const char *pin);
/* As engine_disable(), but to be known as what was not asked for, until it is attached again or
 * disabled. */
int engine_suspend(const char *pin);
bool engine_is_suspended(const char *pin);

/* Calls f for each record that is there. Returns their number, or what f returned below 0. */
int engine_records(struct engine *g,
		   int (*f)(void *arg, const struct ax_probe_record *r, size_t len), void *arg);
/* Asked before engine_records(), which then has all records of before that time (CLOCK_MONOTONIC),
 * if engine_has_settled() is true of it. 0: that is not known, as without ax_probe_config.ordered.
 */
uint64_t engine_settled_ns(struct engine *g);
/* False: engine_records() ended before that, as it does at a record that is just being written,
 * behind which there may be whole ones of earlier times. */
bool engine_has_settled(const struct engine *g);
/* Calls f for each line of the table, sums over all CPUs. */
int engine_table(struct engine *g,
		 int (*f)(void *arg, const uint64_t *key, const struct ax_probe_cell *c),
		 void *arg);
int engine_hits(struct engine *g, uint64_t *hits, size_t n); /* of the first probes */
size_t engine_n_probes(const struct engine *g); /* of the plan, also when it was pinned */
/* Words of a table's key; 0: there is no table. */
uint32_t engine_key_words(const struct engine *g);
/* The records that are kept, oldest first, but for the first *seen that there have ever been; cut
 * off at ax_probe_config.flight_bytes. *seen is then the number of those that need not be asked for
 * again. 0, or what f returned below 0. */
int engine_flight(struct engine *g,
		  int (*f)(void *arg, const struct ax_probe_record *r, size_t len, size_t full_len),
		  void *arg, uint64_t *seen);
/* The addresses of a call stack, the innermost first. Their number, or -ENOENT. */
int engine_stack(struct engine *g, uint64_t id, uint64_t *addresses, size_t max);
/* Of a plan with config.copies: calls f for each copy of a stack that has come since the last time.
 * Those of records that were read before are among them. Their number, or what f returned below 0.
 */
int engine_stack_copies(struct engine *g, int (*f)(void *arg, const struct ax_stack_copy *c),
			void *arg);
uint64_t engine_counter(struct engine *g, enum ax_probe_counter which);
/* Variables of threads that were not set, since there was no room. */
uint64_t engine_no_variable(struct engine *g);
/* Events that the kernel kept from the programs, since they happened on a CPU that was at work on
 * another one: a tracepoint in what a program does itself. Not of what was pinned by others. */
uint64_t engine_missed(const struct engine *g);

/* A kind of probes, or a way to attach them: whether this kernel has it, since when it is there,
 * and what is lost without it. */
struct engine_feature {
	const char *name, *cost, *needs;
	bool on;
};
/* Until `report` returns non-zero, which is returned. Needs root. */
int engine_doctor(int (*report)(void *arg, const struct engine_feature *f), void *arg);

#endif
