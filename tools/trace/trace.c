/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ax trace: the table of its commands. */
#include "tools/trace/build/build.h"
#include "tools/trace/flow/flow.h"
#include "tools/trace/jit/jit.h"
#include "tools/trace/perfdata/perfdata.h"
#include "tools/trace/profile/profile.h"
#include "tools/trace/ready/ready.h"
#include "tools/trace/run/run.h"
#include "tools/trace/script/script.h"
#include "tools/trace/step/change.h"
#include "tools/trace/trace.h"

static const struct command *const commands[] = {
	&cmd_trace_watch,     &cmd_trace_count,	  &cmd_trace_hist,	  &cmd_trace_stats,
	&cmd_trace_latency,   &cmd_trace_run,	  &cmd_trace_show_script, &cmd_trace_exec,
	&cmd_trace_open,      &cmd_trace_tcp,	  &cmd_trace_syscalls,	  &cmd_trace_signals,
	&cmd_trace_files,     &cmd_trace_tls,	  &cmd_trace_malloc,	  &cmd_trace_locks,
	&cmd_trace_hypercall, &cmd_trace_profile, &cmd_trace_offcpu,	  &cmd_trace_build,
	&cmd_trace_jit,	      &cmd_trace_flow,	  &cmd_trace_step,	  &cmd_trace_change,
	&cmd_trace_changes,   &cmd_trace_list,	  &cmd_trace_explain,	  &cmd_trace_add,
	&cmd_trace_ls,	      &cmd_trace_view,	  &cmd_trace_enable,	  &cmd_trace_disable,
	&cmd_trace_reset,     &cmd_trace_rm,	  &cmd_trace_perfdata,	  NULL,
};

const struct command cmd_trace = {
	.name = "trace",
	.about = "attach probes to programs and the kernel, and show what they see",
	.sub = commands,
	.example = "'watch uretprobe:/bin/bash:readline retval:string' ...",
	.syntax =
		{
			.usage = "ax trace COMMAND PROBE [VALUE ...] [if CONDITION] [by VALUE "
				 "...]",
			.about = "Attaches probes to functions of programs and of the kernel, "
				 "static probes (USDT) and tracepoints, and shows what they see. "
				 "No agent is needed, programs go on as they are, and nothing "
				 "stays when this command ends.\n"
				 "\n"
				 "A PROBE is uprobe:FILE:FUNCTION or uretprobe:FILE:FUNCTION, "
				 "usdt:FILE:PROVIDER:NAME, kprobe:FUNCTION or "
				 "kretprobe:FUNCTION, tracepoint:CATEGORY:NAME, or a line of "
				 "ftrace's uprobe_events or kprobe_events. A VALUE is arg0 to "
				 "arg9, retval, %register, a field's name, pid, comm and so on, "
				 "with a type behind a colon if need be, as in retval:string.",
			.command_follows = true,
		},
};
