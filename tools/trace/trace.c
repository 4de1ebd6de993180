/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ax trace: finds the sub-command. */
#include "tools/trace/flow/flow.h"
#include "tools/trace/ready/ready.h"
#include "tools/trace/run/run.h"
#include "tools/trace/trace.h"

int cmd_trace(struct cmd *c, int argc, char **argv)
{
	static const struct subcommand commands[] = {
		{"watch", "trace watch", cmd_trace_watch, "print a record each time"},
		{"count", "trace count", cmd_trace_count, "count, by values"},
		{"hist", "trace hist", cmd_trace_hist, "show how a value is distributed"},
		{"stats", "trace stats", cmd_trace_stats,
		 "sum, least, greatest and mean of a value"},
		{"latency", "trace latency", cmd_trace_latency,
		 "show how long functions take, or the time between two probes"},
		{"exec", "trace exec", cmd_trace_exec,
		 "print every command that is executed, with all arguments"},
		{"open", "trace open", cmd_trace_open, "print which files are opened, and how"},
		{"tcp", "trace tcp", cmd_trace_tcp,
		 "print TCP connections, how much they carried and how they ended"},
		{"flow", "trace flow", cmd_trace_flow,
		 "print which functions call which, with arguments and results"},
		{"list", "trace list", cmd_trace_list,
		 "list functions, static probes, tracepoints"},
		{"explain", "trace explain", cmd_trace_explain,
		 "tell where a probe goes, what it costs and what it fetches"},
		{"add", "trace add", cmd_trace_add, "attach a probe that stays, under a name"},
		{"ls", "trace ls", cmd_trace_ls, "list the probes that have names"},
		{"view", "trace view", cmd_trace_view, "show what one of them has seen"},
		{"enable", "trace enable", cmd_trace_enable, "attach one of them again"},
		{"disable", "trace disable", cmd_trace_disable,
		 "detach one of them; what it has seen stays"},
		{"reset", "trace reset", cmd_trace_reset, "let one of them count anew"},
		{"rm", "trace rm", cmd_trace_rm, "remove one of them"},
	};
	static const struct command_group group = {
		.syntax = {.usage = "ax trace COMMAND PROBE [VALUE ...] [if CONDITION] [by VALUE "
				    "...]",
			   .about = "Attaches probes to functions of programs and of the kernel, "
				    "static probes (USDT) and tracepoints, and shows what they "
				    "see. No agent is needed, programs go on as they are, and "
				    "nothing stays when this command ends.\n"
				    "\n"
				    "A PROBE is uprobe:FILE:FUNCTION or uretprobe:FILE:FUNCTION, "
				    "usdt:FILE:PROVIDER:NAME, kprobe:FUNCTION or "
				    "kretprobe:FUNCTION, tracepoint:CATEGORY:NAME, or a line of "
				    "ftrace's uprobe_events or kprobe_events. A VALUE is arg0 to "
				    "arg9, retval, %register, a field's name, pid, comm and so "
				    "on, with a type behind a colon if need be, as in "
				    "retval:string."},
		.v = commands,
		.n = ARRAY_SIZE(commands),
		.example = "'watch uretprobe:/bin/bash:readline retval:string' ...",
	};

	return cmd_dispatch(c, &group, argc, argv);
}
