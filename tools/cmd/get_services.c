/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ax get services */
#include "config/service_words.h"
#include "tools/cmd/get.h"

static void cell_ports(struct table *t, const struct cell *c)
{
	const json_t *ports = json_object_get(c->item, c->key);
	struct builder b;
	json_t *item;
	size_t i;

	if (!json_array_size(ports)) {
		table_add(t, "all");
		return;
	}
	if (!builder_open(&b)) {
		t->failed = true;
		return;
	}
	json_array_foreach (ports, i, item) {
		const char *proto = member_string(item, "proto");
		long long port = member_int(item, "port"), target = member_int(item, "target");

		fprintf(b.f, "%s%lld", i ? "," : "", port);
		if (target && target != port)
			fprintf(b.f, "->%lld", target);
		fprintf(b.f, "/%s", proto ? proto : "?");
	}
	builder_add_to(t, &b);
}

static void cell_backends(struct table *t, const struct cell *c)
{
	const json_t *backends = json_object_get(c->item, c->key);
	struct builder b;
	char buf[256];
	json_t *item;
	size_t i;

	if (!json_array_size(backends)) {
		table_add(t, "none");
		table_colour(t, COLOUR_YELLOW);
		return;
	}
	if (!builder_open(&b)) {
		t->failed = true;
		return;
	}
	json_array_foreach (backends, i, item) {
		const char *state = member_string(item, "state");
		long long weight = member_int(item, "weight");

		fprintf(b.f, "%s%s", i ? ", " : "",
			cmd_party(member_string(item, "app"), member_string(item, "address"),
				  member_int(item, "port"), buf, sizeof(buf)));
		if (member_string(item, "node"))
			fprintf(b.f, " on %s", member_string(item, "node"));
		if (member_string(item, "zone"))
			fprintf(b.f, " in %s", member_string(item, "zone"));
		if (weight > 1)
			fprintf(b.f, " (weight %lld)", weight);
		if (state)
			fprintf(b.f, " %s", state);
		if (member_int(item, "share"))
			fprintf(b.f, " %lld%%", member_int(item, "share"));
	}
	builder_add_to(t, &b);
}

/* Why a backend is down, or its last check failed: "web: status 503; ..." */
static void cell_why(struct table *t, const struct cell *c)
{
	bool any = false;
	struct builder b;
	char buf[256];
	json_t *item;
	size_t i;

	if (!builder_open(&b)) {
		t->failed = true;
		return;
	}
	json_array_foreach (json_object_get(c->item, c->key), i, item) {
		const char *why = member_string(item, "why");

		if (!why)
			continue;
		fprintf(b.f, "%s%s: %s", any ? "; " : "",
			cmd_party(member_string(item, "app"), member_string(item, "address"),
				  member_int(item, "port"), buf, sizeof(buf)),
			why);
		any = true;
	}
	if (!any)
		fputc('-', b.f);
	builder_add_to(t, &b);
}

static void cell_kind(struct table *t, const struct cell *c)
{
	table_add(t, member_true(c->item, "added")  ? "added"
		     : member_true(c->item, c->key) ? "declared"
						    : "shared");
}

/* "src 180m, 12": by what, how long, and clients that have a backend now */
static void cell_affinity(struct table *t, const struct cell *c)
{
	const char *by = member_string(c->item, c->key);
	long long ms = member_int(c->item, "affinity_timeout_ms");
	char text[64];

	if (!by) {
		table_add(t, "-");
		return;
	}
	if (ms % 60000 == 0)
		snprintf(text, sizeof(text), "%s %lldm", by, ms / 60000);
	else if (ms % 1000 == 0)
		snprintf(text, sizeof(text), "%s %llds", by, ms / 1000);
	else
		snprintf(text, sizeof(text), "%s %lldms", by, ms);
	if (member_int(c->item, "clients"))
		table_addf(t, "%s, %lld", text, member_int(c->item, "clients"));
	else
		table_add(t, text);
}

/* "maglev by app" */
static void cell_strategy(struct table *t, const struct cell *c)
{
	const char *hash = member_string(c->item, "hash"), *strategy;

	strategy = member_string(c->item, c->key);
	if (hash)
		table_addf(t, "%s by %s", strategy, hash);
	else
		table_add(t, strategy);
}

/* "destroy, 3 ended" */
static void cell_on_remove(struct table *t, const struct cell *c)
{
	const char *what = member_string(c->item, c->key);

	if (member_int(c->item, "ended"))
		table_addf(t, "%s, %lld ended", what ? what : on_remove_name(ON_REMOVE_UDP),
			   member_int(c->item, "ended"));
	else
		table_add(t, what);
}

static const struct column columns[] = {
	{{.title = "NAME", .keep = 20, .min = 12}, cell_text, "name"},
	{{.title = "ID", .keep = 3, .wide = true}, cell_int, "id"},
	{{.title = "IP", .keep = 19}, cell_ip, NULL},
	{{.title = "IP6", .keep = 9, .wide = true}, cell_text, "ip6"},
	{{.title = "PORTS", .keep = 15, .min = 12}, cell_ports, "ports"},
	{{.title = "STRATEGY", .keep = 10}, cell_strategy, "strategy"},
	{{.title = "AFFINITY", .keep = 5, .wide = true}, cell_affinity, "affinity"},
	{{.title = "ON-REMOVE", .keep = 5, .wide = true}, cell_on_remove, "on_remove"},
	{{.title = "KIND", .keep = 4, .wide = true}, cell_kind, "declared"},
	{{.title = "WAIT", .keep = 4, .wide = true}, cell_wait, "wait_ms"},
	{{.title = "EXPOSED", .keep = 6, .min = 12, .wide = true}, cell_list, "expose"},
	{{.title = "BACKENDS", .keep = 12, .min = 20}, cell_backends, "backends"},
	{{.title = "WHY", .keep = 5, .min = 12, .wide = true}, cell_why, "backends"},
};

const struct noun noun_services = {
	.name = "services",
	.aliases = {"service", "svc", "svcs"},
	.keys = {"name", "id"},
	.columns = columns,
	.n_columns = ARRAY_SIZE(columns),
	.name_of = name_member,
};
