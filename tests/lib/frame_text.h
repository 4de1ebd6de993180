/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Frames as text:
 *
 *	PACKET [| CHANGE...]
 *
 * PACKET as in packet_text.h, or "hex ..."; CHANGE, from left to right:
 *
 *	N=HEX	the bytes from offset N on are these
 *	N+HEX	these bytes are put in at offset N
 *	cutN	it ends after N bytes
 *	padN	N bytes of zero follow
 *	len	the IP header at offset 14 says the length that the frame has
 *	sum	and its checksum is right (IPv4)
 */
#ifndef AX_TESTS_FRAME_TEXT_H
#define AX_TESTS_FRAME_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FRAME_MAX 16384

struct frame_bytes {
	size_t len;
	uint16_t pad; /* so that IP headers are aligned */
	uint8_t b[FRAME_MAX];
};

/* Puts bytes in at an offset, or in the place of those that are there. */
void put_in(struct frame_bytes *f, size_t at, const uint8_t *hex, size_t n, bool insert);

/* The IP header says the length that the frame has. */
void fix_length(struct frame_bytes *f);

/* One CHANGE. */
void change_frame(struct frame_bytes *f, const char *word);

/* A wrong text ends the test. */
void read_frame(const char *spec, struct frame_bytes *f);

/* `spec` is how it came in, for the message. */
void assert_same_frame(const char *spec, const struct frame_bytes *f,
		       const struct frame_bytes *expected);

#endif
