/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ax config: checks a config file, or lets the agent make it true. */
#include <limits.h>
#include <sys/stat.h>

#include "config/hints.h"
#include "config/parse.h"
#include "config/shared.h"
#include "control/text.h"
#include "tools/cmd/commands.h"
#include "tools/cmd/config_cluster.h"
#include "tools/lib/output.h"
#include "tools/lib/table.h"
#include "tools/lib/text.h"

/* Leaves room for the quoting in a line of the protocol. */
#define CONFIG_MAX (CONTROL_LINE_MAX / 2)

int cmd_read_config(const char *path, char **text, size_t *len, struct error *e)
{
	struct stat st;
	int r = file_read(streq(path, "-") ? "/dev/stdin" : path, CONFIG_MAX, text);

	if (r == -EFBIG)
		return error_set(e, r,
				 "%s is too long for a config file: at most %u MiB are read; "
				 "backends in a row may be written as FIRST-LAST, and 'ax agent "
				 "--config' itself reads up to 64 MiB",
				 path, CONFIG_MAX >> 20);
	if (r == -ESPIPE)
		return error_set(e, r, "%s is a FIFO: give a file, or - for standard input", path);
	if (r)
		return error_set(e, r, "%s cannot be read: %s", path, strerror(-r));
	*len = strlen(*text);
	/* what follows a NUL byte would be ignored without a word */
	if (stat(path, &st) == 0 && S_ISREG(st.st_mode) && (size_t)st.st_size > *len)
		return error_set(e, -EINVAL, "%s holds a NUL byte: it is not a text", path);
	return 0;
}

static const char *shown_name(const char *path)
{
	return streq(path, "-") ? "stdin" : path;
}

static int invalid(const struct config_errors *errs, const char *name)
{
	config_errors_print(errs, name, stderr);
	fprintf(stderr, "ax config: ");
	text_put(name, stderr);
	fprintf(stderr, " has %zu error%s\n", errs->n, errs->n == 1 ? "" : "s");
	return CMD_FAILED;
}

/* --- check --- */

static void put_hint(void *arg, const char *text)
{
	const struct cmd *c = arg;

	fprintf(stderr, "ax %s: ", c->name);
	text_put(text, stderr);
	fputc('\n', stderr);
}

static int check(struct cmd *c, const char *path, bool cluster)
{
	struct config_errors errs = {0};
	autofree char *text = NULL;
	struct config config;
	struct error e = {0};
	int r, status;
	size_t len;

	if (cmd_read_config(path, &text, &len, &e))
		return cmd_unable(c, &e);
	r = cluster ? config_shared_parse(text, len, &config, &errs)
		    : config_parse(text, len, &config, &errs);
	if (!r) {
		text_put(shown_name(path), stdout);
		fputs(": ok\n", stdout);
		config_hints(&config, put_hint, c);
		config_free(&config);
		status = cmd_finish(c, CMD_OK);
	} else if (r == -EINVAL) {
		status = invalid(&errs, shown_name(path));
	} else {
		error_set(&e, r, "%s could not be checked: %s", path, strerror(-r));
		status = cmd_unable(c, &e);
	}
	config_errors_free(&errs);
	return status;
}

/* --- apply --- */

static char *copy_member(const json_t *j, const char *key)
{
	const char *s = member_string(j, key);

	return strdup(s ? s : "");
}

/* The agent's list of errors in the form that the parser gives, so that both print alike. */
static int errors_from_json(const json_t *list, struct config_errors *errs)
{
	json_t *item;
	size_t i;

	errs->e = calloc(json_array_size(list) + 1, sizeof(*errs->e));
	if (!errs->e)
		return -ENOMEM;
	json_array_foreach (list, i, item) {
		struct config_error *one = &errs->e[errs->n++];

		one->line = (unsigned)member_int(item, "line");
		one->column = (unsigned)member_int(item, "column");
		one->path = copy_member(item, "path");
		one->found = copy_member(item, "found");
		one->expected = copy_member(item, "expected");
		if (!one->path || !one->found || !one->expected)
			return -ENOMEM;
	}
	return 0;
}

