/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ax exec: a command in an app that runs. */
#include "config/spec.h"
#include "datapath/splice.h"
#include "launch/launch.h"
#include "tools/cmd/commands.h"
#include "tools/lib/assignments.h"

struct args {
	struct strv env, env_files;
	const char *user, *directory;
	bool interactive, tty;
};

static void args_free(struct args *a)
{
	strv_free(&a->env);
	strv_free(&a->env_files);
}

static int set_text(char **to, const char *text, struct error *e)
{
	if (!text)
		return 0;
	*to = strdup(text);
	return *to ? 0 : error_set(e, -ENOMEM, "out of memory");
}

static int spec_fill(struct app_spec *spec, const struct args *a, int argc, char **argv,
		     struct error *e)
{
	int r = 0;

	if (a->directory && a->directory[0] != '/')
		return error_set(e, -EINVAL,
				 "--directory cannot be '%.200s': give an absolute path",
				 a->directory);
	r = set_text(&spec->directory, a->directory, e);
	r = r ? r : set_text(&spec->user, a->user, e);
	r = r ? r : assignments_collect(&a->env_files, &a->env, &spec->env, e);
	for (int i = 0; !r && i < argc; i++)
		if (strv_add(&spec->command, argv[i]))
			r = error_set(e, -ENOMEM, "out of memory");
	return r;
}

static int run(struct cmd *c, int argc, char **argv)
{
	CLEANUP(args_free) struct args a = {0};
	struct launch_options o = {.inst = &c->inst};
	struct splice_peers peers;
	struct error e = {0};
	int status;

	if (!cmd_begin(c, &a, &argc, argv, &status))
		return status;
	if (argc < 2)
		return cmd_usage(c, "give an app and the command to run in it, as in 'ax exec web "
				    "ps'");
	/* as docker has it, the command may be parted from the app */
	if (streq(argv[1], "--") && argc > 2) {
		argv[1] = argv[0];
		argc--;
		argv++;
	}
	if (spec_fill(&o.spec, &a, argc - 1, argv + 1, &e)) {
		status = cmd_usage(c, "%s", e.text);
	} else {
		cmd_tell_spliced(&o, &peers);
		status = launch_exec(&o, argv[0], &e);
		if (e.code)
			cmd_failed(c, &e);
	}
	app_spec_free(&o.spec);
	return status;
}

static const struct opt options[] = {
	{"user", 'u', OPT_STRING, "USER",
	 "run as this user, by name or number, instead of the app's", offsetof(struct args, user),
	 &words_user},
	{"env", 'e', OPT_STRINGS, "K=V", "set an environment variable (may be given several times)",
	 offsetof(struct args, env), NULL},
	{"env-file", 0, OPT_STRINGS, "FILE", "set those of a file with a K=V in each line",
	 offsetof(struct args, env_files), &words_file},
	{"directory", 'w', OPT_STRING, "DIR", "its working directory",
	 offsetof(struct args, directory), &words_directory},
	{"interactive", 'i', OPT_FLAG, NULL, "changes nothing: standard input is always there",
	 offsetof(struct args, interactive), NULL},
	{"tty", 't', OPT_FLAG, NULL, "changes nothing: a terminal is there if ax has one",
	 offsetof(struct args, tty), NULL},
};

const struct command cmd_exec = {
	.name = "exec",
	.about = "run a command in an app that runs",
	.run = run,
	.syntax =
		{
			.usage = "ax exec [options] APP COMMAND [ARGUMENT]...",
			.about = "Runs COMMAND as a part of an app, given by name or id: in its "
				 "network and with its files, variables and user. ax ends with its "
				 "exit status. Its connections are the app's, and the app goes on "
				 "until it has ended, too.\n\n"
				 "Options end at the first word that is none, or at '--'.",
			.own = {{options, ARRAY_SIZE(options), 0}},
			.args = {&words_app, &words_program},
			.command_follows = true,
		},
};
