/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Between the files that write captures. */
#ifndef AX_TOOLS_XDP_CAPTURE_PRIV_H
#define AX_TOOLS_XDP_CAPTURE_PRIV_H

#include "tools/xdp/capture_out.h"

/* Records carry the time since boot; since 1970, in nanoseconds. */
uint64_t capture_real_time(uint64_t boot_ns);
bool capture_is_ip(const struct ax_capture *c);
const char *capture_verdict(const struct ax_capture *c);

/* capture_json.c, capture_pcap.c: as capture_put(). */
int capture_put_json(const struct capture_out *o, const struct ax_capture *c, const uint8_t *data,
		     const char *rule);
int capture_put_pcap(struct capture_out *o, const struct ax_capture *c, const uint8_t *data);

#endif
