// SPDX-License-Identifier: GPL-2.0-or-later
#include "splice/reason.h"
#include "base/util.h"

static const struct {
	const char *text;
	bool open;
} reasons[REASONS] = {
	[REASON_NONE] = {"", false},
	[REASON_OFF] = {"off", false},
	[REASON_NOT_ASKED] = {"auto: this kernel differs", false},
	[REASON_GATE_WAITS] = {"the kernel is being tried", true},
	[REASON_GATE_BROKE] = {"the kernel could not be tried", false},
	[REASON_KERNEL] = {"kernel too old", false},
	[REASON_UNSAFE] = {"not safe on this kernel", false},
	[REASON_FIONREAD] = {"FIONREAD is wrong here", false},
	[REASON_NO_PEER] = {"other end is no app", true},
	[REASON_STRANGER] = {"not its app's address", true},
	[REASON_CANNOT] = {"TLS, MPTCP, repair, memory limit", true},
	[REASON_BLOCKING] = {"blocking", true},
	[REASON_YOUNG] = {"young", true},
	[REASON_FEW] = {"few messages", true},
	[REASON_STREAM] = {"stream", true},
	[REASON_STREAM_EDGES] = {"stream, edge-triggered", true},
	[REASON_PROGRAM] = {"uses splice(2)", true},
	[REASON_PROGRAM_UNKNOWN] = {"may use splice(2)", true},
	[REASON_FULL] = {"too many members", true},
	[REASON_FAILED] = {"refused by the kernel", true},
};

const char *splice_reason_text(enum splice_reason r)
{
	return r < REASONS ? reasons[r].text : NULL;
}

bool splice_reason_is_open(enum splice_reason r)
{
	return r < REASONS && reasons[r].open;
}
