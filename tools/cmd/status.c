/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ax status: what the agent says of itself. */
#include <time.h>

#include "tools/cmd/commands.h"
#include "tools/lib/output.h"
#include "tools/lib/text.h"

static void put_text(const char *title, const char *text)
{
	printf("%-10s ", title);
	text_put(text ? text : "-", stdout);
	putchar('\n');
}

static void put_pool(const char *title, const json_t *pool)
{
	const char *prefix = member_string(pool, "prefix");

	if (!prefix)
		return;
	printf("%-10s ", title);
	text_put(prefix, stdout);
	/* of an IPv6 pool's size only that it is huge could be said */
	if (member_number(pool, "size") > 0 && member_number(pool, "size") < 1e12)
		printf(", %lld of %.0f used\n", member_int(pool, "used"),
		       member_number(pool, "size"));
	else
		printf(", %lld used\n", member_int(pool, "used"));
}

static void put_dns(const json_t *dns)
{
	const char *domain = member_string(dns, "domain");
	char buf[128];
	json_t *item;
	size_t i;

	if (!dns) {
		put_text("DNS", "off");
		return;
	}
	printf("%-10s ", "DNS");
	text_put(cmd_party(NULL, member_string(dns, "address"), member_int(dns, "port"), buf,
			   sizeof(buf)),
		 stdout);
	fputs(", domain ", stdout);
	text_put(domain ? domain : "-", stdout);
	json_array_foreach (json_object_get(dns, "upstreams"), i, item) {
		const char *text = json_string_value(item);

		fputs(i ? ", " : ", upstreams ", stdout);
		text_put(text ? text : "?", stdout);
	}
	putchar('\n');
}

static void put_features(const json_t *features)
{
	json_t *item;
	size_t i;

	json_array_foreach (features, i, item) {
		const char *name = member_string(item, "name"), *why = member_string(item, "why");
		const char *cost = member_string(item, "cost");

		if (member_true(item, "on"))
			continue;
		printf("%-10s ", "Off");
		text_put(name ? name : "?", stdout);
		if (cost) {
			fputs(", so ", stdout);
			text_put(cost, stdout);
		}
		if (why) {
			fputs(": ", stdout);
			text_put(why, stdout);
		}
		putchar('\n');
	}
}

static void put_counters(json_t *counters)
{
	const char *name, *title = "Counters";
	json_t *value;

	json_object_foreach (counters, name, value) {
		printf("%-10s ", title);
		text_put(name, stdout);
		printf(" %lld\n", (long long)json_integer_value(value));
		title = "";
	}
}

/* How many, and what is not as the config has it. */
static void put_probes(json_t *probes)
{
	size_t i, attached = 0;
	json_t *item;

	if (!probes)
		return;
	json_array_foreach (probes, i, item) {
		const char *state = member_string(item, "state");

		attached += state && streq(state, "attached");
	}
	printf("%-10s %zu, %zu as configured\n", "Probes", json_array_size(probes), attached);
	json_array_foreach (probes, i, item) {
		const char *name = member_string(item, "name"), *why = member_string(item, "why");

		if (!name || !why)
			continue;
		printf("%-10s ", "");
		text_put(name, stdout);
		fputs(": ", stdout);
		text_put(why, stdout);
		putchar('\n');
	}
}

static void put_no_ways(const json_t *ways)
{
	json_t *item;
	size_t i;

	json_array_foreach (json_object_get(ways, "failed"), i, item) {
		printf("%-10s no way to %s, a block of ", "", member_string(item, "prefix"));
		text_put(member_string(item, "node"), stdout);
		fputs(": ", stdout);
		text_put(member_string(item, "why"), stdout);
		putchar('\n');
	}
}

