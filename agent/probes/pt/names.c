// SPDX-License-Identifier: GPL-2.0-or-later
/* Packets and their values by the names of Intel's manual. */
#include "probes/pt/pt.h"

static const struct {
	const char *name;
	const char *values[PT_VALUES];
} kinds[PT_KINDS] = {
	[PT_BAD] = {"BAD", {"skipped"}},
	[PT_CUT] = {"CUT", {"left"}},
	[PT_PAD] = {"PAD", {NULL}},
	[PT_PSB] = {"PSB", {NULL}},
	[PT_PSBEND] = {"PSBEND", {NULL}},
	[PT_FUP] = {"FUP", {NULL}},
	[PT_TIP] = {"TIP", {NULL}},
	[PT_TIP_PGE] = {"TIP.PGE", {NULL}},
	[PT_TIP_PGD] = {"TIP.PGD", {NULL}},
	[PT_TNT] = {"TNT", {NULL}},
	[PT_TNT_64] = {"TNT64", {NULL}},
	[PT_MODE_EXEC] = {"MODE.Exec", {"bits"}},
	[PT_MODE_TSX] = {"MODE.TSX", {"in_tx", "abort"}},
	[PT_PIP] = {"PIP", {"cr3", "nr"}},
	[PT_VMCS] = {"VMCS", {"base"}},
	[PT_CBR] = {"CBR", {"ratio"}},
	[PT_TSC] = {"TSC", {"tsc"}},
	[PT_TMA] = {"TMA", {"ctc", "fc"}},
	[PT_MTC] = {"MTC", {"ctc"}},
	[PT_CYC] = {"CYC", {"cycles"}},
	[PT_TRACE_STOP] = {"TraceSTOP", {NULL}},
	[PT_OVF] = {"OVF", {NULL}},
	[PT_MNT] = {"MNT", {"payload"}},
	[PT_EXSTOP] = {"EXSTOP", {"ip"}},
	[PT_MWAIT] = {"MWAIT", {"hints", "ext"}},
	[PT_PWRE] = {"PWRE", {"state", "sub_state", "hw"}},
	[PT_PWRX] = {"PWRX", {"last", "deepest", "wake"}},
	[PT_PTW] = {"PTWRITE", {"payload", "bytes", "ip"}},
	[PT_UNKNOWN] = {"unknown", {NULL}},
};

const char *pt_kind_name(enum pt_kind kind)
{
	return kinds[kind].name;
}

const char *pt_value_name(enum pt_kind kind, unsigned i)
{
	return i < PT_VALUES ? kinds[kind].values[i] : NULL;
}
