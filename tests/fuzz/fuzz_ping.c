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
	for (int raw = 0; raw < 2; raw++)
		if (ping_read(data + sizeof(nonce), size - sizeof(nonce), raw, nonce, &reply) &&
		    (reply.size < 20 + 8 + sizeof(nonce) || reply.size > size + 20))
			abort();
	return 0;
}
