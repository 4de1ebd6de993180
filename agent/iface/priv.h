/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Between the files of this room only. */
#ifndef AX_IFACE_PRIV_H
#define AX_IFACE_PRIV_H

#include "compile/compile.h"
#include "datapath/xdp_datapath.h"
#include "iface/iface.h"

struct xdp {
	const struct instance *inst;
	char ifname[32];
	unsigned ifindex;
	struct datapath_xdp d;
	struct generation g; /* the one that judges */
	bool read;	     /* its list, by xdp_refresh(), */
	uint32_t changes;    /* with so many entries of the journal: */
	struct rule_list list;
	struct strv names; /* of its counters */
	struct ring_buffer *captures, *triggers;
	int capture_lock; /* -1: not read by us */
	struct xdp_reader {
		int (*capture)(void *arg, const struct ax_capture *c, const uint8_t *data,
			       const char *rule);
		int (*trigger)(void *arg, const struct ax_capture *c, const uint8_t *data);
		void *arg;
		int result;
	} reader;
};

/* What a generation calls its list's things. */
struct xdp_binding {
	struct rule_binding *rules; /* n_rules + 1 */
	struct real_binding *reals; /* of the balancers' backends, in the list's order */
	size_t n_reals;
	uint16_t *fresh; /* counters that start at zero */
	size_t n_fresh;
	uint16_t *fresh_reals;
	size_t n_fresh_reals;
	uint16_t fresh_slots[AX_SLOTS];
	size_t n_fresh_slots;
};
void xdp_binding_free(struct xdp_binding *b);
/* Finds numbers for everything in the list: what the current generation (old, whose list is
 * old_list; NULL: none) has by the same name keeps its number. `counters`: how many there may be.
 */
int xdp_bind(const struct rule_list *l, const struct generation *old,
	     const struct rule_list *old_list, uint32_t counters, const struct datapath_apps *apps,
	     struct xdp_binding *b, struct error *e);

/* --- map_size.c --- */
bool xdp_has_nat(const struct rule_list *l);
bool xdp_routes(const struct rule_list *l);	/* some rule has the action `route`, */
bool xdp_challenges(const struct rule_list *l); /* `challenge` */
/* Its programs ask which packets are for exposed ports. */
bool xdp_asks_exposed(const struct rule_list *l);
/* The entries that maps need for a list (0: it does not matter), with that many rules of another
 * list besides. `nat`: some list of the instance has NAT, whose answers may come in here; `flows`:
 * it keeps flows. */
void xdp_sizes(const struct rule_list *l, size_t more_rules, bool nat, bool flows,
	       uint32_t sizes[XDP_MAPS]);
uint32_t xdp_map_entries(int map); /* 0: cannot be asked */
struct xdp_growth {
	int old[XDP_MAPS]; /* maps whose place bigger ones have taken in d */
};
void xdp_growth_init(struct xdp_growth *g);
void xdp_growth_free(struct xdp_growth *g);
int xdp_grow(const struct instance *inst, struct datapath_xdp *d, const uint32_t sizes[XDP_MAPS],
	     struct xdp_growth *g, struct error *e);
/* Ends what a command began that was killed after its list was in place, but not all its maps. */
int xdp_mend(struct datapath_xdp *d);
/* To be called when no packet is counted in the old maps any more. */
int xdp_grown(const struct datapath_xdp *d, const struct xdp_growth *g, const uint16_t *fresh,
	      size_t n_fresh, struct error *e);

/* --- answers.c: NAT's answers, which come in by any interface --- */
/* Notes which addresses a list's NAT gives as sources. To be called before it judges. */
int xdp_answers_note(const struct datapath_xdp *d, const struct xdp_binding *b,
		     const struct rule_list *l);
/* The instance has its first list with NAT: the other interfaces' lists are to turn answers back
 * too. Not to be called under a lock. */
void xdp_answers_spread(const struct instance *inst, const char *ifname,
			const struct xdp_load_options *o);

/* --- timed.c: sets that elements come to for a time --- */
/* Gives each of the new layout's timed sets the slot that the former list's of that name has, or
 * one that nobody has, which is emptied. `old` NULL: there is no former list. */
int xdp_bind_timed(const struct datapath_xdp *d, struct ax_layout *layout,
		   const struct rule_list *l, const struct ax_layout *old,
		   const struct rule_list *old_list);

