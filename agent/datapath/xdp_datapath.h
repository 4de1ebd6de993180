/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The XDP dataplane of one interface in the kernel: maps and their pins, generations, and the root
 * program on the interface. Below the room iface, which knows rules; nobody else needs it.
 *
 * Pins: <bpffs>/<instance>-xdp/<interface>/ holds the maps that stay (by their names), "jumps" and
 * "variables" of the root program, and "root", the root program itself. A generation needs no pin:
 * "jumps" holds its program, the program its maps. The NAT tables are the instance's, in
 * <bpffs>/<instance>-xdp/all-interfaces-nat, -nat_fragments and -nat_sources, because answers come
 * in by other interfaces; while no list of the instance has a NAT balancer, interfaces have small
 * ones of their own in the place of these. So it is with all-interfaces-exposed, -exposed_ports and
 * -ways, and with the flows that lists keep (-tracked_tcp, -tracked_other and -begun).
 *
 * The same of the list for packets that leave it is in <interface>:direction-egress/. Its root and
 * its generations are programs of tc; what names an interface here takes both (base/place.h).
 */
#ifndef AX_DATAPATH_XDP_DATAPATH_H
#define AX_DATAPATH_XDP_DATAPATH_H

#include "balance.h"
#include "expose.h"
#include "flow_state.h"
#include "route.h"
#include "machine/instance.h"
#include "base/lazy_view.h"
#include "base/place.h"
#include "base/xdp_mode.h"
#include "datapath/program.h"
#include "xdp.h"
#include "xdp_tap.h"

enum xdp_map {
	XDP_MAP_RULE_COUNTS,
	XDP_MAP_REASON_COUNTS,
	XDP_MAP_LIMITS,
	XDP_MAP_SOURCE_LIMITS,
	XDP_MAP_CAPTURES,
	XDP_MAP_TRIGGERS,
	XDP_MAP_SLOTS,
	XDP_MAP_DEVICES,
	XDP_MAP_CPUS,
	XDP_MAP_REDIRECTED,
	XDP_MAP_IFINDEXES,
	XDP_MAP_FLOWS4,
	XDP_MAP_FLOWS6,
	XDP_MAP_REAL_COUNTS,
	XDP_MAP_NAT, /* this and the next three: see datapath_xdp_shared() */
	XDP_MAP_NAT_OPENING,
	XDP_MAP_NAT_FRAGMENTS,
	XDP_MAP_NAT_SOURCES,
	XDP_MAP_EXPOSED, /* the instance's too, where lists let exposed ports through */
	XDP_MAP_EXPOSED_PORTS,
	XDP_MAP_LEARNED, /* include/xdp.h: struct ax_timed_set */
	XDP_MAP_HELD,
	XDP_MAP_LEARNED_FLOWS,
	XDP_MAP_HELD_FLOWS,
	XDP_MAP_TIMED_SLOTS,
	XDP_MAP_WAYS, /* the instance's, where lists route: see include/route.h */
	/* the instance's, where lists keep flows: see include/flow_state.h */
	XDP_MAP_TRACKED_TCP,
	XDP_MAP_TRACKED_OTHER,
	XDP_MAP_BEGUN,
	XDP_MAP_JUMPS,	   /* from here on: see datapath_xdp_open_root() */
	XDP_MAP_VARIABLES, /* struct ax_root */
	XDP_MAP_CARRIED,   /* what rules counted before their counters' map was replaced */
	XDP_MAPS
};

struct datapath_xdp {
	char dir[256]; /* pins */
	bool egress;   /* of the list for what leaves */
	int map[XDP_MAPS];
	struct ax_root *root; /* mapped memory of XDP_MAP_VARIABLES */
};

/* The directory of an interface's pins, and of all of the instance (ifname NULL). */
int datapath_xdp_dir(const struct instance *inst, const char *ifname, bool make, char *ret,
		     size_t size, struct error *e);
