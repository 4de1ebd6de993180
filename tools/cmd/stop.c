/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/lib/cmd.h"
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

int cmd_stop(struct cmd *c, int argc, char **argv)
{
	uint32_t timeout_ms = 10000;
	int status, worst = CMD_OK;
	const struct opt opts[] = {
		{"timeout", 't', OPT_DURATION, "TIME",
		 "kill what has not ended this long after SIGTERM (10s unless given)", &timeout_ms,
		 NULL},
	};
	const struct opt_syntax s = {
		.usage = "ax stop [--timeout TIME] APP...",
		.about = "Stops apps, given by name or id: SIGTERM to every process, SIGKILL to "
			 "those that do not end in time. A name stops all apps of that name. "
			 "Returns when they are gone.",
		.own = {opts, ARRAY_SIZE(opts)},
	};

	if (!cmd_begin(c, &s, &argc, argv, &status))
		return status;
	if (!argc)
		return cmd_usage(c, "give the name or the id of an app; 'ax get apps' lists them");
	cmd_output();
	for (int i = 0; i < argc; i++) {
		status = stop(c, argv[i], timeout_ms);
		worst = status ? status : worst;
	}
	return cmd_finish(c, worst);
}