/* The ways to other nodes, and to whom there is none. */
static void put_ways(const json_t *c)
{
	const json_t *ways = json_object_get(c, "ways");

	if (!ways)
		return;
	printf("%-10s routes: %s, to %lld blocks of other nodes\n", "", member_string(ways, "kind"),
	       member_int(ways, "routes"));
	if (member_string(c, "no_address6")) {
		printf("%-10s other nodes have no way to its blocks of IPv6: ", "");
		text_put(member_string(c, "no_address6"), stdout);
		putchar('\n');
	}
	put_no_ways(ways);
	if (streq(member_string(ways, "kind"), "translate"))
		printf("%-10s by translation: TCP of apps in host mode alone; UDP and apps with a "
		       "network of "
		       "their own want routes: direct\n",
		       "");
	if (!member_string(c, "untold"))
		return;
	printf("%-10s some apps of other nodes cannot be reached: ", "");
	text_put(member_string(c, "untold"), stdout);
	putchar('\n');
}

/* "config revision 3", "config revision 2, not revision 3: ...; of its own: front" */
static void put_cluster_config(const json_t *config)
{
	const char *why = member_string(config, "why");
	json_t *own;
	size_t i;

	if (!config)
		return;
	printf("%-10s config revision %lld", "", member_int(config, "revision"));
	if (why) {
		fputs(", not ", stdout);
		text_put(why, stdout);
	}
	json_array_foreach (json_object_get(config, "own"), i, own) {
		fputs(i ? ", " : "; of its own: ", stdout);
		text_put(json_string_value(own), stdout);
	}
	putchar('\n');
}

/* "2 nodes, 7 apps by memory, as they were 5m ago" */
static void put_memory(const json_t *memory)
{
	char age[TEXT_SHORT];

	if (memory)
		printf("%-10s %lld nodes, %lld apps by memory, as they were %s ago: etcd was not "
		       "read "
		       "since the agent's start\n",
		       "", member_int(memory, "nodes"), member_int(memory, "apps"),
		       text_age((double)time(NULL) - member_number(memory, "at"), age));
}

static void put_unwritten(const json_t *c)
{
	if (!member_string(c, "unwritten"))
		return;
	printf("%-10s etcd does not take this node's apps: ", "");
	text_put(member_string(c, "unwritten"), stdout);
	putchar('\n');
}

static void put_refused(const json_t *c)
{
	if (!member_int(c, "refused"))
		return;
	printf("%-10s %lld records left out, the last one: ", "", member_int(c, "refused"));
	text_put(member_string(c, "refused_why"), stdout);
	putchar('\n');
}

/* "peer west: connected to https://10.1.0.5:2379; 2 nodes, 7 apps (2 exported), 2 ways" */
static void put_peer(const json_t *p)
{
	const char *why = member_string(p, "why"), *member = member_string(p, "member");
	const char *name = member_string(p, "name"), *state = member_string(p, "state");
	const json_t *ways = json_object_get(p, "ways");
	char age[TEXT_SHORT];

	if (!name || !state)
		return;
	printf("%-10s peer ", "");
	text_put(name, stdout);
	printf(": %s", state);
	if (member) {
		fputs(streq(state, "unreachable") ? " at " : " to ", stdout);
		text_put(member, stdout);
	}
	if (why) {
		fputs(": ", stdout);
		text_put(why, stdout);
	}
	printf("; %lld nodes, %lld apps (%lld exported), %lld ways", member_int(p, "nodes"),
	       member_int(p, "apps"), member_int(p, "exported"), member_int(ways, "routes"));
	if (member_int(p, "known"))
		printf(", as they were %s ago",
		       text_age((double)time(NULL) - member_number(p, "known"), age));
	putchar('\n');
	put_no_ways(ways);
	put_refused(p);
}

