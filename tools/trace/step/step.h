/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ax trace step: what threads do behind a probe. */
#ifndef AX_TOOLS_TRACE_STEP_STEP_H
#define AX_TOOLS_TRACE_STEP_STEP_H

#include "probes/fetch/evaluate.h"
#include "probes/step/step.h"
#include "tools/trace/run/run.h"
#include "tools/trace/show/json_ctf.h"
#include "tools/trace/step/defaults.h"

struct change;
/* What was asked for. */
struct step_request {
	struct trace t;
	struct trace_args args;
	uint32_t steps, times; /* times 0: until the end */
	bool lines, exact;
	/* What is shown of each step, instead of registers that changed. */
	struct probe_arg values[PROBE_ARGS_MAX];
	size_t n_values;
	struct change *change; /* instead of steps; NULL: none */
	/* Of -o ctf: lines of JSON become events in the command's process. */
	struct json_ctf *ctf;
	uint64_t *dropped; /* events that were lost: what the other process tells this one */
};

/* --- launch.c: the process that traces --- */

/* -p or -c; that those are there. */
int step_check_whom(struct step_request *q, struct error *e);
int step_find_whom(struct step_request *q, struct error *e);
int step_open_output(struct step_request *q, struct error *e);
void step_close_output(struct step_request *q);
/* Both processes' part in it, until the end. The exit status. */
int step_launch(struct step_request *q);
/* Tells who launched it that the command may begin. */
void step_say_ready(int fd);

/* --- run.c: what it does --- */

int step_run(struct step_request *q, int ready);

/* --- places.c --- */

struct step_places;
int step_places_new(const struct step_request *q, struct step_places **ret);
void step_places_free(struct step_places *p);
/* What the process has mapped may have changed; or it is another program now, or has ended. */
void step_places_look_again(struct step_places *p, int pid);
/* The kernel's own code for probes in the process's memory: no instructions of the program. */
bool step_places_is_kernels(struct step_places *p, int pid, uint64_t address);
/* -ENOENT: of no line that is known. */
int step_places_line(struct step_places *p, int pid, uint64_t address, struct dwarf_at *ret);
/* What is executed at an address, as the file has it where it has it. Its length, 0: not known. */
size_t step_places_code(struct step_places *p, int pid, int tid, uint64_t address, uint8_t *bytes,
			char *text, size_t len);
/* How the value number i is fetched there; NULL: it is not known there. */
const struct fetch *step_places_value(struct step_places *p, int pid, uint64_t address, size_t i);
/* Why a value was known nowhere, NULL: it was, or nobody asked. */
const char *step_places_unknown(const struct step_places *p, size_t i);

/* --- show.c --- */

/* A thread between two instructions. */
struct step_stop {
	uint32_t number; /* of the step, from 1 on */
	int pid, tid;
	const struct step_registers *before, *now; /* before: NULL, of a line that begins */
};
void step_put(struct step_request *q, struct step_places *p, const struct step_stop *s);
/* The beginning of a line in JSON: its time and what it tells of. */
void step_begin_event(struct step_request *q, const char *event);
/* What happened instead of a step, to a thread of a process. `signal`: 0: none. */
void step_put_event(struct step_request *q, int pid, int tid, const char *what, int signal);

extern const struct command cmd_trace_step;

#endif
