/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The rule compiler: a rule list to the arena and layout of include/xdp.h. No side effects; what it
 * looks at besides is the machine's time zone.
 */
#ifndef AX_COMPILE_COMPILE_H
#define AX_COMPILE_COMPILE_H

#include "base/lazy_view.h"
#include "rules/list.h"

/* Memory that grows; what is in it is found by its offset. Starts zeroed. */
struct arena {
	uint8_t *data;
	size_t size, cap;
};
void arena_free(struct arena *a);
/* Offset of `size` zeroed bytes, aligned to `align` (a power of two), or -ENOMEM, -EFBIG (above
 * ARENA_MAX). Pointers into data are invalid after it. */
int64_t arena_add(struct arena *a, size_t size, size_t align);
#define ARENA_MAX (448u << 20) /* the verifier follows offsets below 512 MiB (BPF_MAX_VAR_OFF) */

/* What the kernel's maps call the things that a rule names; one for each rule and the default. */
struct rule_binding {
	uint16_t counter; /* struct ax_action.counter */
	uint16_t target;  /* devices, cpus; balancers: ignored */
	uint16_t slot;
	bool off; /* it is for interfaces of other groups: no packet is its */
};
/* The same of each backend of each balancer, in the list's order. */
struct real_binding {
	uint16_t slot;	       /* its number in the flow table and the counters */
	struct ax_addr source; /* our own address on the way there; zero: there is no way */
	bool app;	       /* NAT: an app of this machine, whatever source the balancer says */
};

/*
 * Compiles. `bind` has n_rules + 1 entries; `reals` may be NULL when there are no backends. *layout
 * and *a are set on success; the layout is at the arena's start too. -E2BIG with a sentence when
 * the list is too big.
 */
int rule_compile(const struct rule_list *l, const struct rule_binding *bind,
		 const struct real_binding *reals, struct arena *a, struct ax_layout *layout,
		 struct error *e);

/* --- patch.c: elements of sets, in an arena that packets are judged by --- */

struct set_change {
	const char *set;
	bool gone;			     /* else they come */
	const struct rule_set_def *elements; /* of the same kind; sorted */
};
struct set_changed {
	enum set_kind kind;
	size_t n;	/* elements of the set then */
	size_t missing; /* of what was to go */
};
/* Returns 1 when all is done (or was so already), 0 when the list has to be compiled anew for it,
 * or a negative errno; then nothing is changed. `ret` has an entry for each change. `arena` is
 * writable; one at a time may do this. Little of it is looked at. */
int arena_change_sets(struct lazy_view *arena, const struct set_change *ch, size_t n,
		      struct set_changed *ret);
/* How many elements a set has. -ENOENT: the list has no such set. */
int arena_set_size(struct lazy_view *arena, const char *name, size_t *ret);
/* The arena's list. */
int arena_list(const uint8_t *arena, struct rule_list *l);

/* balance.c: the balancers' part. Called by rule_compile(). */
int balancers_compile(const struct rule_list *l, const struct real_binding *reals, struct arena *a,
		      struct ax_layout *layout, struct error *e);

#endif
