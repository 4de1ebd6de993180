/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ax policy test: whether a config says what is expected of it, which needs no agent, or whether
 * what holds in one does. */
#include <limits.h>

#include "config/expect.h"
#include "config/parse.h"
#include "tools/cmd/commands.h"
#include "tools/lib/text.h"

static int invalid(const struct config_errors *errs, const char *name)
{
	config_errors_print(errs, name, stderr);
	fputs("ax policy test: ", stderr);
	text_put(name, stderr);
	fprintf(stderr, " has %zu error%s\n", errs->n, errs->n == 1 ? "" : "s");
	return CMD_FAILED;
}

/* As it is, or beside the file of expectations. */
static void beside(const char *file, const char *path, char buf[PATH_MAX])
{
	const char *slash = strrchr(file, '/');

	if (*path == '/' || !slash)
		snprintf(buf, PATH_MAX, "%s", path);
	else
		snprintf(buf, PATH_MAX, "%.*s/%s", (int)(slash - file), file, path);
}

struct tested {
	const char *file; /* of the expectations */
	char *text;	  /* that is in it */
	struct expectations all;
	char config_name[PATH_MAX];
	struct config config;
	bool has_config;
};

static void tested_free(struct tested *t)
{
	if (t->has_config)
		config_free(&t->config);
	expectations_free(&t->all);
	free(t->text);
}

/* Its lines are those of the file that it stands in. */
static void move_lines(struct config_errors *errs, unsigned by)
{
	for (size_t i = 0; i < errs->n; i++)
		errs->e[i].line += by;
}

static int parse_config(struct cmd *c, struct tested *t, const char *text, size_t len,
			unsigned line)
{
	CLEANUP(config_errors_free) struct config_errors errs = {0};
	int r = config_parse(text, len, &t->config, &errs);
	struct error e;

	t->has_config = r == 0;
	if (!r)
		return CMD_OK;
	if (r == -EINVAL) {
		move_lines(&errs, line);
		return invalid(&errs, t->config_name);
	}
	error_set(&e, r, "%s could not be read: %s", t->config_name, strerror(-r));
	return cmd_unable(c, &e);
}

static int read_config(struct cmd *c, struct tested *t, const char *given)
{
	const char *config = given ? given : t->all.config;
	autofree char *text = NULL;
	struct error e = {0};
	size_t len;

	if (!config)
		return cmd_usage(c, "no config: give --config FILE, or config: in %.200s", t->file);
	if (!given && strchr(config, '\n')) {
		snprintf(t->config_name, sizeof(t->config_name), "%s", t->file);
		return parse_config(c, t, config, strlen(config), t->all.config_line);
	}
	if (given)
		snprintf(t->config_name, sizeof(t->config_name), "%s", given);
	else
		beside(t->file, config, t->config_name);
	if (cmd_read_config(t->config_name, &text, &len, &e))
		return cmd_unable(c, &e);
	return parse_config(c, t, text, len, 0);
}

static int read_expectations(struct cmd *c, struct tested *t)
{
	CLEANUP(config_errors_free) struct config_errors errs = {0};
	struct error e = {0};
	size_t len;
	int r;

	if (cmd_read_config(t->file, &t->text, &len, &e))
		return cmd_unable(c, &e);
	r = expectations_parse(t->text, len, &t->all, &errs);
	if (!r)
		return CMD_OK;
	if (r == -EINVAL)
		return invalid(&errs, t->file);
	error_set(&e, r, "%s could not be read: %s", t->file, strerror(-r));
	return cmd_unable(c, &e);
}

static void put_unmet(const struct tested *t, unsigned line, const char *why)
{
	text_put(t->file, stdout);
	printf(":%u: ", line);
	text_put(why, stdout);
	putchar('\n');
}

static int finish(struct cmd *c, const struct tested *t, size_t failed)
{
	if (failed)
		printf("%zu of %zu expectations failed\n", failed, t->all.n);
	else
		printf("%zu expectation%s hold%s\n", t->all.n, t->all.n == 1 ? "" : "s",
		       t->all.n == 1 ? "s" : "");
	return cmd_finish(c, failed ? CMD_FAILED : CMD_OK);
}

/* By the rules that hold, which the agent knows. */
static int judge_in_force(struct cmd *c, const struct tested *t)
{
	autojson json_t *reply = NULL;
	struct error e = {0};
	json_t *one;
	size_t i;

	if (cmd_ask(c, json_pack("{ss ss}", "op", "expect", "text", t->text), &reply, &e))
		return cmd_unable(c, &e);
	json_array_foreach (json_object_get(reply, "unmet"), i, one) {
		const char *why = member_string(one, "why");

		put_unmet(t, (unsigned)member_int(one, "line"), why ? why : "?");
	}
	if (member_int(reply, "failed") > (long long)i)
		printf("%s: and %lld more\n", t->file, member_int(reply, "failed") - (long long)i);
	return finish(c, t, (size_t)member_int(reply, "failed"));
}

static int judge(struct cmd *c, const struct tested *t)
{
	size_t failed = 0;

	for (size_t i = 0; i < t->all.n; i++) {
		const struct expectation *x = &t->all.v[i];
		autofree char *why = NULL;
		int r = expectation_holds(&t->config, x, &why);
		struct error e;

		if (r == -ENOMEM || !why) {
			error_set(&e, -ENOMEM, "out of memory");
			return cmd_unable(c, &e);
		}
		if (r > 0)
			continue;
		failed++;
		put_unmet(t, x->line, why);
	}
	return finish(c, t, failed);
}

struct args {
	const char *config;
	bool in_force;
};

static int run(struct cmd *c, int argc, char **argv)
{
	CLEANUP(tested_free) struct tested t = {0};
	struct args a = {0};
	int status;

	if (!cmd_begin(c, &a, &argc, argv, &status))
		return status;
	if (argc != 1)
		return cmd_usage(c, "give one file of expectations");
	if (a.config && a.in_force)
		return cmd_usage(c, "--config is about a file, --in-force about what holds now: "
				    "give one of them");
	cmd_output();
	t.file = argv[0];
	status = read_expectations(c, &t);
	if (!status && a.in_force)
		return judge_in_force(c, &t);
	status = status ? status : read_config(c, &t, a.config);
	return status ? status : judge(c, &t);
}

static const struct opt options[] = {
	{"config", 0, OPT_STRING, "FILE", "this config, whatever the file says",
	 offsetof(struct args, config), &words_file},
	{"in-force", 0, OPT_FLAG, NULL,
	 "what holds now, with all rules that were added: the agent is asked (root)",
	 offsetof(struct args, in_force), NULL},
};

const struct command cmd_policy_test = {
	.name = "policy test",
	.about = "whether a config's rules, or those that hold, say what is expected",
	.run = run,
	.syntax =
		{
			.usage = "ax policy test FILE [--config CONFIG|--in-force]",
			.about = "FILE is YAML: config: (a path beside it, or a config's text "
				 "behind '|') and tests:, a list of expectations such as {from: "
				 "web, to: db:5432, expect: allow, rule: 3}; expect is allow, deny "
				 "or audit. Each that does not hold is printed with its line. The "
				 "exit status is 0 if all hold and 1 if one does not.",
			.own = {{options, ARRAY_SIZE(options), 0}},
			.args = {&words_file},
		},
};
