/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the programs that follow processes tell user space, and what they are told. */
#ifndef AX_FOLLOW_EVENT_H
#define AX_FOLLOW_EVENT_H

#include <linux/types.h>
#include "scope.h"

/* Read-only in the programs. */
struct ax_follow_config {
	struct ax_scope scope; /* files: of whose processes */
	__u32 pidns;	       /* the pid namespace whose numbers are used, by its inode */
	__u32 children;	       /* those that followed ones start are followed, too */
	__u32 all;	       /* files: those of all processes are told */
	__u32 pad;
};
_Static_assert(sizeof(struct ax_follow_config) == 152, "struct ax_follow_config is read-only data");

enum ax_follow_counter {
	AX_FOLLOW_LOST,	 /* processes for which there was no room */
	AX_FOLLOW_FILES, /* files that could not be told */
	AX_FOLLOW_COUNTERS,
};

/* A file that a followed process executes, or has mapped to execute what is in it. Each is told
 * once, until user space takes it out of the map. */
struct ax_follow_key {
	__u64 ino;
	__u32 dev;
	__u32 changed; /* when: another file may have its number by now */
};
_Static_assert(sizeof(struct ax_follow_key) == 16, "struct ax_follow_key is a map key");

struct ax_follow_file {
	struct ax_follow_key key;
	__u32 pid; /* in the namespace of who traces; 0: it has none there */
	__u32 pad;
};
_Static_assert(sizeof(struct ax_follow_file) == 24, "struct ax_follow_file is read by user space");

#endif
