/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the programs of `ax trace build` tell, and the file that is made of it: a struct
 * ax_build_file, then records, each behind the number of its bytes (__u32). A record begins with a
 * struct ax_build_head, or is a struct ax_exec_piece (trace_event.h), whose first member is 0 where
 * the others have the time.
 */
#ifndef AX_BUILD_EVENT_H
#define AX_BUILD_EVENT_H

#include <linux/types.h>
#include "trace_event.h"

#define AX_BUILD_MAGIC	 "AXBUILD" /* with its NUL: 8 bytes */
#define AX_BUILD_ORDER	 0x01020304
#define AX_BUILD_VERSION 1

struct ax_build_file {
	char magic[8];
	__u32 order; /* AX_BUILD_ORDER, as the machine has it that wrote */
	__u32 version;
	__u64 start_ns;	      /* CLOCK_MONOTONIC, as all times */
	__s64 real_offset_ns; /* from there to the time of day */
	__u32 pid;	      /* of the command */
	__u32 pad;
};
_Static_assert(sizeof(struct ax_build_file) == 40, "struct ax_build_file is in files");

enum ax_build_type {
	AX_BUILD_FORK = 1, /* struct ax_build_fork */
	AX_BUILD_EXEC,	   /* struct ax_build_exec; the pieces before it are its texts */
	AX_BUILD_EXIT,	   /* struct ax_build_exit */
	/* struct ax_build_path */
	AX_BUILD_INHERIT, /* a regular file that an exec left open, `ret` is its descriptor */
	AX_BUILD_NO_EXEC, /* one that failed */
	AX_BUILD_OPEN,
	AX_BUILD_RENAME,
	AX_BUILD_LINK,
	AX_BUILD_SYMLINK, /* the first name is what the link says */
	AX_BUILD_UNLINK,
	AX_BUILD_MKDIR,
	AX_BUILD_RMDIR,
	AX_BUILD_MKNOD,
	AX_BUILD_CHDIR,
	AX_BUILD_TRUNCATE, /* `flags` is the length */
	AX_BUILD_CHMOD,
	AX_BUILD_END, /* struct ax_build_end: the last record of a whole file */
	AX_BUILD_TYPES,
};

struct ax_build_head {
	__u64 time_ns; /* never 0; of system calls: when they returned */
	__u32 type;    /* enum ax_build_type */
	__u32 pid;
	__u32 tid;
	__u32 pad;
};
_Static_assert(sizeof(struct ax_build_head) == 24, "struct ax_build_head is in files");

struct ax_build_fork {
	struct ax_build_head head; /* the parent's */
	__u32 child;
	__u32 pad;
};
_Static_assert(sizeof(struct ax_build_fork) == 32, "struct ax_build_fork is in files");

enum ax_build_exec_flag {
	AX_BUILD_32BIT = 1,    /* its system calls are not told */
	AX_BUILD_MORE_FDS = 2, /* it was left more descriptors than were looked at */
	AX_BUILD_DEEP_CWD = 4, /* outermost directories are left out */
	AX_BUILD_DEEP_EXE = 8,
};

struct ax_build_exec {
	struct ax_build_head head;
	__u64 argv_len;
	__u64 env_len;
	__u32 flags;   /* enum ax_build_exec_flag */
	__u32 exe_len; /* of the names behind it: what runs, a script's interpreter; see
			  AX_BUILD_REAL */
};
_Static_assert(sizeof(struct ax_build_exec) == 48, "struct ax_build_exec is in files");

struct ax_build_exit {
	struct ax_build_head head;
	__u32 status; /* as wait() has it */
	__u32 pad;
};
_Static_assert(sizeof(struct ax_build_exit) == 32, "struct ax_build_exit is in files");

/* The texts behind a path record, in this order. The first two are what was asked for, without NUL.
 * The others are what the kernel made of descriptors: names of directories from the innermost to
 * the root, each with its NUL. */
enum ax_build_text {
	AX_BUILD_NAME,
	AX_BUILD_NAME2,
	AX_BUILD_DIR,  /* of the descriptor that the first name begins at, or which is meant itself
			*/
	AX_BUILD_DIR2, /* of the second name */
	AX_BUILD_REAL, /* what was opened; of AX_BUILD_CHDIR the new directory */
	AX_BUILD_TEXTS,
};
#define AX_BUILD_NAME_MAX 4096

enum ax_build_path_flag {
	AX_BUILD_FAULT = 1,	/* a name could not be read */
	AX_BUILD_DEEP_DIR = 2,	/* outermost directories of AX_BUILD_DIR or _DIR2 are left out */
	AX_BUILD_DEEP_REAL = 4, /* and of AX_BUILD_REAL */
};

struct ax_build_path {
	struct ax_build_head head;
	__s64 ret;
	__u64 flags; /* of the system call */
	__u64 ino;
	__u32 dev;
	__u32 file_mode;  /* with its type, as stat() has it; 0: not known */
	__u32 mode;	  /* of the system call */
	__u32 path_flags; /* enum ax_build_path_flag */
	__s32 dir, dir2;  /* as asked for; AT_FDCWD if the call has none */
	__u32 len[AX_BUILD_TEXTS];
	__u32 pad;
};
_Static_assert(sizeof(struct ax_build_path) == 96, "struct ax_build_path is in files");

struct ax_build_end {
	struct ax_build_head head; /* the tracer's */
	__u64 emitted, received, dropped, cut, missed, unfollowed;
	__u32 status; /* of the command, as in $? */
	__u32 pad;
};
_Static_assert(sizeof(struct ax_build_end) == 80, "struct ax_build_end is in files");

#endif
