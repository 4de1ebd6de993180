/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef AX_TOOLS_TRACE_READY_NAMES_H
#define AX_TOOLS_TRACE_READY_NAMES_H

#include "base/address.h"
#include "tools/lib/cmd.h"

struct address_name {
	struct ax_addr addr;
	char *name;
};
struct address_names {
	struct address_name *v;
	size_t n;
	uint64_t asked_ns; /* when the agent was asked last */
};
void address_names_load(struct address_names *n, const struct cmd *c);
/* NULL: it has none. */
const char *address_name(struct address_names *n, const struct cmd *c, const struct ax_addr *addr);
void address_names_free(struct address_names *n);

#endif
