/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A build: programs, files, and who did what with which, in order of time. A "command" is what a
 * process was between two execs: so a process has one or more, and one that was forked and never
 * executed anything is a command too, of its parent's program.
 */
#ifndef AX_PROBES_BUILD_BUILD_H
#define AX_PROBES_BUILD_BUILD_H

#include "base/util.h"
#include "build_event.h"

#define BUILD_NONE UINT32_MAX

/* Strings, each with its NUL. */
struct build_words {
	const char *v;
	size_t len;
};

struct build_cmd {
	uint32_t pid;
	uint32_t
		parent; /* the command that forked it, or that executed it; BUILD_NONE: the first */
	uint32_t next;	/* what it became by an exec, BUILD_NONE: it ended as it was */
	uint32_t child, sibling; /* first child, next of the same parent, in order; BUILD_NONE */
	bool executed;		 /* false: forked, and of its parent's program */
	bool ended;
	bool complete;	 /* all of its arguments and environment are there */
	uint32_t status; /* as wait() has it, if it ended */
	uint32_t flags;	 /* enum ax_build_exec_flag */
	uint64_t start_ns, end_ns;
	const char *file; /* what was asked for; of a fork its parent's, never NULL */
	const char *exe;  /* what runs */
	const char *cwd;  /* when it began, NULL: not known */
	struct build_words argv, env;
};

/* What may be done with a file. */
enum build_access {
	BUILD_READ = 1,
	BUILD_WRITE = 2,
	BUILD_RUN = 4,
	BUILD_MOVE = 8, /* gave it its name */
	BUILD_REMOVE = 16,
	BUILD_CHANGE = 32, /* its mode */
};

struct build_event {
	uint64_t time_ns;
	uint32_t type; /* enum ax_build_type */
	uint32_t cmd;
	uint32_t tid;
	uint32_t other; /* of a fork the new command, of an exec the one before; or BUILD_NONE */
	/* Of calls that succeeded: what was opened, made, removed; the file by its new name. And
	 * the other one: of a rename what it took the place of, of a link what it is another
	 * name of, of an exec the script or symbolic link that was asked for. Or BUILD_NONE. */
	uint32_t file, file2;
	int64_t ret;
	uint64_t flags;
	uint32_t mode, file_mode;
	const char *name, *name2; /* as asked for, or NULL */
	const char *path, *path2; /* what they meant, absolute, or NULL */
};

/* A file by its last name. Where one is removed and made anew there are two. */
struct build_node {
	const char *path;
	const char *born; /* its first name, NULL: the same */
	bool made;	  /* written, linked or created by the build */
	bool gone;	  /* removed or replaced */
	bool directory;
	uint32_t same;	 /* a hard link of this one, or BUILD_NONE */
	size_t first, n; /* its uses: of build.uses */
};

struct build_use {
	uint32_t event, access; /* enum build_access */
	uint32_t cmd;		/* who: see build_actor() */
};

struct build {
	struct ax_build_file head;
	struct ax_build_end totals;
	bool whole;	      /* the trace was written to its end, and nothing is missing */
	char incomplete[256]; /* what is missing, a sentence */
	struct build_cmd *cmds;
	size_t n_cmds;
	struct build_event *events; /* by time */
	size_t n_events;
	struct build_node *nodes;
	size_t n_nodes;
	struct build_use *uses;
	size_t n_uses;
	struct build_store *store; /* what texts are kept in */
};

/* -EINVAL with a sentence. A file that ends too early makes a build that is not whole. */
int build_read(struct build *b, const void *data, size_t len, struct error *e);
void build_free(struct build *b);

/* Itself or what it became: what a fork did before its exec, as a shell's redirections, is counted
 * to the program. */
uint32_t build_actor(const struct build *b, uint32_t cmd);
/* Itself or the nearest one above it that was executed; BUILD_NONE: there is none. */
uint32_t build_program(const struct build *b, uint32_t cmd);
/* How it can be called: its name without directories. */
const char *build_cmd_name(const struct build *b, uint32_t cmd);
/* Its i-th argument, or NULL. */
const char *build_arg(const struct build_cmd *c, size_t i);
/* A variable of its environment, or NULL. */
const char *build_env(const struct build_cmd *c, const char *name);

#endif
