/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Processes that are followed, with those that they start, and the files that they come to. */
#ifndef AX_PROBES_FOLLOW_FOLLOW_H
#define AX_PROBES_FOLLOW_FOLLOW_H

#include "follow_event.h"
#include "base/util.h"

struct follow_options {
	const uint32_t *pids;  /* as the caller's pid namespace has them */
	size_t n_pids;	       /* 0: all processes */
	bool children;	       /* those that they start, and have started */
	bool files;	       /* files that they execute or map are told */
	struct ax_scope scope; /* only of files: of whose processes */
};

struct follow;
/* The programs are loaded, and the map is there. */
int follow_open(const struct follow_options *o, struct follow **ret, struct error *e);
/* From now on. -ESRCH: a process that was named is not there. */
int follow_attach(struct follow *f, struct error *e);
void follow_close(struct follow *f);
static inline void follow_closep(struct follow **f)
{
	if (*f)
		follow_close(*f);
}
/* The map whose keys are the processes in numbers of the outermost pid namespace (__u32), for
 * programs; -1: all processes are. Its values are their numbers here (__u32), 0: they have none. */
int follow_tree(const struct follow *f);
/* Calls fn with each process's number here, until it returns other than 0: which is returned. */
int follow_each(const struct follow *f, int (*fn)(void *arg, int pid), void *arg);

/* Readable when a file is told; -1: none is. */
int follow_fd(const struct follow *f);
/* Calls fn for each. Their number, or what fn returned below 0. */
int follow_files(struct follow *f, int (*fn)(void *arg, const struct ax_follow_file *file),
		 void *arg);
/* The file is told again when another process comes to it. */
void follow_forget(const struct follow *f, const struct ax_follow_file *file);

uint64_t follow_counter(const struct follow *f, enum ax_follow_counter which);

#endif
