// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Any bytes as a trigger's datagram: what is taken for one can be put together again to the same
 * text, and has no MAC that is right, but for one made with the key.
 */
#include <stdint.h>

#include "packet/trigger.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char key[] = "a key that no fuzzer knows";

static void check(bool good)
{
	if (!good)
		abort();
}

static void check_text(const struct trigger_message *m, const uint8_t *data, size_t size)
{
	char mac[2 * TRIGGER_MAC_SIZE + 1];
	autofree char *text = NULL;

	for (size_t i = 0; i < TRIGGER_MAC_SIZE; i++)
		sprintf(mac + 2 * i, "%02x", m->mac[i]);
	check(asprintf(&text, "%s %s %s", m->name, m->nonce, mac) > 0);
	check(trigger_name_ok(m->name) && atoll(m->nonce) == m->time && m->time >= 0);
	check(strlen(text) <= size && memcmp(text, data, strlen(text)) == 0);
	check(size - strlen(text) <= 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct trigger_seen seen;
	struct trigger_message m, own;
	autofree char *text = NULL;
	uint8_t *copy = malloc(size); /* of exactly that size: reading on is found out */
	int r;

	if (size && !copy)
		return 0;
	if (size)
		memcpy(copy, data, size);
	r = trigger_parse(copy, size, &m);
	check(r == 0 || r == -EBADMSG);
	if (r == 0) {
		check_text(&m, copy, size);
		check(trigger_check(&m, key, sizeof(key), m.time * 1000, 1000) == -EKEYREJECTED);
		check(trigger_sign(m.name, key, sizeof(key), m.time, &text) == 0);
		check(trigger_parse(text, strlen(text), &own) == 0);
		check(streq(own.name, m.name) && own.time == m.time);
		check(trigger_check(&own, key, sizeof(key), m.time * 1000, 1000) == 0);
		r = trigger_remember(&seen, &own, m.time * 1000, 1000);
		check(r == 0 || r == -ESTALE || r == -ENOSPC);
		if (r == 0)
			check(trigger_remember(&seen, &own, m.time * 1000, 1000) == -EALREADY);
	}
	free(copy);
	return 0;
}
