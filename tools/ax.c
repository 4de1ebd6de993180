/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ax: the command line. The table of commands; each is explained where it is defined. */
#include "tools/cmd/commands.h"
#include "tools/trace/trace.h"
#include "tools/xdp/common.h"

static const struct command *const commands[] = {
	&cmd_agent, &cmd_run,	 &cmd_exec,	  &cmd_ps,     &cmd_get,     &cmd_status, &cmd_stop,
	&cmd_rm,    &cmd_logs,	 &cmd_events,	  &cmd_config, &cmd_service, &cmd_policy, &cmd_xdp,
	&cmd_trace, &cmd_doctor, &cmd_completion, &cmd_help,   NULL,
};

static const struct command ax = {
	.syntax =
		{
			.usage = "ax [--instance NAME] [--socket PATH] COMMAND ...",
			.about = "Gives programs virtual IPs and names, and switches their "
				 "connections inside the kernel.",
			.command_follows = true,
		},
	.sub = commands,
	.elsewhere = commands_elsewhere,
	.more = "'ax COMMAND --help' explains a command. The manual: man ax",
};

int main(int argc, char **argv)
{
	struct cmd c = {.root = &ax};

	return command_run(&c, &ax, argc > 0 ? argc - 1 : 0, argv + 1);
}
