/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Records of captures as text, and in which form each is written. */
#include <arpa/inet.h>
#include <time.h>

#include "tools/xdp/capture_priv.h"
#include "packet/text.h"
#include "packet/pcap.h"
#include "rules/rule.h"
#include "tools/lib/text.h"

#define NS_PER_S 1000000000

uint64_t capture_real_time(uint64_t boot_ns)
{
	return time_real_ns() - (time_boot_ns() - boot_ns);
}

char *capture_text(const uint8_t *data, size_t len)
{
	autofree char *text = NULL;
	autofree char *copy = malloc(len + 1);
	size_t size;
	FILE *f = copy ? open_memstream(&text, &size) : NULL;

	if (!f)
		return NULL;
	memcpy(copy, data, len);
	copy[len] = 0;
	/* what is escaped is NUL-terminated, and payloads hold NULs */
	for (size_t at = 0; at < len; at++) {
		text_put(copy + at, f);
		at += strlen(copy + at);
		if (at < len)
			fputs("\\x00", f);
	}
	return fclose(f) == 0 ? take_ptr(&text) : NULL;
}

void capture_put_hex(const uint8_t *data, size_t len, FILE *to)
{
	for (size_t at = 0; at < len; at += 16) {
		size_t n = len - at < 16 ? len - at : 16;

		fprintf(to, "  %04zx ", at);
		for (size_t i = 0; i < 16; i++) {
			if (i < n)
				fprintf(to, " %02x", data[at + i]);
			else
				fputs("   ", to);
		}
		fputs("  ", to);
		for (size_t i = 0; i < n; i++)
			putc(data[at + i] >= ' ' && data[at + i] < 127 ? data[at + i] : '.', to);
		putc('\n', to);
	}
}

static void put_time(uint64_t ns, FILE *to)
{
	time_t t = (time_t)(ns / NS_PER_S);
	struct tm tm;
	char buf[32];

	localtime_r(&t, &tm);
	strftime(buf, sizeof(buf), "%H:%M:%S", &tm);
	fprintf(to, "%s.%06llu", buf, (unsigned long long)(ns % NS_PER_S / 1000));
}

bool capture_is_ip(const struct ax_capture *c)
{
	return !addr_is_zero(&c->src) || !addr_is_zero(&c->dst);
}

static void put_end(const struct ax_capture *c, const struct ax_addr *a, __be16 port_be, FILE *to)
{
	char buf[ADDR_STRLEN];

	fputs(c->has_ports ? addr_port_format(a, port_be, buf) : addr_format(a, buf), to);
}

static void put_tuple(const struct ax_capture *c, FILE *to)
{
	const char *proto = rule_proto_name(c->proto);

	if (c->vlan != AX_VLAN_NONE)
		fprintf(to, "vlan %u ", c->vlan);
	if (!capture_is_ip(c)) {
		fprintf(to, "ethertype 0x%04x", ntohs(c->ethertype_be));
		return;
	}
	if (proto)
		fprintf(to, "%s ", proto);
	else
		fprintf(to, "%u ", c->proto);
	put_end(c, &c->src, c->sport_be, to);
	fputs(" > ", to);
	put_end(c, &c->dst, c->dport_be, to);
	for (unsigned i = 0, n = 0; c->has_ports && c->proto == IPPROTO_TCP && i < 8; i++)
		if (c->tcp_flags & (1u << i))
			fprintf(to, "%s%s", n++ ? "," : " flags ", packet_flag_names[i]);
	if (c->fragment == AX_FRAGMENT_FIRST || c->fragment == AX_FRAGMENT_LATER)
		fprintf(to, " frag %s", c->fragment == AX_FRAGMENT_FIRST ? "first" : "later");
}

const char *capture_verdict(const struct ax_capture *c)
{
	return c->verdict < ARRAY_SIZE(ax_verdict_names) ? ax_verdict_names[c->verdict] : "?";
}

static int put_text(const struct capture_out *o, const struct ax_capture *c, const uint8_t *data,
		    const char *rule)
{
	autofree char *text = capture_text(data, c->captured);

	if (!text)
		return -ENOMEM;
	put_time(capture_real_time(c->time_ns), o->to);
	fprintf(o->to, " %s ", capture_verdict(c));
	text_put(rule, o->to);
	fputs("  ", o->to);
	put_tuple(c, o->to);
	fprintf(o->to, "  %u bytes", c->frame_len);
	if (c->kind == AX_CAPTURE_LOG) {
		putc('\n', o->to);
	} else if (o->format == CAPTURE_HEX) {
		putc('\n', o->to);
		capture_put_hex(data, c->captured, o->to);
	} else {
		fprintf(o->to, ": %s\n", text);
	}
	return 0;
}

void capture_begin(struct capture_out *o)
{
	o->left_out = 0;
	if (o->format == CAPTURE_PCAP)
		pcap_put_header(o->to);
}

int capture_put(struct capture_out *o, const struct ax_capture *c, const uint8_t *data,
		const char *rule)
{
	switch (o->format) {
	case CAPTURE_PCAP:
		return capture_put_pcap(o, c, data);
	case CAPTURE_JSON:
		return capture_put_json(o, c, data, rule);
	default:
		return put_text(o, c, data, rule);
	}
}
