/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A running app, and the list of them. */
#ifndef AX_REGISTRY_APP_TABLE_H
#define AX_REGISTRY_APP_TABLE_H

#include "app.h"
#include "base/loop.h"
#include "config/config.h"

struct agent;
struct service;

enum app_state {
	APP_STARTING,
	APP_RUNNING,
	APP_STOPPING,
	APP_ENDED, /* lingers: no process, but the kernel still sends what it wrote */
};

/* Of an app that ends when nobody connects any more. */
struct app_use {
	uint64_t look_at_ns; /* whether it is in use; 0: it is not one of those */
	uint64_t busy_ns;    /* when it was in use last */
	uint64_t accepts;    /* connections so far */
	bool busy;	     /* by the last look */
	bool closed;	     /* new connections wait: it is about to end */
};

struct app {
	struct app *next; /* in the list of those that run, ordered by id, or that linger */
	uint32_t id;
	enum app_state state;
	struct app_spec spec; /* spec.name is the name; ip4 and ip6 as asked for */
	struct ax_addr vip4, vip6;
	uint32_t party;		 /* see parties.h */
	bool leaves;		 /* a rule lets it reach addresses outside */
	bool confined;		 /* a rule keeps pings of its from some */
	struct ax_source source; /* by which the outside sees it; zero: as the route has it */
	struct service *service; /* the one it forms with others, or NULL */
	char *config_key;
	char *cgroup; /* path */
	uint64_t cgroup_id;
	int watch;		   /* inotify descriptor of its cgroup.events, -1 */
	int pid;		   /* the command's */
	int launcher_pid;	   /* the supervisor of a detached app */
	struct loop_item launcher; /* its pidfd */
	unsigned ifindex;
	uint64_t netns_cookie;
	int64_t since_boot; /* seconds */
	uint32_t restarts;
	int exit_status;   /* -1: not known */
	unsigned entering; /* commands that are to run in it, and may not have a process yet */
	bool empty;	   /* its cgroup has no process any more */
	int netns_fd;	   /* a private app's network namespace, -1 */
	uint64_t linger_until_ns, linger_check_ns;
	uint64_t kill_at_ns; /* SIGKILL then; 0: never */
	bool no_restart;     /* stopped on purpose */
	bool replaced;	     /* the config's new version of it starts when it is gone */
	bool cut;	     /* its record had no room for the whole command */
	struct app *id_next, *watch_next; /* in the tables of ids and watches */
	uint32_t anchor;		  /* see anchors.h, 0: none */
	struct app_use use;		  /* see on_connect.h */
	struct asked_names *asked;	  /* see asked_names.h; NULL: none */
};

/* The list, and its index by ids. Returns 0 or a negative errno; closing frees memory only. */
int app_table_open(struct agent *a);
void app_table_close(struct agent *a);

/* An app that nobody knows of yet, with no descriptor open. NULL: out of memory. */
struct app *app_new(void);
void app_free(struct app *app);

struct app *app_by_id(struct agent *a, uint32_t id);
struct app *app_by_name(struct agent *a, const char *name); /* the first */

/* Into the list, the ids and the names, and out of them; that takes nothing else along. */
void app_link(struct agent *a, struct app *app);
void app_unlink(struct agent *a, struct app *app);

/* What its egress list says (config/egress.h), and whether the kernel lets it out where no rule
 * says a word. */
uint64_t app_egress_id(const struct app *app);
/* For its party. */
struct policy_who app_who(const struct app *app);
bool app_egress_is_open(const struct app *app);
bool apps_any_in_host_mode(const struct agent *a);
/* One in host mode that may not reach everything outside: its packets take no detours. */
bool app_is_confined(const struct app *app);

/* An id that no app has. */
uint32_t app_next_id(struct agent *a);
/* There is still something of an app that had it: it is not the next one's. */
void app_id_taken(struct agent *a, uint32_t id);

const char *app_state_name(enum app_state s);

/* A descriptor of its network namespace, or a negative errno. */
int app_netns(const struct app *app);

#endif
