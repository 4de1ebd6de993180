/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ax stop: ends apps. */
#include "tools/cmd/commands.h"
#include "tools/lib/text.h"

static int stop(struct cmd *c, const char *app, uint32_t timeout_ms)
{
	autojson json_t *reply = NULL;
	struct error e = {0};
	json_t *item;
	size_t i;

	if (cmd_ask(c,
		    json_pack("{s:s,s:s,s:I}", "op", "stop", "app", app, "timeout_ms",
			      (json_int_t)timeout_ms),
		    &reply, &e))
		return cmd_failed(c, &e);
	json_array_foreach (json_object_get(reply, "stopped"), i, item) {
		const char *name = member_string(item, "name");

		fputs("stopped ", stdout);
		text_put(name ? name : "?", stdout);
		printf(" (%lld)\n", member_int(item, "id"));
	}
	return CMD_OK;
}

struct args {
	uint32_t timeout_ms;
};

static int run(struct cmd *c, int argc, char **argv)
{
	struct args a = {.timeout_ms = 10000};
	int status, worst = CMD_OK;

	if (!cmd_begin(c, &a, &argc, argv, &status))
		return status;
	if (!argc)
		return cmd_usage(c, "give the name or the id of an app; 'ax get apps' lists them");
	cmd_output();
	for (int i = 0; i < argc; i++) {
		status = stop(c, argv[i], a.timeout_ms);
		worst = status ? status : worst;
	}
	return cmd_finish(c, worst);
}

static const struct opt options[] = {
	{"timeout", 't', OPT_DURATION, "TIME",
	 "kill what has not ended this long after SIGTERM (10s unless given)",
	 offsetof(struct args, timeout_ms), NULL},
};

const struct command cmd_stop = {
	.name = "stop",
	.about = "stop apps",
	.run = run,
	.syntax =
		{
			.usage = "ax stop [--timeout TIME] APP...",
			.about = "Stops apps, given by name or id: SIGTERM to every process, "
				 "SIGKILL to those that do not end in time. A name stops all apps "
				 "of that name. Returns when they are gone.",
			.own = {{options, ARRAY_SIZE(options), 0}},
			.rest = &words_app,
		},
};