/* Whether those are of a list for what leaves. */
bool datapath_xdp_dir_is_egress(const char *dir);
/* The place that a directory of pins is named after. */
void datapath_xdp_place_of(const char *name, char ret[PLACE_MAX]);
/* An interface may have been renamed since it was loaded (xdp_pin_names.c). */
/* The interface that has the root program pinned in `dir`; `first` is asked first. 0: none. */
unsigned datapath_xdp_holder(const char *dir, unsigned first);
/* Turns the directory where the pins of an interface belong into the one where they are. */
void datapath_xdp_find(char *dir, size_t size, unsigned ifindex);
/* Moves them where they belong, and out of the way what belongs elsewhere. */
int datapath_xdp_follow(const struct instance *inst, const char *dir, unsigned ifindex,
			struct error *e);
void datapath_xdp_init(struct datapath_xdp *d);
void datapath_xdp_close(struct datapath_xdp *d);
/* Opens what is pinned. -ENOENT: nothing is. */
int datapath_xdp_open(const char *dir, struct datapath_xdp *d);
/* Only what leads to the generations. */
int datapath_xdp_open_root(const char *dir, struct datapath_xdp *d);
/* The instance's own map of this kind, made if need be. Its descriptor, or a negative errno. */
int datapath_xdp_shared(const struct instance *inst, enum xdp_map m, struct error *e);
/* The key by which what begins flows is noted there, of lists that have the instance's maps. */
int datapath_xdp_flows_key(const struct datapath_xdp *d, __u64 key[2]);
/* Whether an interface has its own small one as long as its list does not need the instance's. */
bool datapath_xdp_is_shared(enum xdp_map m);
/* What the agent exposes now is what lists let through. 0, or a negative errno. (xdp_exposed.c) */
int datapath_xdp_exposed(const struct instance *inst, const struct datapath_xdp *d);
/* The maps of ways of all instances of this bpffs (include/route.h): f gets each, until it returns
 * non-zero. 0, what f returned, or a negative errno. (xdp_ways.c) */
int datapath_xdp_ways_each(const struct instance *inst, int (*f)(void *arg, int map), void *arg);
/* Takes away all ways out of the calling network namespace: lists route nothing, and leave it to
 * the kernel, until the ways are entered again. To be called by who makes the kernel forward what
 * it is then kept from forwarding (net/guard.h). */
void datapath_xdp_ways_shut(const struct instance *inst);
/* Whether the instance's maps are there: some list has, or had, a NAT balancer. */
bool datapath_xdp_has_nat(const struct instance *inst);
/* Makes the maps of a new interface, not pinned yet, with so many entries (0: as they are). */
int datapath_xdp_create(const struct instance *inst, const uint32_t sizes[XDP_MAPS],
			struct datapath_xdp *d, struct error *e);
/* Puts a map that took another's place where the other one is pinned. */
int datapath_xdp_repin(const struct datapath_xdp *d, enum xdp_map m);
/* A new program array, which no program has been in. */
int datapath_xdp_new_jumps(struct datapath_xdp *d);
/* Pins all maps in `dir`, in one step. */
int datapath_xdp_pin(struct datapath_xdp *d, const char *dir, struct error *e);
/* Removes the pins in a directory, and it. */
int datapath_xdp_unpin(const char *dir);
/* Those of an interface, and with the last one's the instance's. */
int datapath_xdp_remove(const char *dir);

bool datapath_xdp_watched(const char *dir);
/* From now on counts what the rules redirect but nobody sends, until the pins in `dir` are removed.
 * The dataplane works without (Linux 5.17). */
int datapath_xdp_watch(const struct datapath_xdp *d, const char *dir, uint64_t netns_cookie,
		       unsigned ifindex);

/* A program and its arena. */
struct generation {
	int prog, arena; /* descriptors, -1: none */
	int tell;	 /* of what leaves: the program that explains; 0: none */
	struct ax_layout layout;
	const uint8_t *data; /* the arena, mapped for reading; NULL: not mapped */
	size_t size;	     /* as mapped, whole pages */
};
void generation_close(struct generation *g);
/* Whether the kernel's connection tracking is there. (Programs cannot ask it on every kernel.) */
bool datapath_xdp_has_conntrack(void);
/* The same, and its types have what programs ask it by. (xdp_conntrack.c) */
bool datapath_xdp_can_ask_conntrack(void);
/* Loads a generation's programs over the maps of d; `size` bytes become its arena. States are asked
 * of the kernel's connection tracking too (layout.conntrack) where it is there now, unless the list
 * keeps flows (layout.flows). */
