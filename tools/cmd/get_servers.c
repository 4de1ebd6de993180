/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ax get servers */
#include "tools/cmd/get.h"

static void server_name(const json_t *j, char *buf, size_t size)
{
	cmd_party(NULL, member_string(j, "address"), member_int(j, "port"), buf, size);
}

static const struct column columns[] = {
	{{.title = "APP", .keep = 20, .min = 12}, cell_text, "app"},
	{{.title = "NODE", .keep = 17, .min = 8}, cell_text, "node"},
	{{.title = "APP-ID", .keep = 5, .wide = true}, cell_int, "app_id"},
	{{.title = "PROTO", .keep = 15}, cell_text, "proto"},
	{{.title = "ADDRESS", .keep = 18, .min = 16}, cell_text, "address"},
	{{.title = "PORT", .keep = 19}, cell_int, "port"},
	{{.title = "SOCKETS", .keep = 4, .wide = true}, cell_int, "sockets"},
	{{.title = "AGE", .keep = 10}, cell_age, "since"},
};

const struct noun noun_servers = {
	.name = "servers",
	.aliases = {"server"},
	.keys = {"app", "app_id"},
	.columns = columns,
	.n_columns = ARRAY_SIZE(columns),
	.all_nodes = "node",
	.name_of = server_name,
};
