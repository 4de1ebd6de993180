/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ax rm: what an app left behind. */
#include "tools/cmd/commands.h"
#include "tools/lib/text.h"

struct args {
	bool force;
};

static int remove_one(struct cmd *c, const char *app, struct error *e)
{
	autojson json_t *reply = NULL;

	return cmd_ask(c, json_pack("{s:s,s:s}", "op", "remove", "app", app), &reply, e);
}

/* Stops what runs. Of an id, *name (where there is one) becomes the name: that is what is left. */
static int stop_first(struct cmd *c, const char *app, char name[64], struct error *e)
{
	autojson json_t *reply = NULL;
	const char *first;
	int r = cmd_ask(c, json_pack("{s:s,s:s}", "op", "stop", "app", app), &reply, e);

	if (r == -ENOENT)
		return 0; /* it does not run: then there may be something to remove */
	if (r)
		return r;
	first = member_string(json_array_get(json_object_get(reply, "stopped"), 0), "name");
	if (first)
		snprintf(name, 64, "%s", first);
	return 1;
}

static int run_one(struct cmd *c, const char *app, bool force)
{
	struct error e = {0};
	char name[64] = "";
	int r = 0, stopped = 0;

	if (force)
		stopped = stop_first(c, app, name, &e);
	if (stopped < 0)
		return cmd_failed(c, &e);
	r = remove_one(c, *name ? name : app, &e);
	/* ENOENT: it had no log; EBUSY: the log is that of others of its name, too */
	if (r && !(stopped && (r == -ENOENT || (r == -EBUSY && !streq(name, app)))))
		return cmd_failed(c, &e);
	fputs("removed ", stdout);
	text_put(app, stdout);
	putchar('\n');
	return CMD_OK;
}

static int run(struct cmd *c, int argc, char **argv)
{
	struct args a = {0};
	int status, worst = CMD_OK;

	if (!cmd_begin(c, &a, &argc, argv, &status))
		return status;
	if (!argc)
		return cmd_usage(c, "give the name of an app; with --force it may run");
	cmd_output();
	for (int i = 0; i < argc; i++) {
		status = run_one(c, argv[i], a.force);
		worst = status ? status : worst;
	}
	return cmd_finish(c, worst);
}

static const struct opt options[] = {
	{"force", 'f', OPT_FLAG, NULL, "stop it first if it runs", offsetof(struct args, force),
	 NULL},
};

const struct command cmd_rm = {
	.name = "rm",
	.about = "remove what apps that ended left behind",
	.run = run,
	.syntax =
		{
			.usage = "ax rm [--force] APP...",
			.about = "Removes what detached apps leave when they have ended: their "
				 "output, and a start that is still due. An app that runs is "
				 "refused, or stopped first with --force. Nothing else is ever "
				 "left of an app. One that the config declares stays declared.",
			.own = {{options, ARRAY_SIZE(options), 0}},
			.rest = &words_app,
		},
};
