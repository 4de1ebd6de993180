/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * For the filter's tests: what is to happen to a frame. Each is explained first: that must say what
 * then happens, and leave no trace.
 */
#ifndef AX_TESTS_FILTER_JUDGE_H
#define AX_TESTS_FILTER_JUDGE_H

#include <linux/bpf.h>
#include <stdbool.h>
#include <stdint.h>

#include "tests/lib/filter.h"
#include "xdp.h"

/* What is to happen to a frame. */
struct expect {
	uint32_t action;
	enum ax_decided decided;
	const char *rule;      /* whose counter it moves, NULL: none */
	enum ax_reason reason; /* which is told, and counted */
	enum ax_reason also;   /* another one that is counted */
	enum ax_verdict verdict;
	const char *quoted_rule; /* NULL: not looked at */
	bool limited;
};

#define BY(a, r)                                                          \
	{                                                                 \
		.action = XDP_##a, .verdict = AX_VERDICT_##a, .rule = (r) \
	}
#define BY_DROP(r) BY(DROP, r)
#define BY_PASS(r) BY(PASS, r)
/* by a rule too, but odd */
#define ODD(a, r, why)                                                                     \
	{                                                                                  \
		.action = XDP_##a, .verdict = AX_VERDICT_##a, .rule = (r), .reason = (why) \
	}
#define POLICY(a, why)                                                                      \
	{                                                                                   \
		.action = XDP_##a, .verdict = AX_VERDICT_##a, .decided = AX_DECIDED_POLICY, \
		.reason = (why)                                                             \
	}
#define LET_THROUGH(why)                                                                           \
	{                                                                                          \
		.action = XDP_PASS, .verdict = AX_VERDICT_PASS, .decided = AX_DECIDED_LET_THROUGH, \
		.reason = (why)                                                                    \
	}

/* How many bytes were written to a ring so far. */
unsigned long ring_position(int fd);

/* Explains it and runs it: all as expected, and nothing more. *out is how it goes out. */
void judge_frame(const char *spec, const struct frame_bytes *f, const struct expect *x,
		 struct frame_bytes *out);

/* The same with a frame as text; one that passes or is dropped stays as it is. */
void judge(const char *spec, const struct expect *x);

/* It goes out as `expected`. */
void judge_turns(const char *spec, const struct expect *x, const char *expected);

#endif
