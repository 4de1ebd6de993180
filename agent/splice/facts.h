/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a program's files say about splice(2), which must not meet spliced connections: it hangs on
 * their data. Files are hostile input. What a program does by syscall(2) or io_uring no file says.
 */
#ifndef AX_SPLICE_FACTS_H
#define AX_SPLICE_FACTS_H

#include "base/util.h"

/* Ordered: of several files the worst counts. */
enum splice_fact {
	FACT_NONE,    /* no file of it asks for splice(), tee() or vmsplice() */
	FACT_UNKNOWN, /* a static program, or one that cannot be read */
	FACT_USES,
};

struct image;
/* What one ELF file says. `program`: it is what was executed, not a library. */
enum splice_fact facts_of_image(const struct image *im, bool program);
/* The same of a descriptor, which it takes over. */
enum splice_fact facts_of_fd(int fd, bool program);

struct facts; /* what is known of files: a cache */

int facts_open(struct facts **ret);
void facts_close(struct facts *f);
/* Begins a look: what is mounted is read anew. */
void facts_refresh(struct facts *f);
/* What the program of a process says, and all the libraries that it has mapped. FACT_NONE when it
 * is gone. Nothing is opened on filesystems that a user may serve (FUSE), or that are not mounted
 * where the agent is: reading could wait for whoever made them. */
enum splice_fact facts_of_process(struct facts *f, int pid);
/* Of all processes in a cgroup and below. emulated: splice() is done for those that have a seccomp
 * filter (launch/emulate.h), so that it does not matter whether they use it. */
enum splice_fact facts_of_cgroup(struct facts *f, const char *path, bool emulated);
/* A number that becomes another one when one of these processes comes, goes, executes another
 * program or maps another library: cheap, and no file of theirs is opened. Libraries are told by
 * the size of what is executable. */
uint64_t facts_print(const char *path);
/* Whether one of these processes has an epoll set that tells of edges, or may have. */
bool facts_wait_for_edges(const char *path);

#endif
