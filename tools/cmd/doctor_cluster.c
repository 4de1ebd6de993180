/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ax doctor --cluster: what the agent knows, and whether it is so. */
#include "checkup/checkup.h"
#include "tools/cmd/commands.h"
#include "tools/cmd/findings.h"
#include "tools/lib/output.h"
#include "tools/lib/table.h"
#include "tools/lib/text.h"

#include <time.h>

/* A handshake takes a round trip or two. */
#define WAKE_MS 1500

/* Its texts are those of the agent's answers. */
struct known {
	json_t *status, *list;
	struct checkup_cluster cluster;
	struct etcd_options etcd;
	const char **endpoints;
	struct checkup_node *nodes;
	struct checkup_way **ways; /* a list for each node */
	struct checkup_peer *peers;
};

static void nodes_free(struct known *k)
{
	for (size_t i = 0; i < k->cluster.n_nodes; i++)
		free(k->ways[i]);
	free(k->ways);
	free(k->nodes);
	json_decref(k->list);
	k->cluster.n_nodes = 0;
	k->ways = NULL;
	k->nodes = NULL;
	k->list = NULL;
}

static void known_free(struct known *k)
{
	nodes_free(k);
	free(k->endpoints);
	free(k->peers);
	json_decref(k->status);
}

static int take_ways(struct known *k, const json_t *ways, struct checkup_node *node)
{
	size_t n = json_array_size(ways);
	struct checkup_way *list = calloc(n + 1, sizeof(*list));

	if (!list)
		return -ENOMEM;
	k->ways[k->cluster.n_nodes] = list;
	for (size_t i = 0; i < n; i++) {
		const json_t *j = json_array_get(ways, i);
		const char *prefix = member_string(j, "prefix");

		if (!prefix || prefix_parse(prefix, &list[node->n_ways].prefix))
			continue;
		list[node->n_ways].there = member_true(j, "there");
		list[node->n_ways++].why = member_string(j, "why");
	}
	node->ways = list;
	return 0;
}

static void take_peer(const json_t *j, struct checkup_node *node)
{
	node->is_peer = json_object_get(j, "handshake");
	node->handshake_s = member_int(j, "handshake");
	node->wireguard_port = (uint16_t)member_int(j, "port");
}

static int take_nodes(struct known *k)
{
	size_t n = json_array_size(k->list);

	k->nodes = calloc(n + 1, sizeof(*k->nodes));
	k->ways = calloc(n + 1, sizeof(*k->ways));
	if (!k->nodes || !k->ways)
		return -ENOMEM;
	k->cluster.nodes = k->nodes;
	for (size_t i = 0; i < n; i++) {
		struct checkup_node *node = &k->nodes[k->cluster.n_nodes];
		const json_t *j = json_array_get(k->list, i);
		const char *address = member_string(j, "address");
		const char *address6 = member_string(j, "address6");

		if (member_true(j, "self") || !member_string(j, "name"))
			continue;
		*node = (struct checkup_node){.name = member_string(j, "name"),
					      .state = member_string(j, "state"),
					      .clock_known = json_object_get(j, "clock"),
					      .clock_s = member_int(j, "clock")};
		if (address && addr_parse(address, &node->addr))
			node->addr = (struct ax_addr){0};
		if (address6 && addr_parse(address6, &node->addr6))
			node->addr6 = (struct ax_addr){0};
		take_peer(json_object_get(j, "wireguard"), node);
		if (take_ways(k, json_object_get(j, "ways"), node))
			return -ENOMEM;
		k->cluster.n_nodes++;
	}
	return 0;
}

static int take_peers(struct known *k, const json_t *peers)
{
	size_t n = json_array_size(peers);

	k->peers = calloc(n + 1, sizeof(*k->peers));
	if (!k->peers)
		return -ENOMEM;
	k->cluster.peers = k->peers;
	for (size_t i = 0; i < n; i++) {
		const json_t *j = json_array_get(peers, i);
		const struct checkup_peer p = {.name = member_string(j, "name"),
					       .state = member_string(j, "state"),
					       .why = member_string(j, "why"),
					       .member = member_string(j, "member")};

		if (p.name && p.state)
			k->peers[k->cluster.n_peers++] = p;
	}
	return 0;
}

