// SPDX-License-Identifier: GPL-2.0-or-later
/* ax trace perfdata: the table of its commands. */
#include "tools/trace/perfdata/perfdata.h"

static const struct command *const commands[] = {
	&cmd_trace_perfdata_info, &cmd_trace_perfdata_events, &cmd_trace_perfdata_aux,
	&cmd_trace_perfdata_pt,	  &cmd_trace_perfdata_flow,   NULL,
};

const struct command cmd_trace_perfdata = {
	.name = "trace perfdata",
	.about = "read what perf record wrote, and traces of hardware in it",
	.sub = commands,
	.example = "'info perf.data' ...",
	.syntax =
		{
			.usage = "ax trace perfdata COMMAND FILE",
			.about = "Reads files of perf record (and what 'perf record -o -' writes "
				 "into a pipe), also compressed ones and those of machines with "
				 "the other byte order. Nothing is attached, and no privilege is "
				 "needed.",
			.command_follows = true,
		},
};
