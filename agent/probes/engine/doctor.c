// SPDX-License-Identifier: GPL-2.0-or-later
/* Which kinds of probes this kernel has. */
#include "probes/engine/engine.h"
#include "probes/engine/link.h"
#include "probes/engine/priv.h"

#define EVENTS "/sys/bus/event_source/devices/"

static bool has_uprobe(void)
{
	return access(EVENTS "uprobe/type", F_OK) == 0;
}

static bool has_kprobe(void)
{
	return access(EVENTS "kprobe/type", F_OK) == 0;
}

static bool has_tracepoint(void)
{
	return access(EVENTS "tracepoint/type", F_OK) == 0;
}

static const struct {
	bool (*has)(void);
	struct engine_feature f;
} features[] = {
	{has_uprobe,
	 {.name = "uprobe",
	  .cost = "no probes in programs and libraries",
	  .needs = "CONFIG_UPROBE_EVENTS"}},
	{link_has_uprobe_multi,
	 {.name = "uprobe_multi",
	  .cost = "each place in a program is an attachment: at most 64, a tenth of a second "
		  "each to detach",
	  .needs = "Linux 6.6"}},
	{link_has_uprobe_pid,
	 {.name = "uprobe_pid",
	  .cost = "probes of one process are hit, and passed over, in the others too",
	  .needs = "Linux 6.10"}},
	{has_kprobe,
	 {.name = "kprobe",
	  .cost = "no probes on functions of the kernel",
	  .needs = "CONFIG_KPROBE_EVENTS"}},
	{link_has_kprobe_multi,
	 {.name = "kprobe_multi",
	  .cost = "each function of the kernel is an attachment: at most 64, a tenth of a second "
		  "each to detach",
	  .needs = "Linux 5.18, CONFIG_FPROBE"}},
	{has_tracepoint,
	 {.name = "tracepoint", .cost = "no tracepoints", .needs = "CONFIG_EVENT_TRACING"}},
	{link_has_raw_tracepoint_cookie,
	 {.name = "tracepoint_raw",
	  .cost = "tracepoints are read by perf events, which costs more",
	  .needs = "Linux 6.10"}},
};

int engine_doctor(int (*report)(void *arg, const struct engine_feature *f), void *arg)
{
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(features) && !r; i++) {
		struct engine_feature f = features[i].f;

		f.on = features[i].has();
		r = report(arg, &f);
	}
	return r;
}
