/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whose network namespace a socket is in. An address means something only there: in a namespace of
 * its own making an app can have any. */
#ifndef AX_HOME_BPF_H
#define AX_HOME_BPF_H

#include <stdbool.h>

#include "endpoint.bpf.h"
#include "maps.bpf.h"

/* NULL: one that ax does not know. ctx: of a program on a socket, or what is done with one. */
static __always_inline struct ax_netns_app *netns_of(void *ctx)
{
	__u64 cookie = bpf_get_netns_cookie(ctx);

	return bpf_map_lookup_elem(&netns_apps, &cookie);
}

/* The namespace in which the app's addresses are its own. */
static __always_inline bool is_home(const struct ax_netns_app *ns, const struct ax_app *app)
{
	return ns->id == (app->flags & AX_APP_HOST ? 0 : app->id);
}

#endif
