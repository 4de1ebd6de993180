/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Records of captures as text, JSON or pcap. What came from the network is made harmless. */
#ifndef AX_TOOLS_XDP_CAPTURE_OUT_H
#define AX_TOOLS_XDP_CAPTURE_OUT_H

#include "tools/lib/cmd.h"

#include "base/util.h"
#include "xdp.h"

enum capture_format { CAPTURE_ASCII, CAPTURE_HEX, CAPTURE_JSON, CAPTURE_PCAP };

struct capture_out {
	FILE *to;
	enum capture_format format;
	uint64_t left_out; /* records that a pcap file cannot hold */
};

void capture_begin(struct capture_out *o);
/* 0; 1: it was left out; or a negative errno. The stream's errors stay in the stream. */
int capture_put(struct capture_out *o, const struct ax_capture *c, const uint8_t *data,
		const char *rule);

/* Any bytes as text that no terminal can misunderstand; malloc'ed. */
char *capture_text(const uint8_t *data, size_t len);
/* Lines of 16 bytes, in hex and as text. */
void capture_put_hex(const uint8_t *data, size_t len, FILE *to);
json_t *capture_slot_json(const char *name, const struct ax_slot *slot);

#endif
