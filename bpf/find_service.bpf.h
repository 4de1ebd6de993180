/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The service at an endpoint, for programs on sockets and on packets. BPF only. */
#ifndef AX_FIND_SERVICE_BPF_H
#define AX_FIND_SERVICE_BPF_H

#include "maps.bpf.h"

/* That of the port, else the one that has every port. */
static __always_inline struct ax_service *find_service(const struct ax_endpoint *ep)
{
	struct ax_service *svc = bpf_map_lookup_elem(&services, ep);
	struct ax_endpoint any = *ep;

	if (svc)
		return svc;
	any.port_be = 0;
	return bpf_map_lookup_elem(&services, &any);
}

#endif
