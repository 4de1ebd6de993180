/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The XDP dataplane of interfaces of the caller's network namespace. No agent is needed: all state
 * is pinned below <bpffs>/<instance>-xdp/<interface>/ ('.' in its name as ':', because bpffs has no
 * dots), and every call finds it there. Changes to an interface are serialised by a lock.
 */
#ifndef AX_IFACE_IFACE_H
#define AX_IFACE_IFACE_H

#include "machine/instance.h"
#include "compile/compile.h"
#include "datapath/program.h"
#include "rules/list.h"
#include "xdp_tap.h"

struct xdp; /* an interface whose dataplane is loaded; descriptors only */

struct xdp_load_options {
	bool replace;  /* take the place of another's program */
	bool force;    /* load although the preflight check says that packets will be lost */
	bool fix;      /* let the preflight check repair what it can */
	bool fresh;    /* -EEXIST if there is a list already */
	pid_t session; /* a process in the SSH session that must not be cut; 0: the caller; -1:
			  there is none */
	uint32_t confirm_ms; /* 0: for good; else the former list comes back after that time */
	/* Called with sentences about what was found and done; may be NULL. */
	void (*say)(void *arg, const char *sentence);
	void *arg;
};

/* Puts a list on an interface: attaches the dataplane if need be, else swaps the list in one step.
 * -EBUSY: another's program is there (named in the error); -EINPROGRESS: a confirmation is open;
 * -ENOLINK: packets would be lost, and neither fix nor force was of help. */
int xdp_apply(const struct instance *inst, const char *ifname, const struct rule_list *l,
	      const struct xdp_load_options *o, struct error *e);
/* Finds out anew between which interfaces lists with `action route` may route, of all instances; to
 * be called when interfaces came, went or changed. Each xdp_apply() does it. 0 or a negative errno.
 * (ways.c) */
int xdp_ways(const struct instance *inst);
/* Reads the list, lets `edit` change it, and applies it, under the interface's lock. edit returns
 * 0, or a negative errno with *e set, which ends it. */
int xdp_edit(const struct instance *inst, const char *ifname,
	     int (*edit)(void *arg, struct rule_list *l, struct error *e), void *arg,
	     const struct xdp_load_options *o, struct error *e);
/* Elements of sets come or go: at once, whatever the size of the sets, where that can be done
 * beside the packets that are judged. Returns 1 when all of it is done, with what has become of the
 * sets in ret[n]; 0: none of it is, and xdp_edit() has to do it, or to say why it cannot be done.
 */
int xdp_change_sets(const struct instance *inst, const char *ifname, const struct set_change *ch,
		    size_t n, const struct xdp_load_options *o, struct set_changed *ret);
/* --- elements for a time (timed.c) --- */
/* Puts addresses (or networks of the lengths that the set's elements have), or flows, into a set
 * for `ms` milliseconds, or renews them. -ENOENT: no such set; -EOPNOTSUPP: it takes none for a
 * time; -EINVAL: a prefix is none of these, or the set's elements are of another kind; -ENOSPC: too
 * many are there. */
int xdp_hold(const struct instance *inst, const char *ifname, const char *set,
	     const struct rule_set_def *elements, uint32_t ms, struct error *e);
/* Removes what is in these prefixes, or these flows, of what came to a set for a time. Returns how
 * many of the elements had any; 0 also where nothing comes to the set so, or no such elements. */
int xdp_let_go(const struct instance *inst, const char *ifname, const char *set,
	       const struct rule_set_def *elements, struct error *e);
struct xdp_timed_element {
	struct prefix prefix; /* unless it is a flow */
	struct ax_set_flow flow;
	bool is_flow;
	uint64_t left_ms;
	bool held; /* by a command; else a rule learned it */
};
/* What is in a set for a time, in order; n 0: nothing is. *ret is malloc'ed. */
int xdp_timed(struct xdp *x, const char *set, struct xdp_timed_element **ret, size_t *n,
	      struct error *e);

/* Ends a confirmation: the new list stays. -ENOENT: there is none, or it is too late. */
int xdp_confirm(const struct instance *inst, const char *ifname, struct error *e);
int xdp_rollback(const struct instance *inst, const char *ifname, struct error *e);
/* Takes off what is there of this instance, else the program that a repair put there
 * (PASS_PROGRAM). -ENOENT: neither is. */
int xdp_unload(const struct instance *inst, const char *ifname, struct error *e);

/* Names of interfaces that have a dataplane of the instance, in this network namespace. */
int xdp_interfaces(const struct instance *inst, struct strv *names, struct error *e);
/* Of those, the ones whose list has a set of that name. */
int xdp_interfaces_with_set(const struct instance *inst, const char *set, struct strv *names,
			    struct error *e);
/* Names under which lists of the instance are pinned that are on no interface of this network
 * namespace: on one of another namespace, or left by one that is gone. */
