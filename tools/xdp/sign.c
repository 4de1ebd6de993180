/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ax xdp sign */
#include <time.h>

#include "tools/xdp/common.h"
#include "packet/trigger.h"

static int sign(struct cmd *c, const char *name, const char *key_file)
{
	CLEANUP(trigger_key_free) struct trigger_key key = {0};
	autofree char *text = NULL;
	struct error e = {0};
	int r;

	r = trigger_key_read(key_file, &key, &e);
	if (r)
		return cmd_failed(c, &e);
	r = trigger_sign(name, key.data, key.len, time(NULL), &text);
	if (r) {
		error_set(&e, r, "the datagram could not be signed: %s", strerror(-r));
		return cmd_failed(c, &e);
	}
	puts(text);
	return cmd_finish(c, CMD_OK);
}

struct args {
	const char *key_file;
};

static int run(struct cmd *c, int argc, char **argv)
{
	struct args a = {0};
	int status;

	if (!cmd_begin(c, &a, &argc, argv, &status))
		return status;
	if (argc != 1)
		return cmd_usage(c, "say which trigger");
	if (!trigger_name_ok(argv[0]))
		return cmd_usage(c, "'%.60s' is no trigger's name", argv[0]);
	if (!a.key_file)
		return cmd_usage(c, "say where the key is: --key-file FILE");
	cmd_output();
	return sign(c, argv[0], a.key_file);
}

static const struct opt options[] = {
	{"key-file", 'k', OPT_STRING, "FILE", "the trigger's key, as the agent has it",
	 offsetof(struct args, key_file), &words_file},
};

const struct command cmd_xdp_sign = {
	.name = "xdp sign",
	.about = "make the datagram that pulls a trigger",
	.run = run,
	.syntax =
		{
			.usage = "ax xdp sign NAME --key-file FILE",
			.about = "Prints the text of a datagram that makes the agent run the "
				 "command of the trigger NAME, see ax.yaml(5). It is good once, "
				 "and for as long as the trigger's window. Send it to a port "
				 "whose rule has 'trigger yes':\n\n"
				 "ax xdp sign NAME --key-file FILE > /dev/udp/10.0.0.1/9002",
			.own = {{options, ARRAY_SIZE(options), 0}},
		},
};
