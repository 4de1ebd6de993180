// SPDX-License-Identifier: GPL-2.0-or-later
/* Any bytes as what comes in at a socket for ICMP: only a whole reply to what was sent is one. */
#include "checkup/ping.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ping_reply reply;
	uint64_t nonce = 0;

	if (size < sizeof(nonce))
		return 0;
	memcpy(&nonce, data, sizeof(nonce));
	for (unsigned how = 0; how < 4; how++) {
		bool v4 = how & 1;
		size_t ip = v4 ? 20 : 40;

		if (ping_read(data + sizeof(nonce), size - sizeof(nonce), v4, how & 2, nonce,
			      &reply) &&
		    (reply.size < ip + 8 + sizeof(nonce) || reply.size > size + ip))
			abort();
	}
	return 0;
}