int xdp_elsewhere(const struct instance *inst, struct strv *names, struct error *e);
int xdp_open(const struct instance *inst, const char *ifname, struct xdp **ret, struct error *e);
void xdp_close(struct xdp *x);
static inline void xdp_closep(struct xdp **x)
{
	if (*x)
		xdp_close(*x);
}
/* The first rule that leads to an interface which is gone, or is another one now although it has
 * the same name: its packets are lost until the list is applied again. -1: none. */
int xdp_lost_target(struct xdp *x);
/* A backend of NAT that is an app of this machine now but was none when the list was applied, or
 * the other way about: it is not reached, or cannot answer, until the list is applied again. */
bool xdp_lost_app(struct xdp *x, struct ax_addr *which);
/* Rules want states, and since the list was applied the kernel's connection tracking has come, or
 * this host has begun to forward: what they know is not asked until the list is applied again. */
bool xdp_lacks_states(struct xdp *x);
/* Some rules ask for the interface's group, and since the list was applied that has become another
 * one, or its name has: other rules are for it then, once the list is applied again. (groups.c) */
bool xdp_lacks_group(struct xdp *x);
/* A rule asks for groups, and was not for this interface when the list was applied. */
bool xdp_rule_is_off(struct xdp *x, size_t rule);
int xdp_link_group(unsigned ifindex, uint32_t *group);
/* The list that judges now. */
int xdp_list(struct xdp *x, struct rule_list *l, struct error *e);

struct xdp_status {
	const char *ifname;
	unsigned ifindex;
	enum xdp_mode mode;  /* how it is attached */
	bool dispatcher;     /* libxdp's, else we are the only program */
	bool frags;	     /* jumbo frames in several buffers are taken */
	uint32_t generation; /* counts the lists so far */
	int64_t since;	     /* when this list came, UNIX seconds */
	uint64_t confirm_ms; /* until the former list comes back; 0: nothing is to be confirmed */
	size_t arena_size;
	uint32_t match;	 /* enum ax_match */
	uint32_t fields; /* bits by enum ax_field */
	bool conntrack;	 /* states are asked of the kernel's connection tracking, too, */
	bool flows;	 /* or of the flows that ax keeps */
	struct xdp_program_info *programs;
	size_t n_programs;
};
int xdp_status(struct xdp *x, struct xdp_status *ret, struct error *e);
void xdp_status_free(struct xdp_status *s);
/* Programs on an interface, whoever put them there (n 0: none). One of the instance's own, where
 * nothing is loaded, passes everything: it came with a list that nobody confirmed. */
int xdp_programs(const struct instance *inst, const char *ifname, struct xdp_program_info **ret,
		 size_t *n, enum xdp_mode *mode, bool *dispatcher, struct error *e);

struct xdp_backend_stats {
	char *balancer;
	struct ax_addr addr;
	uint16_t port;
	bool drain, down;
	uint64_t packets, bytes, flows; /* flows: new ones */
};
struct xdp_stats {
	struct strv names; /* of the rules in their order, then "default" */
	struct ax_rule_count *rules;
	uint64_t reasons[AX_REASONS];
	struct xdp_backend_stats *backends;
	size_t n_backends;
};
int xdp_stats(struct xdp *x, struct xdp_stats *ret, struct error *e);
void xdp_stats_free(struct xdp_stats *s);

/* The packet as it would be judged now; `out` (malloc'ed) is what it would be turned into. */
struct xdp_explanation {
	struct ax_explain x;
	uint32_t action; /* what the program returned: XDP_PASS ... */
	char *rule;	 /* its counter's name */
	char *quoted_rule;
	char *line; /* its canonical line, NULL: the default */
	uint8_t *out;
	size_t out_len;
};
int xdp_explain(struct xdp *x, const void *frame, size_t len, struct xdp_explanation *ret,
		struct error *e);
/* The same, as if it were of that state (AX_STATE_UNASKED: the host is asked), came in that
 * minute of the week (AX_TIME_UNKNOWN: now), and had that mark, if it leaves. */
struct xdp_assumed {
	enum ax_state state;
	uint16_t minute;
	bool for_us; /* its frame is addressed to the interface, whatever stands there */
	uint32_t mark;
};
int xdp_explain_as(struct xdp *x, const void *frame, size_t len, const struct xdp_assumed *as,
		   struct xdp_explanation *ret, struct error *e);
void xdp_explanation_free(struct xdp_explanation *x);

/* --- programs of others (foreign.c) --- */

struct xdp_foreign {
	unsigned ifindex;
	uint32_t id;
	int prog; /* what is attached: the only program, or libxdp's dispatcher */
	struct xdp_program_info *programs;
	size_t n;
	bool dispatcher;
};
/* What judges the interface's packets where no list of the instance does. -ENOENT: nothing, and *e
 * is as it was. */
int xdp_foreign_open(const struct instance *inst, const char *ifname, struct xdp_foreign *ret,
		     struct error *e);