/* --- states.c --- */
/* Whether it is to keep flows itself (enum list_track). */
bool xdp_keeps_flows(const struct rule_list *l);
/* Has the new layout's programs do that with flows; the maps are the instance's, if it does. */
int xdp_bind_flows(const struct datapath_xdp *d, struct ax_layout *layout, enum ax_flows flows);

/* --- groups.c --- */
/* Which rules are not for this interface's group, now. -ENOENT: a group's name is nobody's. */
int xdp_bind_groups(const struct rule_list *l, unsigned ifindex, struct rule_binding *rules,
		    struct error *e);
/* Whether other rules of the generation's list are for this interface now than when it was made. */
bool xdp_groups_differ(const struct generation *g, const struct rule_list *l, unsigned ifindex);

/* neighbours.c: an interface's list has become another one (NULL: none). */
void xdp_neighbours(const struct instance *inst, const char *ifname, const struct rule_list *old,
		    const struct rule_list *now);

/* change_set.c: whether the list that judges has become another one by changes of its sets. */
bool xdp_change_elements(const struct generation *g, const char *ifname,
			 const struct rule_list *old, const struct rule_list *new,
			 const struct xdp_load_options *o);

/* cut_off.c: whether xdp_warn_cut_off() looks at what becomes of an address or port of these. */
bool xdp_may_cut_off(const char *ifname, const struct set_change *ch, size_t n,
		     const struct xdp_load_options *o);
/* Warns of what a list cuts off that the one before it (NULL: none) let in. */
void xdp_warn_cut_off(const char *ifname, const struct generation *new,
		      const struct generation *old, const struct xdp_load_options *o);

/* The entry of the root's program array that judges now. */
enum ax_jump xdp_jump(const struct datapath_xdp *d);
/* The arena's action of a rule of the list (n_rules: the default); NULL: it cannot be reached. */
const struct ax_action *xdp_action(const struct generation *g, size_t rule);
/* The list of a generation. */
int xdp_generation_list(const struct generation *g, struct rule_list *l);
/* Reads list and names, unless they are read and what judges now has not changed since. */
int xdp_refresh(struct xdp *x);

/* read.c: the names of the rules that the explanation's answer x->g gave. */
int xdp_name_explanation(struct xdp *x, struct xdp_explanation *ret);

/* --- locked.c: what changes an interface does it under its lock --- */

int xdp_lock(const struct instance *inst, const char *ifname, int *fd, struct error *e);
int xdp_index(const char *ifname, unsigned *ifindex, struct error *e);
/* -ENODEV with a sentence. */
int xdp_no_interface(const char *ifname, struct error *e);
/* Sets the sentence: -ENOENT. */
int xdp_not_loaded(const struct instance *inst, const char *ifname, struct error *e);
/* Opens the interface's dataplane, under the lock. -ENOENT: nothing is loaded; what an interface
 * of the same name left behind is cleared away. -EEXIST: the pins are another's. */
int xdp_open_locked(const struct instance *inst, const char *dir, unsigned ifindex,
		    struct datapath_xdp *d, struct error *e);
/* Locks it and opens what is loaded; `dir`: of its pins. -ENOENT with a sentence. */
int xdp_open_for(const struct instance *inst, const char *ifname, int *lock, unsigned *ifindex,
		 char *dir, size_t size, struct datapath_xdp *d, struct error *e);
/* Nobody confirmed in time, and the root program has gone back to the former list already: now
 * that is written down. -ENOENT: there was none before, so nothing is loaded any more. */
int xdp_settle(struct datapath_xdp *d);
/* Of the network namespace that we are in; 0: not to be had. */
uint64_t xdp_own_netns_cookie(void);
int xdp_remove_all(const char *dir, unsigned ifindex, struct error *e);

/* tap.c: a generation that passes what the filter's conditions hold for, and drops the rest. Of x,
 * its sets are asked, and its layout says where we are. */
int xdp_tap_filter(const struct xdp *x, const struct rule *filter, struct generation *g,
		   struct error *e);

/* foreign.c: the id of what is attached: a program, or the dispatcher that has several. -ENOENT:
 * nothing is, and *e is as it was. */
int xdp_foreign_id(const char *ifname, unsigned ifindex, uint32_t *id, struct error *e);

/* apply.c */
/* The kernel's CONFIG_HZ: its coarse clocks move with the ticks. */
uint32_t xdp_ticks_per_second(void);
/* xdp_apply() under the lock. */
int xdp_apply_locked(const struct instance *inst, const char *ifname, const struct rule_list *l,
		     const struct xdp_load_options *o, struct error *e);

#endif
