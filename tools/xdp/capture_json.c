/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Records and slots of captures as JSON. */
#include <arpa/inet.h>

#include "tools/xdp/capture_priv.h"

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
	if (!capture_is_ip(c))
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

int capture_put_json(const struct capture_out *o, const struct ax_capture *c, const uint8_t *data,
		     const char *rule)
{
	bool log = c->kind == AX_CAPTURE_LOG;
	autojson json_t *j =
		json_pack("{s:f,s:s,s:s,s:s,s:i,s:i,s:i}", "time",
			  (double)capture_real_time(c->time_ns) / 1e9, "kind", log ? "log" : "data",
			  "rule", rule, "verdict", capture_verdict(c), "queue", (int)c->queue,
			  "frame_bytes", (int)c->frame_len, "generation", (int)c->generation);

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
		json_object_set_new(j, "time",
				    json_real((double)capture_real_time(slot->time_ns) / 1e9));
	if (j && add_bytes(j, slot->data, slot->len)) {
		json_decref(j);
		return NULL;
	}
	return j;
}
