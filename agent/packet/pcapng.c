// SPDX-License-Identifier: GPL-2.0-or-later
/* Writing capture files with comments. A block is its type, length, contents and length again; all
 * in it begins at a multiple of 4 bytes. */
#include "packet/pcap.h"
#include "packet/pcapng.h"

#define BLOCK_SECTION	 0x0a0d0d0au
#define BLOCK_INTERFACE	 1u
#define BLOCK_STATISTICS 5u
#define BLOCK_PACKET	 6u
#define SECTION_ORDER	 0x1a2b3c4du
#define BLOCK_FRAME	 12u /* type and both lengths */
#define NANOSECONDS	 9   /* 10^-9 */
#define VERDICT_XDP	 2   /* by a program of XDP */
#define FILTER_TEXT	 0   /* in a capture program's own words */

/* A block's options. Numbers are those of the draft; they have a meaning in their block alone. */
enum {
	OPT_END,
	OPT_COMMENT,
	SECTION_OS = 3,
	SECTION_PROGRAM = 4,
	INTERFACE_NAME = 2,
	INTERFACE_RESOLUTION = 9,
	INTERFACE_FILTER = 11,
	PACKET_FLAGS = 2,
	PACKET_ID = 5,
	PACKET_QUEUE = 6,
	PACKET_VERDICT = 7,
	STATISTICS_START = 2,
	STATISTICS_END = 3,
	STATISTICS_RECEIVED = 4,
	STATISTICS_DROPPED = 7, /* by the operating system */
};

struct option {
	uint16_t number;
	uint16_t len;
	const void *value;
};
#define OPTIONS_MAX 6

static uint32_t padded(uint32_t len)
{
	return (len + 3) & ~3u;
}

static void put32(FILE *f, uint32_t v)
{
	fwrite(&v, sizeof(v), 1, f);
}

static void put_padded(FILE *f, const void *data, uint32_t len)
{
	const uint32_t zero = 0;

	if (len)
		fwrite(data, 1, len, f);
	fwrite(&zero, 1, padded(len) - len, f);
}

static struct option text_option(uint16_t number, const char *text)
{
	size_t len = text ? strlen(text) : 0;

	if (len > UINT16_MAX - 3)
		len = UINT16_MAX - 3;
	return (struct option){number, (uint16_t)len, text};
}

static uint32_t options_len(const struct option *o, size_t n)
{
	uint32_t len = 4;

	for (size_t i = 0; i < n; i++)
		len += 4 + padded(o[i].len);
	return len;
}

static void put_options(FILE *f, const struct option *o, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const uint16_t head[2] = {o[i].number, o[i].len};

		fwrite(head, sizeof(head), 1, f);
		put_padded(f, o[i].value, o[i].len);
	}
	put32(f, OPT_END);
}

/* A block of words, a packet's data (NULL: none) and options. */
static void put_block(FILE *f, uint32_t type, const uint32_t *words, uint32_t n_words,
		      const void *data, uint32_t len, const struct option *o, size_t n)
{
	uint32_t total = BLOCK_FRAME + 4 * n_words + padded(len) + options_len(o, n);

	put32(f, type);
	put32(f, total);
	fwrite(words, sizeof(*words), n_words, f);
	if (data)
		put_padded(f, data, len);
	put_options(f, o, n);
	put32(f, total);
}

void pcapng_put_section(FILE *f, const char *os, const char *program)
{
	const struct option o[] = {text_option(SECTION_OS, os),
				   text_option(SECTION_PROGRAM, program)};
	/* version 1.0 as two words of 16 bits; the section's length is not known: -1 */
	uint32_t words[4] = {SECTION_ORDER, 0, UINT32_MAX, UINT32_MAX};
	const uint16_t version[2] = {1, 0};

	memcpy(&words[1], version, sizeof(version));
	put_block(f, BLOCK_SECTION, words, ARRAY_SIZE(words), NULL, 0, o, ARRAY_SIZE(o));
}

void pcapng_put_interface(FILE *f, const char *name, const char *filter, uint32_t snap)
{
	const uint16_t link[2] = {PCAP_ETHERNET, 0};
	const uint8_t resolution = NANOSECONDS;
	char how[1024] = {FILTER_TEXT};
	struct option o[3] = {text_option(INTERFACE_NAME, name),
			      {INTERFACE_RESOLUTION, 1, &resolution}};
	uint32_t words[2] = {0, snap};
	size_t n = 2;

	memcpy(&words[0], link, sizeof(link));
	if (filter) {
		snprintf(how + 1, sizeof(how) - 1, "%s", filter);
		o[n++] = (struct option){INTERFACE_FILTER, (uint16_t)(1 + strlen(how + 1)), how};
	}
	put_block(f, BLOCK_INTERFACE, words, ARRAY_SIZE(words), NULL, 0, o, n);
}

void pcapng_put_packet(FILE *f, const struct pcapng_packet *p)
{
	const uint32_t flags = (uint32_t)p->direction;
	const uint32_t words[5] = {p->interface, (uint32_t)(p->time_ns >> 32), (uint32_t)p->time_ns,
				   p->len, p->original_len};
	const uint64_t action = (uint64_t)p->xdp_action;
	uint8_t verdict[1 + sizeof(action)] = {VERDICT_XDP};
	struct option o[OPTIONS_MAX];
	size_t n = 0;

	if (p->comment)
		o[n++] = text_option(OPT_COMMENT, p->comment);
	if (p->direction)
		o[n++] = (struct option){PACKET_FLAGS, sizeof(flags), &flags};
	if (p->id)
		o[n++] = (struct option){PACKET_ID, sizeof(p->id), &p->id};
	o[n++] = (struct option){PACKET_QUEUE, sizeof(p->queue), &p->queue};
	memcpy(verdict + 1, &action, sizeof(action));
	if (p->xdp_action >= 0)
		o[n++] = (struct option){PACKET_VERDICT, sizeof(verdict), verdict};
	put_block(f, BLOCK_PACKET, words, ARRAY_SIZE(words), p->data, p->len, o, n);
}

void pcapng_put_statistics(FILE *f, const struct pcapng_statistics *s)
{
	const uint32_t start[2] = {(uint32_t)(s->start_ns >> 32), (uint32_t)s->start_ns};
	const uint32_t end[2] = {(uint32_t)(s->end_ns >> 32), (uint32_t)s->end_ns};
	const uint32_t words[3] = {s->interface, end[0], end[1]};
	const struct option o[] = {
		{STATISTICS_START, sizeof(start), start},
		{STATISTICS_END, sizeof(end), end},
		{STATISTICS_RECEIVED, sizeof(s->received), &s->received},
		{STATISTICS_DROPPED, sizeof(s->dropped), &s->dropped},
	};

	put_block(f, BLOCK_STATISTICS, words, ARRAY_SIZE(words), NULL, 0, o, ARRAY_SIZE(o));
}
