/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * TCP of programs on other machines to private apps, by way of this host: the app's side of it may
 * leave. Each app has room of its own for that, see include/awaited.h. BPF only.
 */
#ifndef AX_VISITORS_BPF_H
#define AX_VISITORS_BPF_H

#include "answer.bpf.h"

/* That client has a connection to the app's port. (A global function, as those of answer.bpf.h.) */
__weak __noinline int visit_of(__u32 app, const struct ax_endpoint *client, __u32 port_be)
{
	struct ax_awaited_key key;

	if (!client)
		return false;
	await_key(app, client, (__be16)port_be, AX_VISITORS_SETS, &key);
	return await_in(&visitors, &key, client, (__be16)port_be);
}

/* Whether it has. */
__weak __noinline int is_visitor(__u32 app, const struct ax_endpoint *client, __u32 port_be)
{
	struct ax_awaited_key key;

	if (!client || !client->proto)
		return false;
	await_key(app, client, (__be16)port_be, AX_VISITORS_SETS, &key);
	return await_knows(&visitors, &key, client, (__be16)port_be);
}

#endif
