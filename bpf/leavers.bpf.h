/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * TCP of private apps that leaves ax by a rule: it goes on when the rule has forgotten the address
 * of a name. Each app has room of its own for that, see include/awaited.h. BPF only.
 */
#ifndef AX_LEAVERS_BPF_H
#define AX_LEAVERS_BPF_H

#include "answer.bpf.h"

/* The app has connected to that one from its port, as a rule lets it. (A global function, as
 * those of answer.bpf.h.) */
__weak __noinline int leave_to(__u32 app, const struct ax_endpoint *to, __u32 port_be)
{
	struct ax_awaited_key key;

	if (!to)
		return false;
	await_key(app, to, (__be16)port_be, AX_LEAVERS_SETS, &key);
	return await_in(&leavers, &key, to, (__be16)port_be);
}

/* Whether it has. */
__weak __noinline int is_leaver(__u32 app, const struct ax_endpoint *to, __u32 port_be)
{
	struct ax_awaited_key key;

	if (!to || !to->proto)
		return false;
	await_key(app, to, (__be16)port_be, AX_LEAVERS_SETS, &key);
	return await_knows(&leavers, &key, to, (__be16)port_be);
}

#endif
