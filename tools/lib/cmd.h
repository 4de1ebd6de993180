/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the commands of ax share: their beginning and end, and how they talk to the agent. */
#ifndef AX_TOOLS_LIB_CMD_H
#define AX_TOOLS_LIB_CMD_H

#include "control/control.h"
#include "machine/instance.h"
#include "tools/lib/options.h"
#include "base/util.h"

enum cmd_status {
	CMD_OK = 0,
	CMD_FAILED = 1, /* the answer is no: not done, not valid, not found */
	CMD_USAGE = 2,	/* the command line cannot be understood */
	CMD_UNABLE =
		125, /* run, config and doctor: ax itself failed, so that 1 stays their verdict */
};

struct command;

struct cmd {
	const struct command *root;    /* ax itself, with the table of all commands */
	const struct command *command; /* the one that runs */
	const char *name;	       /* of the command, NULL: ax itself */
	const char *instance;	       /* --instance */
	const char *socket;	       /* --socket */
	bool help;
	bool version;
	bool shows_script;    /* it prints what it would do as a script of ax trace run */
	struct instance inst; /* valid once cmd_begin() returned true */
};

/* The options that may stand before or after the command; they set a struct cmd. */
extern const struct opt_part cmd_globals;
struct opt_common cmd_common(struct cmd *c);

/*
 * Parses the options of c->command into *args (the global ones are added) and does --help and
 * --version. True: go on, *argc words are left at the front of argv. False: end with *status.
 */
bool cmd_begin(struct cmd *c, void *args, int *argc, char **argv, int *status);

/* Print one sentence to stderr, with the command's name before it, and return the exit status. */
int cmd_usage(const struct cmd *c, const char *fmt, ...) PRINTF(2, 3);
int cmd_failed(const struct cmd *c, const struct error *e);
int cmd_unable(const struct cmd *c, const struct error *e);

/* For commands that print: a reader that goes away ends them silently. Not for agent and run,
 * whose children inherit what is set. */
void cmd_output(void);
/* Flushes; turns a failure to write into a sentence and CMD_FAILED, else returns status. */
int cmd_finish(const struct cmd *c, int status);

/* One request (whose reference is taken; NULL stands for a text that is not UTF-8) to the agent
 * and its answer. *reply may be set on failure too: see control_call(). */
int cmd_ask(const struct cmd *c, json_t *request, json_t **reply, struct error *e);
/* The same with a descriptor beside it, -1: none. */
int cmd_ask_with(const struct cmd *c, json_t *request, int fd, json_t **reply, struct error *e);
/* Pretty-prints JSON in plain ASCII, which no terminal can misunderstand. */
void cmd_put_json(const json_t *j, size_t flags);

static inline void json_unref(json_t **j)
{
	json_decref(*j);
}
#define autojson CLEANUP(json_unref) /* json_t * */

static inline void control_closep(struct control_conn *c)
{
	control_close(c);
}

/* A member, or NULL, 0, 0.0 when it is missing or of another type. */
static inline const char *member_string(const json_t *j, const char *key)
{
	return json_string_value(json_object_get(j, key));
}
static inline long long member_int(const json_t *j, const char *key)
{
	return json_integer_value(json_object_get(j, key));
}
static inline double member_number(const json_t *j, const char *key)
{
	return json_number_value(json_object_get(j, key));
}
static inline bool member_true(const json_t *j, const char *key)
{
	return json_is_true(json_object_get(j, key));
}

/* "name 1.2.3.4:80" or "1.2.3.4:80" (a port of 0 is left out) into buf; returns buf. */
char *cmd_party(const char *name, const char *address, long long port, char *buf, size_t size);

#endif
