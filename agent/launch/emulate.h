/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * splice-emulation: splice(2) waits for ever for data that was handed from socket to socket
 * (ax-splice(7)), so for apps that ask for it a process of ax's moves such data instead. The app's
 * first process installs a filter, which all that it starts have too: the kernel asks the listener
 * about each splice() and sendfile(), which does the same from a socket to a pipe. Most answers are
 * that the kernel shall do it. A second process stands by, in case that the first one is killed,
 * and the launcher, while it lives, in case that both are. When nobody has the listener any more
 * the app's splice() fails with ENOSYS, as its io_uring always does.
 */
#ifndef AX_LAUNCH_EMULATE_H
#define AX_LAUNCH_EMULATE_H

#include "launch/parts.h"

/* In the child, as root: installs the filter and hands the listener to the other end of the gate.
 */
int emulate_ask(int gate, struct error *e);
/* What was asked about: sendfile(), else splice(). */
struct seccomp_data;
bool emulate_is_sendfile(const struct seccomp_data *d);
/* In the parent: waits for it, and returns the listener. If the child gave up instead, *e is what
 * it said. */
int emulate_receive(int gate, struct error *e);

/* Starts the process that answers, in the app's instance's cgroup of supervisors, and a thread that
 * starts the next one when nobody stands by any more. The process stays until the last one that has
 * the filter is gone, the thread no longer than *ret, which the session has to outlive. The
 * listener becomes *ret's. */
struct emulation;
int emulate_start(const struct launch_session *s, int listener, struct emulation **ret,
		  struct error *e);
void emulate_leave(struct emulation *m);

/* --- one call (splice_call.c) --- */

struct splice_call {
	int in, out; /* descriptors of the caller's own for the app's files */
	size_t len;
	unsigned flags;
};
enum splice_answer {
	SPLICE_DONE,	 /* result: what splice() shall return, or a negative errno */
	SPLICE_KERNEL,	 /* the kernel can do it, and nothing was moved */
	SPLICE_WHEN_ROOM /* there are data, and no room in a pipe for which the app may wait */
};
struct mover; /* the pipe and the memory by which data go, for as long as the process lives; shared
		 with those that it starts */
/* ends: its pipe's, for the caller to close. */
int mover_open(struct mover **ret, int ends[2]);
/* The numbers that they have for whoever moves next. */
void mover_place(struct mover *m, const int ends[2]);
/*
 * May this call be about data that were handed on? That is, does it read from a TCP connection with
 * somebody of whom may_be_spliced() is true? (NULL: of everybody.) Where not, it is the kernel's.
 */
bool splice_call_concerns(const struct splice_call *c, const struct launch_options *o);
/* Moves what is there, without waiting for anything. No byte is taken from the connection that is
 * not in the pipe, nor put there twice. */
enum splice_answer splice_call_move(const struct splice_call *c, struct mover *m, ssize_t *result);
/* Before each new call: what the last one has come to is kept no more. */
void splice_call_begin(struct mover *m);
/* After the end of a process that was in splice_call_move(), or here, with the same call: what it
 * had begun is done. False: no byte had gone, and the call may be done anew. */
bool splice_call_resume(const struct splice_call *c, struct mover *m, ssize_t *result);
/* After that, of a call that nobody asks about any more. */
void splice_call_forget(struct mover *m);

/* --- who goes on when it is killed (standby.c) --- */

/*
 * Starts a process like the caller, with the same descriptors and a copy of what memory they do not
 * share, that waits for the caller's end. It returns there, too, when that has come and *over (in
 * memory that they share) is false, and has started the next one by then. pidfds: the numbers that
 * descriptors of the caller and of who waits for it get. 0, or a negative errno when nobody stands
 * by; then the second one is closed.
 */
int standby_start(const bool *over, const int pidfds[2]);

#endif
