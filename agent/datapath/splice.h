/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Splicing in the kernel (sockops/sk_msg.bpf.c, include/splicing.h): an object of its own beside
 * the dataplane, which is loaded only when connections may be spliced. What it does outlives the
 * handle: members stay members when the agent dies, and send by TCP until there is another one.
 */
#ifndef AX_DATAPATH_SPLICE_H
#define AX_DATAPATH_SPLICE_H

#include "datapath/datapath.h"
#include "splicing.h"

struct splice;

/* 0, or why nothing can be spliced on this kernel whatever the programs do (-EOPNOTSUPP, with a
 * sentence): before Linux 6.5 an iterator over sockets may not make members of them. */
int datapath_splice_supported(struct error *e);

/*
 * Loads the programs, attaches them to the instance's cgroup and pins maps and link beside the
 * dataplane's; what an earlier agent pinned is taken over, with its members. (Those go on with the
 * program that they joined with.) Nothing is redirected until datapath_splice_redirect().
 * members_max: 0 is AX_SPLICE_MEMBERS_MAX; of maps that are taken over it is what they were made
 * with. dp must stay open for as long as the handle.
 */
int datapath_splice_open(struct datapath *dp, uint32_t members_max, struct splice **ret,
			 struct error *e);
/* Closes descriptors only: changes nothing. NULL is fine. */
void datapath_splice_close(struct splice *s);
/* Without a handle: no more is redirected and nobody is told any more; members stay members until
 * they close, the maps until datapath_remove(). 0 if there was nothing, or a negative errno. */
int datapath_splice_stop(struct datapath *dp);

/* Tries the programs on this kernel, as datapath_doctor() does: calls report for each. */
int datapath_splice_doctor(int (*report)(void *arg, const struct feature_report *f), void *arg);

/* Connections of this app (0: of every app) are worth a look, or no more. */
int datapath_splice_app_set(struct splice *s, uint32_t app, bool on);
/* Forgets what an earlier agent said of apps: none is worth a look. */
int datapath_splice_apps_clear(struct splice *s);
/* The switch for all members, who look at it with each message. As long as it is on, they also look
 * whether the process that has said so lives: else somebody might wait for it to be woken. What
 * waits to be read when it is switched off may be followed by more of its kind until it was read.
 */
int datapath_splice_redirect(struct splice *s, bool on);

/* Descriptor to poll (epoll, level): readable when a connection that is worth a look was
 * established. It is the handle's. Negative errno. */
int datapath_splice_events_fd(struct splice *s);
/* To be called when it is readable: what was told (enum ax_splice_told), which is not told again
 * until datapath_splice_listen(); or a negative errno. */
int datapath_splice_events_read(struct splice *s);
/* Who was told of a connection and is going to look need not be told of more: takes the program off
 * that sees each one, which costs them more than a look does. */
int datapath_splice_rest(struct splice *s);
/* To be called before looking, when all events were read: lets the programs tell again. */
int datapath_splice_listen(struct splice *s);

/* Established TCP connections between addresses of apps in a network namespace (-1: the caller's),
 * and members in any state. Calls f for each, until that returns non-zero, and returns that. The
 * record is only f's while it runs. Takes a millisecond and more (the kernel's whole table). */
int datapath_splice_conns_each(struct splice *s, int netns_fd,
			       int (*f)(void *arg, const struct ax_splice_conn *c), void *arg);

/* An end of a connection that shall join. */
struct splice_end_ref {
	uint64_t cookie;
	uint64_t sk;  /* ax_splice_conn.sk */
	int netns_fd; /* -1: the caller's; not taken over */
	int result;   /* set by datapath_splice_join(): 0: a member, -ENOENT: gone, or another
			 negative   errno, see struct ax_splice_joined */
};
struct splice_pair {
	struct splice_end_ref a, b;
};
/* Makes both ends of each pair members of each other. An end that cannot leaves the other one a
 * member that passes everything on. Pairs may be as many as there are; each namespace that they
 * name is walked once for AX_SPLICE_WANTED_MAX ends. Namespaces are told apart by their
 * descriptors' numbers: pairs of one should name the same. 0 or a negative errno of the whole, then
 * some may have joined. */
int datapath_splice_join(struct splice *s, struct splice_pair *pairs, size_t n);
/* Both ends of each pair send by TCP, as they do when redirecting is switched off; what was handed
 * on stays to be read first. They stay members, and may join each other again. Only cookie and
 * netns_fd count; results as above, -ENOENT also of a socket that is no member. */
int datapath_splice_part(struct splice *s, struct splice_pair *pairs, size_t n);

/* --- how large the messages are that connections' ends send (splice_sizes.c) --- */

/* Counts them from now on, for n cookies of sockets (AX_SPLICE_SIZES_MAX at most; more are not
 * counted). Every send() of the machine costs a little more until it ends: to be done for moments.
 * -EOPNOTSUPP: this kernel does not tell (before Linux 6.3). */
int datapath_splice_sizes_begin(struct splice *s, const uint64_t *cookies, size_t n);
/* Of one of those, so far: zeros for others. */
struct ax_splice_size datapath_splice_size(struct splice *s, uint64_t cookie);
void datapath_splice_sizes_end(struct splice *s);

int datapath_splice_counters(struct splice *s, struct ax_splice_counted ret[AX_SPLICE_COUNTS]);
/* "redirected", "passed", ...; "?" for other numbers. */
const char *datapath_splice_counter_name(unsigned counter);
/* For a reason (AX_SPLICE_OFF and above): what to tell the user, "the other end set SO_RCVLOWAT".
 */
const char *datapath_splice_counter_text(unsigned counter);

/* --- for any process of root that asks about connections of the instance's apps, at no cost to the
 * agent (splice_peer.c) --- */
struct splice_peers {
	const struct instance *inst;
	int vips;	    /* -1: not open (yet); what was closed by somebody is opened anew */
	uint64_t looked_ns; /* when that was tried last, and by which process */
	int looked_by;
};
/* Whether a connection with that address may be of spliced ends, now or within a moment: something
 * may be spliced at all, and it is an app's address or a service's. */
bool datapath_splice_may_be(struct splice_peers *p, const struct ax_addr *remote);

/* --- the same programs for the gate: nothing is pinned, all ends with the handle (or the process)
 * --- */
struct splice_gate;

/*
 * Loads the programs with maps of their own. cgroup_fd: TCP sockets of processes in that cgroup
 * become members when they are established, with whichever socket of the same network namespace has
 * the mirrored addresses; -1: only those of datapath_splice_gate_join() do. Redirecting is as
 * given. Works after fork() in the children too.
 */
int datapath_splice_gate_open(int cgroup_fd, bool redirect, struct splice_gate **ret,
			      struct error *e);
/* From now on it is the sockets of that cgroup that become members; -1: none do. 0 or a negative
 * errno. */
int datapath_splice_gate_cgroup(struct splice_gate *g, int cgroup_fd);
/* The two ends of an established TCP connection, descriptors of the caller's process and sockets of
 * one network namespace, become members of each other. Takes less than a millisecond, on every
 * kernel. */
int datapath_splice_gate_join(struct splice_gate *g, int a, int b);
int datapath_splice_gate_redirect(struct splice_gate *g, bool on);
/* All counts of this gate so far; [AX_SPLICE_JOINED] is of sockets. */
int datapath_splice_gate_counted(struct splice_gate *g,
				 struct ax_splice_counted ret[AX_SPLICE_COUNTS]);
/* Members become plain TCP again; what is unread of redirected data is lost. NULL is fine. */
void datapath_splice_gate_close(struct splice_gate *g);

#endif
