/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The parts of the launcher that launch.c puts together; each can be tested without an agent. */
#ifndef AX_LAUNCH_PARTS_H
#define AX_LAUNCH_PARTS_H

#include <sys/types.h>
#include "config/config.h"
#include "control/control.h"
#include "launch/launch.h"
#include "base/util.h"

enum {
	LAUNCH_FAILED = 125,	   /* ax itself failed */
	LAUNCH_NOT_EXECUTED = 126, /* the command was found and could not be executed */
	LAUNCH_NOT_FOUND = 127,
};

/* --- launch_user.c: --user --- */
struct launch_user {
	uid_t uid;
	gid_t gid;
	gid_t *groups; /* supplementary ones */
	int n_groups;
	char *name, *home, *shell;
};
/* "USER[:GROUP]", each a name or a number (a name that looks like a number is a name first, as with
 * chown). A number without an entry in the user database is its own group and has "/" for a home.
 */
int launch_user_find(const char *text, struct launch_user *ret, struct error *e);
void launch_user_free(struct launch_user *u);
/* In the child: the caller becomes that user, for good, without any capability. */
int launch_user_become(const struct launch_user *u, struct error *e);

/* --- launch_child.c: the child between clone and exec --- */
struct launch_plan {
	const struct app_spec *spec;
	const struct launch_user *user; /* NULL: the caller's */
	const char *resolv_conf;	/* NULL: the host's */
	const char *scratch_dir;	/* an existing directory, wanted with resolv_conf */
	int cgroup_fd;			/* -1: the caller's cgroup */
	int close_fd;			/* closed in the child at once; -1: none */
	bool new_netns;
};

struct launch_child {
	pid_t pid;
	int pidfd;
	int gate; /* tells the child to go; its end closes with exec; carries a struct launch_note
		   */
};

/* What one process of the launcher tells another: an exit status and its sentence. */
struct launch_note {
	int status;
	struct error error;
};

/* Makes the child, which prepares itself and waits at the gate. */
int launch_child_start(const struct launch_plan *p, struct launch_child *ret, struct error *e);
/* Opens the gate. From here on signals wait for launch_wait() to pass them on. If the command
 * cannot be executed, a note with the reason comes out of the gate. */
int launch_child_go(struct launch_child *c, struct error *e);
/* Kills and reaps a child that must not go on. */
void launch_child_kill(struct launch_child *c);
void launch_child_close(struct launch_child *c);
/* Sends a note, receives one (false: the other end closed without, or none is there yet). */
int launch_note_send(int fd, const struct launch_note *n);
bool launch_note_recv(int fd, bool wait, struct launch_note *ret);

/* --- launch_wait.c: signals, job control, the terminal --- */
/*
 * Passes signals on and returns the exit status once the command has ended. `cgroup` (NULL: not
 * known) tells the app's own processes from others. In the foreground the caller stops when the
 * command stops, and takes the terminal back at the end.
 */
int launch_wait(struct launch_child *c, const char *cgroup, bool foreground);
/* Blocks what launch_wait() passes on. */
void launch_block_signals(void);

/* --- launch.c: what both ways of running share --- */
struct launch_session {
	const struct launch_options *options;
	struct control_conn conn;
	json_t *answer; /* holds the texts below */
	int id;
	const char *name, *cgroup, *address;
	const char *resolv_conf, *log; /* NULL: none */
	struct app_spec spec;	       /* the one that holds, if has_spec */
	bool has_spec;
	int cgroup_fd;
	struct launch_user user;
	struct launch_child child;
};
/* Registers with the agent. On failure, too, the session is to be closed. */
int launch_session_open(const struct launch_options *o, struct launch_session *s, struct error *e);
/* Makes the child and tells the agent of it; what is left is launch_child_go(). */
int launch_session_start(struct launch_session *s, struct error *e);
/* Kills a child that is still there. */
void launch_session_close(struct launch_session *s);

/* --- launch_detach.c: a supervisor in the place of the caller --- */
int launch_detached(struct launch_options *o);

#endif