/* "east, node n1 at 10.0.0.11: connected to https://10.0.0.5:2379 for 3m" */
static void put_cluster(const json_t *c)
{
	const char *name = member_string(c, "name"), *node = member_string(c, "node");
	const char *address = member_string(c, "address"), *state = member_string(c, "state");
	const char *member = member_string(c, "member"), *why = member_string(c, "why");
	char age[TEXT_SHORT];
	json_t *item;
	size_t i;

	if (!c || !name || !node || !state)
		return;
	printf("%-10s ", "Cluster");
	text_put(name, stdout);
	fputs(", node ", stdout);
	text_put(node, stdout);
	if (address)
		printf(" at %s", address);
	if (member_string(c, "address6"))
		printf(" and %s", member_string(c, "address6"));
	printf(": %s", state);
	if (member) {
		fputs(streq(state, "partitioned") ? " from " : " to ", stdout);
		text_put(member, stdout);
	}
	if (member_int(c, "since"))
		printf(" for %s", text_age((double)time(NULL) - member_number(c, "since"), age));
	if (why) {
		fputs(": ", stdout);
		text_put(why, stdout);
	}
	printf("\n%-10s %lld nodes, %lld apps; blocks", "", member_int(c, "nodes"),
	       member_int(c, "apps"));
	json_array_foreach (json_object_get(c, "blocks"), i, item)
		printf("%s %s", i ? "," : "", json_string_value(item));
	puts(json_array_size(json_object_get(c, "blocks")) ? "" : " none");
	put_unwritten(c);
	put_memory(json_object_get(c, "remembered"));
	put_ways(c);
	put_cluster_config(json_object_get(c, "config"));
	json_array_foreach (json_object_get(c, "conflicts"), i, item) {
		printf("%-10s ", "");
		text_put(json_string_value(item), stdout);
		putchar('\n');
	}
	put_refused(c);
	json_array_foreach (json_object_get(c, "peers"), i, item)
		put_peer(item);
}

/* "resolved: failed, and is tried again: 'resolvectl dns' did not end ..." */
static void put_host_names(const json_t *h)
{
	const char *wanted = member_string(h, "wanted"), *state = member_string(h, "state");
	const char *why = member_string(h, "why");

	if (!h || !wanted || !state)
		return;
	printf("%-10s %s: %s", "Host names", wanted,
	       streq(state, "failed") ? "failed, and is tried again" : state);
	if (why) {
		fputs(": ", stdout);
		text_put(why, stdout);
	}
	putchar('\n');
}

static void print(const json_t *j)
{
	const char *version = member_string(j, "version"), *config = member_string(j, "config");
	char age[TEXT_SHORT];

	printf("%-10s version ", "Agent");
	text_put(version ? version : "?", stdout);
	printf(", pid %lld, running for %s\n", member_int(j, "pid"),
	       text_age((double)time(NULL) - member_number(j, "since"), age));
	put_text("Instance", member_string(j, "instance"));
	put_text("Socket", member_string(j, "socket"));
	put_text("Config", config ? config : "none");
	put_dns(json_object_get(j, "dns"));
	put_host_names(json_object_get(j, "host_names"));
	put_pool("Pool", json_object_get(j, "pool4"));
	put_pool("Pool IPv6", json_object_get(j, "pool6"));
	put_cluster(json_object_get(j, "cluster"));
	printf("%-10s %lld\n", "Apps", member_int(j, "apps"));
	printf("%-10s %lld\n", "Services", member_int(j, "services"));
	put_probes(json_object_get(j, "probes"));
	put_features(json_object_get(j, "features"));
	put_counters(json_object_get(j, "counters"));
}

struct args {
	int output;
};

static int run(struct cmd *c, int argc, char **argv)
{
	autojson json_t *reply = NULL;
	struct error e = {0};
	struct args a = {0};
	int status;

	if (!cmd_begin(c, &a, &argc, argv, &status))
		return status;
	if (argc)
		return cmd_usage(c, "'%.60s' is not understood: there is nothing to name here",
				 argv[0]);
	cmd_output();
	if (cmd_ask(c, json_pack("{s:s}", "op", "status"), &reply, &e))
		return cmd_failed(c, &e);
	json_object_del(reply, "ok");
	if (a.output)
		cmd_put_json(reply, JSON_INDENT(2));
	else
		print(reply);
	return cmd_finish(c, CMD_OK);
}

const struct command cmd_status = {
	.name = "status",
	.about = "show what the agent is and what it counts",
	.run = run,
	.syntax =
		{
			.usage = "ax status [-o FORMAT]",
			.about = "Shows the agent: its version, addresses, DNS, the features that "
				 "are off, and its counters.",
			.own = {{output_table, 1, offsetof(struct args, output)}},
		},
};
