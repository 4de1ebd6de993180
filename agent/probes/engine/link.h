/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Attachments that libbpf 1.1 has no functions for. */
#ifndef AX_PROBES_ENGINE_LINK_H
#define AX_PROBES_ENGINE_LINK_H

#include <pthread.h>

#include "base/util.h"

/* BPF_TRACE_UPROBE_MULTI of Linux 6.6. */
#define LINK_UPROBE_MULTI 48

/* The kernel attaches one program to many functions of a file at a time. */
bool link_has_uprobe_multi(void);
/* The same with functions of the kernel. */
bool link_has_kprobe_multi(void);
/* As the first, and for some process alone in a way that works (6.10). */
bool link_has_uprobe_pid(void);

struct link_uprobes {
	const char *path;
	const uint64_t *offsets;
	const uint64_t *semaphores; /* NULL: none has one */
	const uint64_t *cookies;
	uint32_t n;
	bool is_return;
	int pid; /* 0: any */
};
/*
 * The first link to functions of programs after a while waits for a grace period of RCU (10 ms and
 * more), those soon after it do not. So it is made by another process, to nothing, while there is
 * other work to do, and a thread of ours takes note of that one's end: it is soon, and the session
 * may go on for long. link_expected() waits for it, if there is one.
 */
struct link_expected {
	pthread_t waits;
	int pid;
	bool begun;
};
void link_expect_uprobes(struct link_expected *x);
void link_expected(struct link_expected *x);
/* A descriptor, or a negative errno. */
int link_uprobes(int prog_fd, const struct link_uprobes *u);
/*
 * Closes links to functions of programs by f(arg), here and in a process that nobody kills: who is
 * killed (SIGKILL, another Ctrl-C) while the kernel takes breakpoints out of programs leaves the
 * rest of them there for good.
 */
void link_close_apart(void (*f)(void *arg), void *arg);
/* A process has them too, and nothing else, and ends when the descriptor is closed that is
 * returned: so it is the last one that closes them, for which nobody waits. Or a negative errno. */
int link_close_later(const int *fds, size_t n);
/* Raw tracepoints take a cookie. */
bool link_has_raw_tracepoint_cookie(void);
/* With a cookie (Linux 6.10). A descriptor, or a negative errno. */
int link_raw_tracepoint(int prog_fd, const char *name, uint64_t cookie);

#endif