static int take_status(struct known *k, const json_t *c)
{
	const json_t *urls = json_object_get(c, "etcd");
	const json_t *ways = json_object_get(c, "ways");
	const char *kind = member_string(ways, "kind");
	size_t n = json_array_size(urls);

	k->endpoints = calloc(n + 1, sizeof(*k->endpoints));
	if (!k->endpoints)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const char *url = json_string_value(json_array_get(urls, i));

		if (url)
			k->endpoints[k->etcd.n_endpoints++] = url;
	}
	k->etcd.endpoints = k->endpoints;
	k->etcd.ca = member_string(c, "ca");
	k->etcd.cert = member_string(c, "cert");
	k->etcd.key = k->etcd.cert ? member_string(c, "key") : NULL;
	k->cluster.state = member_string(c, "state");
	k->cluster.why = member_string(c, "why");
	k->cluster.member = member_string(c, "member");
	k->cluster.lease = member_string(c, "lease");
	k->cluster.untold = member_string(c, "untold");
	k->cluster.no_address6 = member_string(c, "no_address6");
	k->cluster.unwritten = member_string(c, "unwritten");
	k->cluster.ways = ways;
	k->cluster.tunnel = member_string(json_object_get(c, "wireguard"), "device");
	k->cluster.routed = kind && !streq(kind, "translate");
	k->cluster.etcd = &k->etcd;
	k->cluster.clock_known = json_object_get(c, "clock");
	k->cluster.clock_s = member_int(c, "clock");
	return take_peers(k, json_object_get(c, "peers"));
}

static int ask_nodes(const struct cmd *c, struct known *k, struct error *e)
{
	json_t *reply = NULL;
	int r = cmd_ask(c, json_pack("{s:s,s:s}", "op", "get", "what", "nodes"), &reply, e);

	if (!r)
		k->list = json_incref(json_object_get(reply, "nodes"));
	json_decref(reply);
	if (!r && take_nodes(k))
		return error_set(e, -ENOMEM, "out of memory");
	return r;
}

static int ask_agent(const struct cmd *c, struct known *k, struct error *e)
{
	const struct timespec wake = {.tv_sec = WAKE_MS / 1000,
				      .tv_nsec = WAKE_MS % 1000 * 1000000L};
	json_t *cluster;
	int r = cmd_ask(c, json_pack("{s:s}", "op", "status"), &k->status, e);

	cluster = json_object_get(k->status, "cluster");
	if (!r && !cluster)
		r = error_set(e, -ENOENT, "this node is in no cluster: see CLUSTER in ax.yaml(5)");
	if (!r && take_status(k, cluster))
		r = error_set(e, -ENOMEM, "out of memory");
	r = r ? r : ask_nodes(c, k, e);
	if (r || !checkup_wake(&k->cluster))
		return r;
	nanosleep(&wake, NULL);
	nodes_free(k);
	return ask_nodes(c, k, e);
}

/* --- what is printed --- */

struct printing {
	struct findings all;
	const char *self;
	const struct checkup_node *last;
	bool began;
};

static void put_heading(struct printing *p, const struct checkup_node *node)
{
	char text[ADDR_STRLEN];

	if (p->began && p->last == node)
		return;
	if (p->began)
		putchar('\n');
	p->began = true;
	p->last = node;
	text_put(node ? node->name : p->self, stdout);
	if (!node)
		puts(", this node");
	else if (addr_is_zero(&node->addr))
		putchar('\n');
	else
		printf(", %s\n", addr_format(&node->addr, text));
}

static void on_finding(void *arg, const struct checkup_node *node, const struct finding *f)
{
	struct printing *p = arg;

	if (!p->all.list)
		put_heading(p, node);
	findings_put(&p->all, node ? node->name : p->self, f);
}

static int put_verdict(const struct printing *p, size_t n_nodes, int bad)
{
	if (p->all.list) {
		cmd_put_json(p->all.list, JSON_INDENT(2));
		return bad ? CMD_FAILED : CMD_OK;
	}
	if (bad)
		printf("\n%d finding%s bad.\n", bad, bad == 1 ? " is" : "s are");
	else
		printf("\nNothing is in the way between this node and %zu other%s.\n", n_nodes,
		       n_nodes == 1 ? "" : "s");
	return bad ? CMD_FAILED : CMD_OK;
}

int doctor_cluster(struct cmd *c, int output)
{
	CLEANUP(known_free) struct known k = {0};
	struct table_style style = table_style_for(stdout);
	struct printing p = {.all.colour = style.colour};
	const char *node;
	struct error e = {0};
	int bad, status;

	if (ask_agent(c, &k, &e))
		return cmd_unable(c, &e);
	node = member_string(json_object_get(k.status, "cluster"), "node");
	p.self = node ? node : "";
	if (output == OUTPUT_JSON)
		p.all.list = json_array();
	bad = checkup_cluster(&k.cluster, on_finding, &p, &e);
	status = bad < 0 ? cmd_unable(c, &e)
			 : cmd_finish(c, put_verdict(&p, k.cluster.n_nodes, bad));
	findings_free(&p.all);
	return status;
}