static int refused(struct cmd *c, const char *path, const json_t *reply, const struct error *e)
{
	const json_t *list = json_object_get(reply, "errors");
	struct config_errors errs = {0};
	int status;

	if (!reply) /* no agent, or none that answers */
		return cmd_unable(c, e);
	if (json_array_size(list) && !errors_from_json(list, &errs))
		status = invalid(&errs, shown_name(path));
	else
		status = cmd_failed(c, e);
	config_errors_free(&errs);
	return status;
}

static void put_difference(const json_t *j, bool colour)
{
	const char *action = member_string(j, "action"), *kind = member_string(j, "kind");
	const char *name = member_string(j, "name"), *detail = member_string(j, "detail");
	bool add = action && streq(action, "add"), remove = action && streq(action, "remove");
	enum table_colour shade = add ? COLOUR_GREEN : remove ? COLOUR_RED : COLOUR_YELLOW;

	printf("%s%c ", colour ? table_colour_on(shade) : "", add ? '+' : remove ? '-' : '~');
	text_put(kind ? kind : "?", stdout);
	if (name && *name) {
		putchar(' ');
		text_put(name, stdout);
	}
	if (detail && *detail) {
		fputs(add || remove ? " " : ": ", stdout);
		text_put(detail, stdout);
	}
	printf("%s\n", colour ? table_colour_off() : "");
}

static void put_diff(const json_t *reply, bool dry_run)
{
	const json_t *diff = json_object_get(reply, "diff");
	bool colour = table_style_for(stdout).colour;
	size_t i, n = json_array_size(diff);
	json_t *item;

	json_array_foreach (diff, i, item)
		put_difference(item, colour);
	if (!n)
		puts("no differences");
	else if (dry_run)
		printf("%zu difference%s, nothing was changed (dry run)\n", n, n == 1 ? "" : "s");
	else
		printf("%zu difference%s applied\n", n, n == 1 ? "" : "s");
}

/* What was found and done on the way. */
static void put_warnings(const struct cmd *c, const json_t *reply)
{
	const json_t *line;
	size_t i;

	json_array_foreach (json_object_get(reply, "warnings"), i, line) {
		fprintf(stderr, "ax %s: ", c->name);
		text_put(json_string_value(line), stderr);
		fputc('\n', stderr);
	}
}

#define SEAL_FROM (64u << 10) /* shorter texts are handed over as fast within the request */
/* What agents say that take a text only within the request: they were there before that. */
#define NO_TEXT "apply goes with a config's text"

struct args {
	bool dry_run, cluster;
	int output;
};

static int ask(struct cmd *c, const char *file, const char *text, size_t len, const struct args *a,
	       json_t **reply, struct error *e)
{
	autoclose int fd = len < SEAL_FROM ? -1 : control_text_seal(text, len);
	/* (an agent that knows no such thing is not to take it for its own config) */
	const char *op = a->cluster ? "apply-cluster" : "apply";
	int r;

	if (fd >= 0) {
		r = cmd_ask_with(c,
				 json_pack("{s:s,s:s,s:b,s:b}", "op", op, "file", file, "sealed", 1,
					   "dry_run", a->dry_run),
				 fd, reply, e);
		if (r != -EINVAL || !streq(e->text, NO_TEXT))
			return r;
		json_decref(*reply);
		*e = (struct error){0};
	}
	return cmd_ask(c,
		       json_pack("{s:s,s:s,s:s,s:b}", "op", op, "file", file, "text", text,
				 "dry_run", a->dry_run),
		       reply, e);
}

/* What all nodes are to have may take them some moments. */
static int put_stored(struct cmd *c, const json_t *reply, const struct args *a)
{
	put_diff(reply, a->dry_run);
	if (!a->dry_run)
		printf("revision %lld of the cluster's config is stored; 'ax get nodes' shows "
		       "where "
		       "it holds\n",
		       member_int(reply, "revision"));
	return cmd_finish(c, CMD_OK);
}

