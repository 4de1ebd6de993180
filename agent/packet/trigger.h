/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Signed triggers: a datagram that makes the agent run a command of its config. Its text is
 *
 *   NAME NONCE MAC          one space each; a line's end may follow
 *
 *   NAME   of a trigger of the config
 *   NONCE  <UNIX seconds>.<8 to 32 random hex digits>
 *   MAC    HMAC-SHA256 of "NAME NONCE" in 64 hex digits, with the bytes of the key file
 *
 * all in lower case where it is hex. A nonce is good once, and only while its time is within the
 * trigger's window around the agent's clock. Whatever else is wrong, nothing happens: no answer is
 * sent, it is counted.
 *
 * Nothing of the datagram reaches the command but the trigger's name, which is one of the config's.
 */
#ifndef AX_PACKET_TRIGGER_H
#define AX_PACKET_TRIGGER_H

#include "base/util.h"

#define TRIGGER_NAME_MAX  63  /* letters, digits, . _ - */
#define TRIGGER_TEXT_MAX  192 /* of a whole datagram */
#define TRIGGER_NONCE_MAX 48
#define TRIGGER_MAC_SIZE  32
#define TRIGGER_KEY_MIN	  16
#define TRIGGER_KEY_MAX	  4096

struct trigger_message {
	char name[TRIGGER_NAME_MAX + 1];
	char nonce[TRIGGER_NONCE_MAX + 1];
	int64_t time; /* the nonce's, UNIX seconds */
	uint8_t mac[TRIGGER_MAC_SIZE];
};

/* A name that a trigger may have. */
bool trigger_name_ok(const char *name);
/* -EBADMSG for anything else than such a text. */
int trigger_parse(const void *data, size_t len, struct trigger_message *ret);
/* The whole text for now (UNIX seconds), without a line's end, malloc'ed. -EINVAL: the name or the
 * key is not one. */
int trigger_sign(const char *name, const void *key, size_t len, int64_t now, char **ret);
/* -EKEYREJECTED: signed with another key; -ESTALE: its time is not within the window. Takes the
 * same time for every MAC that is wrong. */
int trigger_check(const struct trigger_message *m, const void *key, size_t len, int64_t now_ms,
		  uint32_t window_ms);

/*
 * The key of a file: its bytes without a line's end behind them. Refused are files that others can
 * read or write, that are neither the caller's nor root's, or that are too short. *ret is for
 * trigger_key_free().
 */
struct trigger_key {
	uint8_t *data;
	size_t len;
};
int trigger_key_read(const char *path, struct trigger_key *ret, struct error *e);
void trigger_key_free(struct trigger_key *k);

/*
 * Messages that were accepted, by their MAC, until their time has left the window. What was
 * forgotten is remembered as a time before which nothing is accepted any more, so that a clock that
 * is set back brings no old message back to life.
 */
#define TRIGGER_SEEN_MAX 4096
struct trigger_seen {
	struct trigger_seen_entry {
		uint8_t mac[TRIGGER_MAC_SIZE];
		int64_t time, until_ms;
	} * v;
	size_t n;
	int64_t horizon; /* UNIX seconds */
};
/* -EALREADY: seen before; -ESTALE: not after the horizon; -ENOSPC: too many are remembered. */
int trigger_remember(struct trigger_seen *s, const struct trigger_message *m, int64_t now_ms,
		     uint32_t window_ms);
void trigger_seen_free(struct trigger_seen *s);

#endif