int generation_load(const struct datapath_xdp *d, const void *arena, size_t size,
		    const struct ax_layout *layout, struct generation *g, struct error *e);
/* The one in an entry of the root's program array. -ENOENT: none. */
int generation_get(const struct datapath_xdp *d, enum ax_jump jump, struct generation *g);
/* The same, but its arena is not mapped. */
int generation_get_layout(const struct datapath_xdp *d, enum ax_jump jump, struct generation *g);
/* The map that it has in this map's place: its descriptor, or a negative errno. */
int generation_map(const struct generation *g, enum xdp_map m);
/* Its arena, of which but those pages are mapped that are looked at: the kernel enters each page of
 * a mapping at once, which takes milliseconds for a large list. (xdp_view.c) */
struct generation_view {
	struct lazy_view v;
	const struct generation *g; /* borrowed */
	bool writable;
	size_t window;	/* bytes that are mapped in one piece */
	uint8_t *there; /* one for each window */
};
int generation_view_open(const struct generation *g, bool writable, struct generation_view *ret);
void generation_view_close(struct generation_view *w);
/* Puts it there (NULL: nothing). Returns when no CPU runs the former one any more. */
int generation_set(const struct datapath_xdp *d, enum ax_jump jump, const struct generation *g);
/* Runs it on a frame with an explanation's metadata, which says what it is to be taken for (not to
 * be asked: that of the caller's network namespace is). *out (malloc'ed) is the frame after it. */
int generation_explain(const struct generation *g, const void *frame, size_t len,
		       struct ax_explain *x, uint32_t *action, uint8_t **out, size_t *out_len);

/* The same of any program: as if the frame came in by the interface, where the kernel can do that.
 * -EINVAL: the kernel does not run a frame of that length. */
int datapath_xdp_run(int prog, unsigned ifindex, const void *frame, size_t len, uint32_t *action,
		     uint8_t **out, size_t *out_len);

/* --- a tap (xdp_tap.c), see include/xdp_tap.h --- */

struct ring_buffer;
struct tap;
struct datapath_tap {
	struct tap *skel;
	struct ring_buffer *ring;
	struct ax_tap_control *control; /* mapped memory */
	size_t cpus;
};
/* Loads it for the interface of d, whose generation is g; nobody comes by yet. `ring`: bytes, a
 * power of two of pages. f gets the records, and ends the reading by a negative result. */
int datapath_tap_open(const struct datapath_xdp *d, const struct generation *g,
		      const struct ax_tap_options *o, uint32_t ring,
		      int (*f)(void *arg, void *record, size_t size), void *arg,
		      struct datapath_tap *t, struct error *e);
void datapath_tap_close(struct datapath_tap *t);
/* What the tap asks whether a packet is wanted: a generation over other maps than the interface's.
 */
int datapath_tap_filter(const struct datapath_tap *t, const struct generation *wanted);
/* From now on the list g, which is current, tells what it decides, until another one is. To be
 * called under the interface's lock. */
int datapath_tap_tell(const struct datapath_tap *t, const struct datapath_xdp *d,
		      const struct generation *g);
/* Packets come by, or do not any more. -E2BIG: another version of ax put the root there. To be
 * called under the interface's lock. */
int datapath_tap_turn(const struct datapath_tap *t, const struct datapath_xdp *d, bool on);
/* Hands what is there to f. */
int datapath_tap_read(const struct datapath_tap *t);
/* All that was counted since it was opened. */
int datapath_tap_count(const struct datapath_tap *t, struct ax_tap_count *ret);

/* --- watching programs of others (xdp_foreign.c), see xdp/foreign.bpf.c --- */

struct foreign;
struct perf_buffer;
#define PARTS_MAX 10 /* of libxdp */
struct datapath_foreign {
	struct ax_foreign_options options;
	struct foreign *maps;		  /* no program of it is loaded: it has the maps, */
	struct foreign *on;		  /* over which this one watches what is attached, */
	struct foreign *parts[PARTS_MAX]; /* and these what the dispatcher has in it */
	size_t n_parts;
	struct perf_buffer *packets;
	size_t cpus;
	int (*f)(void *arg, void *record, size_t size);
	void *arg;
};
/* Nothing is watched yet. `ring`: bytes for what was not read yet, of all CPUs together; f gets the
 * records, which lie at any address, and ends the reading by a negative result. */
