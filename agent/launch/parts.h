/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The parts of the launcher that launch.c puts together; each can be tested without an agent. */
#ifndef AX_LAUNCH_PARTS_H
#define AX_LAUNCH_PARTS_H

#include <signal.h>
#include <sys/types.h>
#include <termios.h>
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

/* --- enter.c: namespaces of an app that runs --- */
struct launch_enter {
	int net, mounts, root; /* descriptors, -1: none */
};
/* Those of the process `pid` if it is the app's and in the caller's user namespace, else of another
 * one of the app; the network's only if `ret` has none. */
int launch_enter_find(const char *cgroup, int pid, struct launch_enter *ret, struct error *e);
void launch_enter_close(struct launch_enter *in);
/* In the child: the caller is in there, in its own working directory if there is one of that name,
 * and has left of its environment what describes the terminal. */
int launch_enter(const struct launch_enter *in, struct error *e);

/* --- launch_child.c: the child between clone and exec --- */
struct launch_plan {
	const struct app_spec *spec;
	const struct launch_user *user; /* NULL: the caller's */
	const char *resolv_conf;	/* NULL: the host's */
	const char *scratch_dir;	/* an existing directory, wanted with new_mounts */
	int cgroup_fd;			/* -1: the caller's cgroup */
	int close_fd;			/* closed in the child at once; -1: none */
	int terminal_fd;		/* with a user: what it has in place of the caller's
					 * terminals, which leads the session; -1: none */
	int netns_fd;	 /* of the network namespace that is to be the child's; -1: the caller's */
	bool new_mounts; /* a mount namespace */
	const struct launch_enter *enter; /* NULL: it is no command for an app that runs */
};
/* In the child, in a mount namespace of its own: what it sees of the machine's files. */
int launch_mount(const struct launch_plan *p, struct error *e);

/* What else the app sees of files: they are found before the machine's become read-only, and put
 * into their places after that. */
struct launch_volumes {
	int *fds;
	size_t n;
};
int launch_volumes_open(const struct app_spec *s, struct launch_volumes *v, struct error *e);
int launch_volumes_place(const struct app_spec *s, struct launch_volumes *v, struct error *e);
/* Everything but /dev, /proc and /sys, with an empty /tmp. */
int launch_read_only(struct error *e);

/* A new network namespace, in which nobody is: its descriptor, or a negative errno. */
int launch_netns_make(void);

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

/* Makes the child, which prepares itself and waits at the gate. With a user it has nothing of the
 * caller's but the standard streams: no session, no keyring, no other descriptor. */
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
/* Whether a process belongs to the app. */
bool launch_in_app(const char *cgroup, pid_t pid);
/* Blocks what launch_wait() passes on. */
void launch_block_signals(void);
/* Hands a signal that was taken from the queue on, unless the command has it already. */
void launch_pass_on(siginfo_t *si, const struct launch_child *c, const char *cgroup);
/* Returns the exit status, or -1 while the command goes on; *stopped: the signal that stopped it
 * since the last look, or 0. */
int launch_child_look(const struct launch_child *c, int *stopped);
/* Stops the caller by a signal that is blocked. Returns when it is continued; at once in an
 * orphaned process group, where the kernel ignores all but SIGSTOP. */
void launch_stop_self(int sig);

/* --- launch.c: what both ways of running share --- */
struct launch_session {
	const struct launch_options *options;
	struct control_conn conn;
	json_t *answer; /* holds the texts below */
	int id;
	const char *name, *cgroup, *address;
	const char *resolv_conf, *log; /* NULL: none */
	json_int_t log_max;	       /* bytes; 0: the journal */
	struct app_spec spec;	       /* the one that holds, if has_spec */
	bool has_spec;
	int cgroup_fd;
	int netns_fd;	 /* of a private app, until its first process has it; or why there is none,
			  * a negative errno */
	int terminal_fd; /* see launch_plan; -1: none */
	bool entering;	 /* `enter` says where; the app runs already */
	struct launch_enter enter;
	struct launch_user user; /* of spec.user; empty without */
	struct launch_child child;
	struct emulation *emulation; /* emulate.h; NULL: none */
};
/* Registers with the agent. On failure, too, the session is to be closed. */
int launch_session_open(const struct launch_options *o, struct launch_session *s, struct error *e);
/* Makes the child and tells the agent of it; what is left is launch_child_go(). */
int launch_session_start(struct launch_session *s, struct error *e);
/* The caller's process leaves the cgroup of its session, which whoever ends the session may kill.
 */
int launch_leave_cgroup(const struct launch_session *s, struct error *e);
/* Kills a child that is still there. */
void launch_session_close(struct launch_session *s);

/* --- pty.c: a terminal of the app's own, in the place of the caller's --- */
struct launch_pty {
	int tty; /* the caller's, opened anew: non-blocking for us alone */
	int master, slave;
	bool controlling; /* it is the caller's controlling terminal: there is job control */
	bool raw;
	struct termios before, during; /* modes of `tty` */
};
/* 1: made, owned by that user. 0: the caller has no terminal. Else a negative errno. */
int launch_pty_open(struct launch_pty *t, const struct launch_user *u, struct error *e);
void launch_pty_close(struct launch_pty *t);
/* Whether the caller is in the foreground of its terminal. */
bool launch_pty_foreground(const struct launch_pty *t);
void launch_pty_resize(const struct launch_pty *t);
/* The keyboard is the app's, byte by byte; or it is as it was. */
void launch_pty_enter(struct launch_pty *t);
void launch_pty_leave(struct launch_pty *t);

/* --- monitor.c and relay.c: the session on that terminal, and who stands between the two --- */
/* What the two tell each other. */
struct launch_word {
	enum {
		WORD_STOPPED, /* the command, by signal `value` */
		WORD_ENDED,   /* with exit status `value`; error.code: ax's own sentence */
		WORD_SIGNAL,  /* `value` is for the process group that has the terminal */
		WORD_GO,      /* on with what is stopped; `value`: in the foreground */
	} what;
	int value;
	struct error error;
};
int launch_word_send(int fd, const struct launch_word *w);
/* 1: one came; 0: the other end is closed. */
int launch_word_recv(int fd, struct launch_word *w);
/* The leader of the app's session and its command's parent, in a process of its own. `foreground`:
 * the command has its terminal from the start. */
__attribute__((noreturn)) void launch_monitor(struct launch_session *s, struct launch_pty *t,
					      bool foreground, int channel);
/* Runs the session's command on the pty. Returns the exit status ax ends with. */
int launch_on_pty(struct launch_session *s, struct launch_pty *t, struct error *e);

/* --- launch_detach.c: a supervisor in the place of the caller --- */
int launch_detached(struct launch_options *o, struct error *e);

#endif
