// SPDX-License-Identifier: GPL-2.0-or-later
/* For processors that have no Intel PT, and no libipt in Debian: what is said to who asks for it.
 */
#include "probes/pt/pt.h"

#ifndef __x86_64__
int pt_packets_new(struct pt_packets **ret, struct error *e)
{
	*ret = NULL;
	return error_set(
		e, -ENOTSUP,
		"Intel PT is decoded by the library libipt, which this ax was built without: "
		"Debian has it for amd64 only");
}

void pt_packets_free(struct pt_packets *p)
{
	(void)p;
}

void pt_packets_begin(struct pt_packets *p, uint64_t offset)
{
	(void)p;
	(void)offset;
}

int pt_packets_give(struct pt_packets *p, const uint8_t *data, size_t len, struct error *e)
{
	(void)p;
	(void)data;
	(void)len;
	return error_set(e, -ENOTSUP, "there is no libipt");
}

int pt_packets_next(struct pt_packets *p, struct pt_one *ret)
{
	(void)p;
	(void)ret;
	return 0;
}

int pt_packets_last(struct pt_packets *p, struct pt_one *ret)
{
	(void)p;
	(void)ret;
	return 0;
}

int pt_flow_run(uint8_t *trace, size_t n, const struct pt_clock *clock, const struct pt_flow *flow,
		struct error *e)
{
	(void)trace;
	(void)n;
	(void)clock;
	(void)flow;
	return error_set(e, -ENOTSUP, "there is no libipt");
}
#endif
