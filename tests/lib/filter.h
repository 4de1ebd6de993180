/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * For the filter's tests: a rule list on a veth of a namespace of the test's own, and frames that
 * are run through the loaded program as if they had come in.
 */
#ifndef AX_TESTS_FILTER_H
#define AX_TESTS_FILTER_H

#include <stdint.h>

#include "datapath/xdp_datapath.h"
#include "iface/iface.h"
#include "tests/lib/frame_text.h"

#define IFNAME "xf0" /* the rules' */
#define TARGET "xt0" /* where they redirect to */

/* The test's own; x, maps, g and dir are those of what is loaded. */
struct filter_world {
	struct instance inst;
	struct xdp *x;
	struct datapath_xdp maps;
	struct generation g;
	char dir[256];
	enum xdp_direction direction; /* that lists are put to and run for */
};
extern struct filter_world filter;

int filter_setup(void **state);
int filter_teardown(void **state);

/* From now on lists are for what leaves, or for what comes in (as they are from the start); those
 * of the other direction stay. To be a test's setup and teardown. (What cannot be in a list for
 * what leaves: a rule that reflects passes there.) */
int filter_to_egress(void **state);
int filter_to_ingress(void **state);
/* The place of lists now. */
const char *filter_place(void);

/* Closes what reopening looks at. */
void filter_forget(void);
/* Looks at what is loaded again. */
void filter_reopen(void);

/* Puts a list there; -errno with an error when it is refused. Nothing is reopened. */
int filter_try_load(const char *text, const struct xdp_load_options *o, struct error *e);

/* Puts a list there, in the former one's place if there is one. */
void filter_load(const char *text);

/* The same, unless it is what this put there last. */
void filter_load_once(const char *text);

/* Everything anew: no counts, no limits. */
void filter_load_afresh(const char *text);

/* What is counted for a rule of the loaded list, and for a class of odd packets. */
struct ax_rule_count filter_rule_count(const char *name);
uint64_t filter_reason_count(enum ax_reason reason);

/* As the agent does: this host has that address, and at it, or at `at` ("0.0.0.0", "::"), exposes a
 * port, by one interface (0: by all). The loaded list has `exposed: pass`. */
void filter_expose(const char *host, const char *at, uint8_t proto, uint16_t port,
		   unsigned ifindex);

/* The action of a program, in the words of XDP; how the frame goes out is in *out, which may be
 * NULL. */
uint32_t filter_run_frame(int prog, const struct frame_bytes *in, struct frame_bytes *out);

/* The action that a frame gets from the loaded list, nothing else looked at. */
uint32_t filter_run(const char *spec);

#endif