int datapath_foreign_open(const struct ax_foreign_options *o, uint32_t ring,
			  int (*f)(void *arg, void *record, size_t size), void *arg,
			  struct datapath_foreign *t, struct error *e);
void datapath_foreign_close(struct datapath_foreign *t);
/* From now on this program is watched, instead of the one before. The ids of those that a
 * dispatcher has in it: the last one to run is told by its place; one that cannot be watched never
 * is. -ENODATA: it has no types, by which the kernel would know its packets; else the kernel does
 * not let it be watched. The one before is watched on then. */
int datapath_foreign_watch(struct datapath_foreign *t, int prog, const uint32_t *parts, size_t n);
/* Hands what is there to f. */
int datapath_foreign_read(const struct datapath_foreign *t);
/* From now on one packet of so many is told of. */
int datapath_foreign_sample(const struct datapath_foreign *t, uint32_t n);
/* All that was counted since it was opened. */
int datapath_foreign_count(const struct datapath_foreign *t, struct ax_tap_count *ret);

/* --- apps of this machine as backends (xdp_apps.c), as the agent told the kernel of them --- */

struct datapath_apps {
	int vips;		/* map of the agent's dataplane, -1: there is none */
	struct ax_addr source4; /* what balancers send to apps from; */
	struct ax_addr source6; /* zero: the agent leads none there */
	unsigned ifindex;	/* and by which device, 0: none */
};
enum datapath_app { DATAPATH_NO_APP, DATAPATH_APP_HOST, DATAPATH_APP_PRIVATE };
/* Never fails: without an agent there are no apps. */
void datapath_apps_open(const struct instance *inst, struct datapath_apps *a);
void datapath_apps_close(struct datapath_apps *a);
/* Whose address it is; declared apps count as running ones. */
enum datapath_app datapath_apps_find(const struct datapath_apps *a, const struct ax_addr *addr);

/* --- the interface (xdp_attach.c) --- */

struct datapath_xdp_programs {
	struct xdp_program_info *v;
	size_t n;
	enum xdp_mode mode;
	bool dispatcher, frags;
};
void datapath_xdp_programs_free(struct datapath_xdp_programs *p);
/* What is on the interface, in the order in which it runs; `ours`: the id of our root, 0: none. */
int datapath_xdp_programs(unsigned ifindex, uint32_t ours, struct datapath_xdp_programs *p);
/* Whether a program runs on the interface, alone or in libxdp's dispatcher. */
bool datapath_xdp_is_on(unsigned ifindex, uint32_t id);
/* The same of the direction that a list with its pins in `dir` has. */
int datapath_list_programs(const char *dir, unsigned ifindex, uint32_t ours,
			   struct datapath_xdp_programs *p);
bool datapath_list_is_on(const char *dir, unsigned ifindex, uint32_t id);
/* The id of the pinned root program. -ENOENT. */
int datapath_xdp_root_id(const char *dir, uint32_t *id);
/* Pins the root program if it is on the interface without a pin: of a load that was killed. */
int datapath_xdp_adopt(const struct datapath_xdp *d, unsigned ifindex);
/*
 * Attaches the root program, whose maps are those of d, and pins it as dir/root. *mode is what was
 * asked for and then what it became. A program array takes only programs that were all loaded with
 * BPF_F_XDP_HAS_FRAGS, or none (Linux 5.18): alone, the root is loaded with it; in a dispatcher it
 * cannot be, and the dispatcher has it. So generations must be loaded as it will be, which
 * kernel_has_freplace() tells beforehand; -EINVAL may mean that it was wrong.
 */
int datapath_xdp_attach(struct datapath_xdp *d, const char *dir, unsigned ifindex,
			enum xdp_mode *mode, uint32_t priority, bool replace, struct error *e);
/* Detaches it. -ENOENT: it is not there. */
int datapath_xdp_detach(const char *dir, unsigned ifindex, struct error *e);

/* Tells of each feature of the packet dataplane, until `report` returns non-zero. Needs root. */
struct feature_report;
int datapath_xdp_doctor(int (*report)(void *arg, const struct feature_report *f), void *arg);

#endif
