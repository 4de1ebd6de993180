/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ax get conns */
#include "tools/cmd/get.h"
#include "tools/lib/text.h"

/* "name 1.2.3.4:80" of an end, which has its name, address and port in three members. */
static void add_party(struct table *t, const json_t *item, const char *name, const char *address,
		      const char *port)
{
	char buf[256];

	table_add(t, cmd_party(member_string(item, name), member_string(item, address),
			       member_int(item, port), buf, sizeof(buf)));
}

static void cell_local(struct table *t, const struct cell *c)
{
	add_party(t, c->item, "local_name", "local", "local_port");
}

static void cell_remote(struct table *t, const struct cell *c)
{
	add_party(t, c->item, "remote_name", "remote", "remote_port");
}

static void cell_service(struct table *t, const struct cell *c)
{
	add_party(t, c->item, "service", "service_address", "service_port");
}

static void cell_rtt(struct table *t, const struct cell *c)
{
	long long rtt = member_int(c->item, c->key);
	char buf[TEXT_SHORT];

	table_add(t, rtt > 0 ? text_usec((uint64_t)rtt, buf) : NULL);
}

static void cell_splice(struct table *t, const struct cell *c)
{
	const char *why = member_string(c->item, "not_spliced");
	char buf[TEXT_SHORT];

	if (why)
		table_add(t, why);
	else if (json_object_get(c->item, c->key))
		table_add(t, text_bytes((uint64_t)member_int(c->item, c->key), buf));
	else
		table_add(t, NULL);
}

static void conn_name(const json_t *j, char *buf, size_t size)
{
	char local[128], remote[128];

	cmd_party(NULL, member_string(j, "local"), member_int(j, "local_port"), local,
		  sizeof(local));
	cmd_party(NULL, member_string(j, "remote"), member_int(j, "remote_port"), remote,
		  sizeof(remote));
	snprintf(buf, size, "%s-%s", local, remote);
}

static const struct column columns[] = {
	{{.title = "PROTO", .keep = 8}, cell_text, "proto"},
	{{.title = "STATE", .keep = 10}, cell_state, "state"},
	{{.title = "LOCAL", .keep = 20, .min = 18}, cell_local, NULL},
	{{.title = "REMOTE", .keep = 19, .min = 18}, cell_remote, NULL},
	{{.title = "REMOTE-NODE", .keep = 7, .wide = true}, cell_text, "remote_node"},
	{{.title = "SERVICE", .keep = 9, .min = 10}, cell_service, NULL},
	{{.title = "SENT", .keep = 5, .right = true, .wide = true}, cell_bytes, "sent"},
	{{.title = "RECEIVED", .keep = 5, .right = true, .wide = true}, cell_bytes, "received"},
	{{.title = "RTT", .keep = 4, .right = true, .wide = true}, cell_rtt, "rtt_us"},
	{{.title = "SPLICE", .keep = 6, .wide = true}, cell_splice, "spliced"},
};

const struct noun noun_conns = {
	.name = "conns",
	.aliases = {"conn", "connection", "connections"},
	.keys = {"local_name", "remote_name", "service"},
	.columns = columns,
	.n_columns = ARRAY_SIZE(columns),
	.name_of = conn_name,
};
