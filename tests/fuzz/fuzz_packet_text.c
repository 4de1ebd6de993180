// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Packet text: a line is printable ASCII whatever the frame is; what is taken for a packet becomes
 * a frame with right checksums, whose line, taken again, gives the same line.
 */
#include "packet/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool good)
{
	if (!good)
		abort();
}

static char *line_of(const uint8_t *frame, size_t len, bool with_mac)
{
	char *line = packet_line(frame, len, with_mac);

	check(line != NULL);
	for (const char *p = line; *p; p++)
		check(*p >= ' ' && *p < 127);
	return line;
}

static uint32_t sum(const uint8_t *p, size_t n, uint32_t s)
{
	for (size_t i = 0; i < n; i++)
		s += i % 2 ? p[i] : (uint32_t)p[i] << 8;
	while (s >> 16)
		s = (s & 0xffff) + (s >> 16);
	return s;
}

static void check_sums(const struct packet *p, const uint8_t *ip, size_t len)
{
	bool v4 = addr_is_v4(&p->src);
	size_t header = v4 ? 20 : p->fragment == AX_FRAGMENT_NONE ? 40 : 48;
	const uint8_t *l4 = ip + header;
	uint32_t start = p->proto + (uint32_t)(len - header);

	if (v4)
		check(sum(ip, 20, 0) == 0xffff);
	if (p->fragment == AX_FRAGMENT_LATER)
		return;
	if (v4 && p->proto == IPPROTO_ICMP)
		check(sum(l4, len - header, 0) == 0xffff);
	else if (p->proto == IPPROTO_TCP || p->proto == IPPROTO_UDP || p->proto == IPPROTO_ICMPV6)
		check(sum(l4, len - header, sum(v4 ? ip + 12 : ip + 8, v4 ? 8 : 32, start)) ==
		      0xffff);
}

static void check_text(const char *text)
{
	uint8_t *frame, *again;
	struct error e = {0};
	struct packet p;
	size_t len, again_len;
	char *line, *second;
	int r = packet_parse(text, &p, &e);

	if (r) {
		check(r == -EINVAL && *e.text);
		return;
	}
	check(packet_build(&p, &frame, &len) == 0);
	if (p.kind == PACKET_IP)
		check_sums(&p, frame + 14 + 4 * p.n_tags, len - 14 - 4 * p.n_tags);
	line = line_of(frame, len, true);
	check(packet_text_parse(line, &again, &again_len, &e) == 0);
	check(p.quoted || again_len == len);
	second = line_of(again, again_len, true);
	check(streq(line, second));
	packet_free(&p);
	free(frame);
	free(again);
	free(line);
	free(second);
}

static void check_hex(const char *text)
{
	uint8_t *frame;
	struct error e;
	size_t len;

	if (packet_parse_hex(text, &frame, &len, &e) == 0) {
		check(len <= strlen(text) / 2);
		free(frame);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	autofree char *text = strndup((const char *)data, size);
	struct packet_ends ends;

	check(text != NULL);
	check(!packet_ends(data, size, &ends) || !addr_is_zero(&ends.src) ||
	      !addr_is_zero(&ends.dst));
	free(line_of(data, size, size % 2));
	check_text(text);
	check_hex(text);
	return 0;
}
