/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <arpa/inet.h>
#include <time.h>

#include "tools/xdp/capture_out.h"
#include "tools/lib/cmd.h"
#include "packet/text.h"
#include "packet/pcap.h"
#include "rules/rule.h"
#include "tools/lib/text.h"

#define ETH_LEN	 14
#define TAG_LEN	 4
#define NS_PER_S 1000000000
/* Data captured from behind an IP header on does not begin before this; what begins before it is
 * captured from the IP header on. */
#define IP_DATA_MIN (ETH_LEN + 20)

/* Records carry the time since boot. */
static uint64_t real_time(uint64_t boot_ns)
{
	struct timespec ts;
	uint64_t now;

	clock_gettime(CLOCK_REALTIME, &ts);
	now = (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
	return now - (time_boot_ns() - boot_ns);
}

/* --- text --- */

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

static bool is_ip(const struct ax_capture *c)
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
	if (!is_ip(c)) {
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

static const char *verdict(const struct ax_capture *c)
{
	return c->verdict <= AX_VERDICT_BALANCE ? ax_verdict_names[c->verdict] : "?";
}

static int put_text(const struct capture_out *o, const struct ax_capture *c, const uint8_t *data,
		    const char *rule)
{
	autofree char *text = capture_text(data, c->captured);

	if (!text)
		return -ENOMEM;
	put_time(real_time(c->time_ns), o->to);
	fprintf(o->to, " %s ", verdict(c));
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

/* --- JSON --- */

static int add_bytes(json_t *j, const uint8_t *data, size_t len)
{
	autofree char *hex = malloc(2 * len + 1), *text = capture_text(data, len);

	for (size_t i = 0; hex && i < len; i++)
		snprintf(hex + 2 * i, 3, "%02x", data[i]);
	if (!hex || !text)
		return -ENOMEM;
	if (json_object_set_new(j, "bytes", json_stringn(hex, 2 * len)) ||
	    json_object_set_new(j, "text", json_string(text)))
		return -ENOMEM;
	return 0;
}

static void add_tuple(json_t *j, const struct ax_capture *c)
{
	char buf[ADDR_STRLEN];

	if (c->vlan != AX_VLAN_NONE)
		json_object_set_new(j, "vlan", json_integer(c->vlan));
	json_object_set_new(j, "ethertype", json_integer(ntohs(c->ethertype_be)));
	if (!is_ip(c))
		return;
	json_object_set_new(j, "proto", json_integer(c->proto));
	json_object_set_new(j, "src", json_string(addr_format(&c->src, buf)));
	json_object_set_new(j, "dst", json_string(addr_format(&c->dst, buf)));
	if (c->has_ports) {
		json_object_set_new(j, "sport", json_integer(ntohs(c->sport_be)));
		json_object_set_new(j, "dport", json_integer(ntohs(c->dport_be)));
	}
	if (c->has_ports && c->proto == IPPROTO_TCP)
		json_object_set_new(j, "tcp_flags", json_integer(c->tcp_flags));
	if (c->fragment == AX_FRAGMENT_FIRST || c->fragment == AX_FRAGMENT_LATER)
		json_object_set_new(
			j, "fragment",
			json_string(c->fragment == AX_FRAGMENT_FIRST ? "first" : "later"));
}

static int put_json(const struct capture_out *o, const struct ax_capture *c, const uint8_t *data,
		    const char *rule)
{
	bool log = c->kind == AX_CAPTURE_LOG;
	autojson json_t *j = json_pack(
		"{s:f,s:s,s:s,s:s,s:i,s:i,s:i}", "time", (double)real_time(c->time_ns) / 1e9,
		"kind", log ? "log" : "data", "rule", rule, "verdict", verdict(c), "queue",
		(int)c->queue, "frame_bytes", (int)c->frame_len, "generation", (int)c->generation);

	if (!j)
		return -ENOMEM;
	add_tuple(j, c);
	if (!log)
		json_object_set_new(j, "offset", json_integer(c->data_off));
	if (!log && add_bytes(j, data, c->captured))
		return -ENOMEM;
	json_dumpf(j, o->to, JSON_COMPACT | JSON_ENSURE_ASCII);
	putc('\n', o->to);
	return 0;
}

json_t *capture_slot_json(const char *name, const struct ax_slot *slot)
{
	json_t *j = json_pack("{s:s,s:I}", "slot", name, "packets", (json_int_t)slot->count);

	if (j && slot->time_ns)
		json_object_set_new(j, "time", json_real((double)real_time(slot->time_ns) / 1e9));
	if (j && add_bytes(j, slot->data, slot->len)) {
		json_decref(j);
		return NULL;
	}
	return j;
}

/* --- pcap --- */

static void put_frame(const struct capture_out *o, const struct ax_capture *c, const void *frame,
		      size_t len)
{
	const struct pcap_packet p = {
		.time_ns = real_time(c->time_ns),
		.data = frame,
		.len = len,
		.original_len = c->frame_len > len ? c->frame_len : len,
	};

	pcap_put_packet(o->to, &p);
}

/* Data from the network header on gets only an Ethernet header. */
static int put_network(const struct capture_out *o, const struct ax_capture *c, const uint8_t *data)
{
	bool tagged = c->vlan != AX_VLAN_NONE;
	size_t header = ETH_LEN + (tagged ? TAG_LEN : 0);
	const __be16 tag[2] = {htons(0x8100), htons(c->vlan)};
	autofree uint8_t *frame = malloc(header + c->captured);
	struct packet p;

	if (!frame)
		return -ENOMEM;
	packet_init(&p);
	memcpy(frame, p.dmac, 6);
	memcpy(frame + 6, p.smac, 6);
	if (tagged)
		memcpy(frame + 12, tag, sizeof(tag));
	memcpy(frame + header - 2, &c->ethertype_be, 2);
	memcpy(frame + header, data, c->captured);
	put_frame(o, c, frame, header + c->captured);
	return 0;
}

/* Data from behind the transport header on gets headers of the record's addresses. */
static int put_payload(const struct capture_out *o, const struct ax_capture *c, const uint8_t *data)
{
	autofree uint8_t *frame = NULL;
	struct packet p;
	size_t len;
	int r;

	packet_init(&p);
	if (c->vlan != AX_VLAN_NONE)
		p.tags[p.n_tags++] = (struct packet_tag){c->vlan, 0x8100};
	p.src = c->src;
	p.dst = c->dst;
	p.proto = c->proto;
	p.sport = ntohs(c->sport_be);
	p.dport = ntohs(c->dport_be);
	p.tcp_flags = c->tcp_flags;
	p.icmp_type = (uint8_t)(c->pad >> 8);
	p.icmp_code = (uint8_t)c->pad;
	p.fragment = (enum ax_fragment)c->fragment;
	p.data = (uint8_t *)(uintptr_t)data; /* only read */
	p.len = c->captured;
	r = packet_build(&p, &frame, &len);
	if (!r)
		put_frame(o, c, frame, len);
	return r;
}

static int put_pcap(struct capture_out *o, const struct ax_capture *c, const uint8_t *data)
{
	if (c->kind == AX_CAPTURE_LOG ||
	    (c->fragment == AX_FRAGMENT_LATER && c->data_off >= IP_DATA_MIN)) {
		o->left_out++;
		return 1;
	}
	if (!c->data_off) {
		put_frame(o, c, data, c->captured);
		return 0;
	}
	if (!is_ip(c) || (!c->has_ports && c->data_off < IP_DATA_MIN))
		return put_network(o, c, data);
	return put_payload(o, c, data);
}

/* --- */

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
		return put_pcap(o, c, data);
	case CAPTURE_JSON:
		return put_json(o, c, data, rule);
	default:
		return put_text(o, c, data, rule);
	}
}