static int apply(struct cmd *c, const char *path, const struct args *a)
{
	autojson json_t *reply = NULL;
	autofree char *text = NULL;
	char full[PATH_MAX];
	struct error e = {0};
	size_t len;

	if (cmd_read_config(path, &text, &len, &e))
		return cmd_unable(c, &e);
	/* the agent may stand in another directory */
	if (streq(path, "-") || !realpath(path, full))
		snprintf(full, sizeof(full), "%s", shown_name(path));
	if (ask(c, full, text, len, a, &reply, &e))
		return refused(c, path, reply, &e);
	if (a->cluster)
		return put_stored(c, reply, a);
	put_warnings(c, reply);
	put_diff(reply, a->dry_run);
	return cmd_finish(c, CMD_OK);
}

static int rollback(struct cmd *c, long long revision, const struct args *a)
{
	autojson json_t *reply = NULL;
	struct error e = {0};

	if (cmd_config_rollback(c, revision, a->dry_run, &reply, &e))
		return refused(c, "the stored text", reply, &e);
	return put_stored(c, reply, a);
}

/* history and rollback: of a cluster alone. */
static int run_of_cluster(struct cmd *c, int argc, char **argv, const struct args *a)
{
	bool history = streq(argv[0], "history");
	long long revision = 0;
	int status;

	if (!a->cluster)
		return cmd_usage(c,
				 "'%s' goes with --cluster: no revisions of a node's own config "
				 "are kept",
				 argv[0]);
	if (argc > 2)
		return cmd_usage(c, "give one revision at most");
	status = argc == 2 ? cmd_revision(c, argv[1], &revision) : 0;
	if (status)
		return status;
	if (history && a->dry_run)
		return cmd_usage(c, "--dry-run goes with 'apply' and 'rollback'");
	if (!history && a->output)
		return cmd_usage(c, "-o goes with 'history'");
	cmd_output();
	return history ? cmd_config_history(c, revision, a->output) : rollback(c, revision, a);
}

static int run(struct cmd *c, int argc, char **argv)
{
	struct args a = {0};
	int status;

	if (!cmd_begin(c, &a, &argc, argv, &status))
		return status;
	if (argc >= 1 && (streq(argv[0], "history") || streq(argv[0], "rollback")))
		return run_of_cluster(c, argc, argv, &a);
	if (argc < 1 || !(streq(argv[0], "check") || streq(argv[0], "apply")))
		return cmd_usage(c, "say what to do: 'check FILE' or 'apply FILE', or 'history' or "
				    "'rollback' with --cluster");
	if (argc != 2)
		return cmd_usage(c, "give one config file");
	if (a.output)
		return cmd_usage(c, "-o goes with 'history'");
	cmd_output();
	if (streq(argv[0], "apply"))
		return apply(c, argv[1], &a);
	if (a.dry_run)
		return cmd_usage(c, "--dry-run goes with 'apply': 'check' never changes anything");
	return check(c, argv[1], a.cluster);
}

static const char *const actions[] = {"check", "apply", "history", "rollback", NULL};
static const struct words action_words = {.choices = actions};

static const struct opt options[] = {
	{"cluster", 0, OPT_FLAG, NULL, "the config of all nodes of the cluster",
	 offsetof(struct args, cluster), NULL},
	{"dry-run", 0, OPT_FLAG, NULL, "apply, rollback: show the differences and change nothing",
	 offsetof(struct args, dry_run), NULL},
};

const struct command cmd_config = {
	.name = "config",
	.about = "check a config file or apply one",
	.run = run,
	.syntax =
		{
			.usage = "ax config check FILE [--cluster]\n"
				 "       ax config apply FILE [--cluster] [--dry-run]\n"
				 "       ax config history --cluster [REVISION] [-o FORMAT]\n"
				 "       ax config rollback --cluster [REVISION] [--dry-run]",
			.about =
				"check: reads a config file and prints all its errors; needs no "
				"agent.\n"
				"apply: lets the agent make true what the file says, and prints "
				"what that changes. What did not change is not touched; a file "
				"with errors changes nothing.\n"
				"With --cluster: FILE has services and rules for all nodes, and is "
				"stored in etcd; history lists the last ten (with a REVISION: "
				"shows "
				"its text), and rollback applies an earlier one again (default: "
				"the "
				"one before the current one).\n\n"
				"FILE may be '-', for standard input.",
			.own = {{options, ARRAY_SIZE(options), 0},
				{output_table, 1, offsetof(struct args, output)}},
			.args = {&action_words, &words_file},
		},
};
