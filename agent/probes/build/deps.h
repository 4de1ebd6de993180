/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What was read to make a file. What counts is a step: a command that a program like make or ninja
 * started, with all that it started itself. Whatever a step wrote was made of whatever it read and
 * did not make itself.
 */
#ifndef AX_PROBES_BUILD_DEPS_H
#define AX_PROBES_BUILD_DEPS_H

#include "probes/build/build.h"

/* Whether it is make, ninja, go or the like. */
bool build_starts_steps(const struct build *b, uint32_t cmd);
/* The step that a command belongs to: the program itself if no such program started it. BUILD_NONE:
 * it was none's. */
uint32_t build_step(const struct build *b, uint32_t cmd);

struct build_step_use {
	uint32_t step, file;
	uint32_t access; /* all that the step did with it */
};
struct build_steps {
	struct build_step_use *v; /* by step, then by path */
	size_t n;
};
int build_steps_make(const struct build *b, struct build_steps *ret);
/* Where those of a step begin, and how many there are. */
const struct build_step_use *build_steps_of(const struct build_steps *s, uint32_t step, size_t *n);

/* Whether the step needed the file and did not make it. */
bool build_is_input(const struct build *b, const struct build_step_use *u);
/* Whether it is there when the build has ended, made by the step. */
bool build_is_output(const struct build *b, const struct build_step_use *u);
/* Whether a command of another step has read or executed it. */
bool build_is_read(const struct build *b, uint32_t file);

#endif