void xdp_foreign_close(struct xdp_foreign *f);
/* The program itself runs: what it keeps in its maps it keeps of this frame, too. Of the answer
 * action, out and out_len are set; to be freed by xdp_explanation_free(). */
int xdp_foreign_run(const struct xdp_foreign *f, const void *frame, size_t len,
		    struct xdp_explanation *ret, struct error *e);

/* --- looking at packets (tap.c), see include/xdp_tap.h --- */

struct xdp_tap;
struct xdp_tap_options {
	const struct rule
		*filter; /* whose conditions a packet has to fulfil; NULL: all are wanted */
	uint32_t snap;	 /* bytes of a packet at most; 0: AX_CAPTURE_MAX */
	bool verdicts;	 /* what became of each is told, too */
	uint32_t ring;	 /* bytes for what was not read yet; a power of two of pages */
};
/* From now on the interface's packets are looked at, until xdp_tap_close() or the end of this
 * process, however it ends. x stays open for as long. -EBUSY: somebody else looks at them. */
int xdp_tap_open(struct xdp *x, const struct xdp_tap_options *o, struct xdp_tap **ret,
		 struct error *e);
void xdp_tap_close(struct xdp_tap *t);
static inline void xdp_tap_closep(struct xdp_tap **t)
{
	if (*t)
		xdp_tap_close(*t);
}
/* Calls f for what is there until it returns non-zero (which is returned). Does not wait, as
 * xdp_capture_read(). When the list has become another one, it follows. */
int xdp_tap_read(struct xdp_tap *t,
		 int (*f)(void *arg, const struct ax_tapped *p, const uint8_t *data), void *arg);
/* Looks at one packet of so many from now on. */
void xdp_tap_sample(struct xdp_tap *t, uint32_t n);
/* Since it was opened. */
int xdp_tap_count(struct xdp_tap *t, struct ax_tap_count *ret);
/* Whether the packets still come by: the program was not taken off the interface. */
bool xdp_tap_goes_on(struct xdp_tap *t);
/* Of an AX_TAPPED_OUT; 0, or -ESTALE: the list that decided is no more, or nothing was told. */
int xdp_tap_explain(struct xdp_tap *t, const struct ax_tapped *p, struct xdp_explanation *ret);

/* --- the same of programs of others (foreign_tap.c) --- */

struct xdp_foreign_tap;
/* verdicts are always told. -ENOENT: no program is there, and *e is as it was. Several at a time
 * can look. */
int xdp_foreign_tap_open(const struct instance *inst, const char *ifname,
			 const struct xdp_tap_options *o, struct xdp_foreign_tap **ret,
			 struct error *e);
void xdp_foreign_tap_close(struct xdp_foreign_tap *t);
static inline void xdp_foreign_tap_closep(struct xdp_foreign_tap **t)
{
	if (*t)
		xdp_foreign_tap_close(*t);
}
/* As xdp_tap_read(); the options' filter is asked here. */
int xdp_foreign_tap_read(struct xdp_foreign_tap *t,
			 int (*f)(void *arg, const struct ax_tapped *p, const uint8_t *data),
			 void *arg);
/* Looks at one packet of so many from now on. */
void xdp_foreign_tap_sample(struct xdp_foreign_tap *t, uint32_t n);
/* Since it was opened: what the filter wants (an estimate, where a part is looked at), and all. */
int xdp_foreign_tap_count(struct xdp_foreign_tap *t, struct ax_tap_count *ret);
int xdp_foreign_tap_came(struct xdp_foreign_tap *t, struct ax_tap_count *ret);
/* Looks whether another program is there now, and follows: 1, if one is. -ENOENT: none is any more;
 * or it cannot be watched: with a sentence. */
int xdp_foreign_tap_follow(struct xdp_foreign_tap *t, struct error *e);
/* Of an AX_TAPPED_OUT: which program was the last to see it. NULL: that is not known. */
const struct xdp_program_info *xdp_foreign_tap_by(const struct xdp_foreign_tap *t,
						  const struct ax_tapped *p);

/* --- captures --- */
/* Takes the interface's capture ring; -EBUSY: somebody reads it. */
int xdp_capture_open(struct xdp *x, struct error *e);
/* Calls f for what is there, in order, until it returns non-zero (which is returned). Does not
 * wait: the programs never wake a reader up, so look every 50 ms or so. */
int xdp_capture_read(struct xdp *x,
		     int (*f)(void *arg, const struct ax_capture *c, const uint8_t *data,
			      const char *rule),
		     void *arg);
/* The latest payloads: f gets the slot's name. */
int xdp_slots_each(struct xdp *x, int (*f)(void *arg, const char *name, const struct ax_slot *slot),
		   void *arg, struct error *e);
/* The trigger ring of an interface: this one does wake its reader, the agent. */
int xdp_triggers_fd(struct xdp *x);
int xdp_triggers_read(struct xdp *x,
		      int (*f)(void *arg, const struct ax_capture *c, const uint8_t *data),
		      void *arg);

#endif
