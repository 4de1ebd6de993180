// SPDX-License-Identifier: GPL-2.0-or-later
/* The config's section services:. */
#include "config/service_words.h"
#include "config/strategy.h"
#include "base/values.h"
#include "config/read.h"
#include "service.h"

#include <arpa/inet.h>

/* --- ports --- */

static const struct {
	const char *name;
	uint8_t proto;
} protocols[] = {{"tcp", IPPROTO_TCP}, {"udp", IPPROTO_UDP}};

static bool parse_protocol(const char *s, uint8_t *ret)
{
	for (size_t i = 0; i < ARRAY_SIZE(protocols); i++) {
		if (streq(s, protocols[i].name)) {
			*ret = protocols[i].proto;
			return true;
		}
	}
	return false;
}

/* "80", "80:8080", "80:8080/udp" */
static bool parse_port_text(const char *s, struct service_port *ret)
{
	char copy[sizeof("65535:65535/udp")], *slash, *colon;
	struct service_port p = {.proto = IPPROTO_TCP};
	int port, target;

	if (strlen(s) >= sizeof(copy))
		return false;
	strcpy(copy, s);
	slash = strchr(copy, '/');
	if (slash) {
		*slash = '\0';
		if (!parse_protocol(slash + 1, &p.proto))
			return false;
	}
	colon = strchr(copy, ':');
	if (colon)
		*colon = '\0';
	port = port_parse(copy);
	target = colon ? port_parse(colon + 1) : port;
	if (port < 0 || target < 0)
		return false;
	p.port = (uint16_t)port;
	p.target = (uint16_t)target;
	*ret = p;
	return true;
}

static void read_protocol(struct reader *r, const struct node *n, void *to)
{
	const char *text = scalar_text(r, n, "tcp or udp");

	if (text && !parse_protocol(text, to))
		reject(r, n, "tcp or udp");
}

static bool read_port_mapping(struct reader *r, const struct node *n, struct service_port *p)
{
	static const struct key keys[] = {
		{"port", read_port, offsetof(struct service_port, port)},
		{"target", read_port, offsetof(struct service_port, target)},
		{"protocol", read_protocol, offsetof(struct service_port, proto)},
	};
	size_t before = r->errs->n;

	p->proto = IPPROTO_TCP;
	read_mapping(r, n, keys, ARRAY_SIZE(keys), p);
	if (!p->port && r->errs->n == before)
		reject(r, n, "a mapping with the key port");
	if (!p->target)
		p->target = p->port;
	return p->port != 0;
}

struct port_list {
	struct registry seen;
	struct config_service *service;
};

static void read_port_item(struct reader *r, const struct node *n, void *to)
{
	static const char what[] = "a port: 80, \"80:8080\", \"80:8080/udp\" or a mapping";
	struct port_list *list = to;
	struct service_port *p = &list->service->ports[list->service->n_ports];
	struct claim c = {.line = n->line}, earlier;
	uint8_t key[3];
	int taken;

	*p = (struct service_port){0};
	if (n->kind == NODE_MAPPING) {
		if (!read_port_mapping(r, n, p))
			return;
	} else {
		const char *text = scalar_text(r, n, what);

		if (text && !parse_port_text(text, p))
			reject(r, n, "%s", what);
		if (!text || !p->port)
			return;
	}
	key[0] = p->proto;
	memcpy(key + 1, &p->port, sizeof(p->port));
	c.key = key;
	c.len = sizeof(key);
	taken = registry_claim(&list->seen, &c, &earlier);
	if (taken > 0)
		reject(r, n, "each port once for a protocol (line %u has it already)",
		       earlier.line);
	else if (done(r, taken))
		list->service->n_ports++;
}

static void read_ports(struct reader *r, const struct node *n, void *to)
{
	struct port_list list = {.service = to};

	if (n->kind == NODE_LIST && n->n > 0) {
		list.service->ports = calloc(n->n, sizeof(*list.service->ports));
		if (!have(r, list.service->ports))
			return;
	}
	read_list(r, n, "ports", CONFIG_SERVICE_PORTS_MAX, read_port_item, &list);
	registry_free(&list.seen);
}

/* --- backends --- */

static void read_backend_app(struct reader *r, const struct node *n, void *to)
{
	const char *text = scalar_text(r, n, "an app's name");
	const char *want = text ? want_app_name(text) : NULL;
	struct service_backend *b = to;

	if (want)
		reject(r, n, "%s", want);
	if (!text || want)
		return;
	b->app = strdup(text);
	have(r, b->app);
}

static void read_backend_labels(struct reader *r, const struct node *n, void *to)
{
	struct service_backend *b = to;
	size_t before = r->errs->n;

	read_labels(r, n, &b->labels);
	if (b->labels.n == 0 && r->errs->n == before)
		reject(r, n, "at least one label"); /* none would stand for every app */
}

/* What is between the first and the last; false: that is not in order, or too many. */
static bool count_range(const struct ax_addr *first, const struct ax_addr *last, uint16_t *more)
{
	uint32_t from = be32toh(first->w[3]), to = be32toh(last->w[3]);

	if (memcmp(first->w, last->w, 3 * sizeof(first->w[0])) != 0 || to < from ||
	    to - from >= CONFIG_SERVICE_BACKENDS_MAX)
		return false;
	*more = (uint16_t)(to - from);
	return true;
}

/* "10.0.0.1-10.0.0.100", "10.0.0.1-10.0.0.100:80", "fd00::1-fd00::64", "[fd00::1-fd00::64]:80" */
static void read_range(struct reader *r, const struct node *n, const char *dash,
		       struct service_backend *b)
{
	static const char what[] = "two addresses in order, such as 10.0.0.1-10.0.0.100, with "
				   "or without a port, for at most 65535";
	const char *text = n->text, *v6 = text[0] == '[' ? "[" : "";
	struct node last = *n;
	char from[ADDR_STRLEN + 2], to[2 * ADDR_STRLEN];
	struct ax_addr first;
	size_t before = r->errs->n;

	if (snprintf(from, sizeof(from), "%.*s%s", (int)(dash - text), text, *v6 ? "]" : "") >=
		    (int)sizeof(from) ||
	    snprintf(to, sizeof(to), "%s%s", v6, dash + 1) >= (int)sizeof(to) ||
	    addr_parse(from, &first)) {
		reject(r, n, "%s", what);
		return;
	}
	last.text = to;
	last.len = strlen(to);
	read_address_port(r, &last, want_server, &b->address, &b->port);
	if (r->errs->n != before)
		return;
	if (want_server(&first) || !count_range(&first, &b->address, &b->more))
		reject(r, n, "%s", what);
	b->address = first;
}

static void read_address(struct reader *r, const struct node *n, void *to)
{
	const char *dash = n->kind == NODE_SCALAR ? strchr(n->text, '-') : NULL;
	struct service_backend *b = to;

	if (dash)
		read_range(r, n, dash, b);
	else
		read_address_port(r, n, want_server, &b->address, &b->port);
}

static void read_backend_quic_id(struct reader *r, const struct node *n, void *to)
{
	struct service_backend *b = to;

	b->has_quic_id = read_quic_id(r, n, &b->quic_id);
}

static const struct key backend_keys[] = {
	{"app", read_backend_app, 0},
	{"label", read_backend_labels, 0},
	{"labels", read_backend_labels, 0},
	{"address", read_address, 0},
	{"weight", read_weight, offsetof(struct service_backend, weight)},
	{"zone", read_zone, offsetof(struct service_backend, zone)},
	{"quic-id", read_backend_quic_id, 0},
};

/* Keys of the mapping other than those, that is, ways to say which backend. */
static size_t count_targets(const struct node *n)
{
	if (n->kind != NODE_MAPPING)
		return 0;
	return n->n - !!node_key(n, "weight") - !!node_key(n, "zone") - !!node_key(n, "quic-id");
}

static void read_backend(struct reader *r, const struct node *n, void *to)
{
	struct config_service *s = to;
	struct service_backend *b = &s->backends[s->n_backends++];
	size_t before = r->errs->n;

	b->weight = CONFIG_BACKEND_WEIGHT;
	if (n->kind == NODE_SCALAR) {
		read_backend_app(r, n, b);
		return;
	}
	read_mapping(r, n, backend_keys, ARRAY_SIZE(backend_keys), b);
	if (r->errs->n == before && count_targets(n) != 1)
		reject(r, n, "exactly one of app, labels and address");
}

static void read_backends(struct reader *r, const struct node *n, void *to)
{
	struct config_service *s = to;
	size_t room = n->n < CONFIG_SERVICE_BACKENDS_MAX ? n->n : CONFIG_SERVICE_BACKENDS_MAX;

	if (n->kind == NODE_LIST && room > 0) {
		s->backends = calloc(room, sizeof(*s->backends));
		if (!have(r, s->backends))
			return;
	}
	read_list(r, n, "backends", CONFIG_SERVICE_BACKENDS_MAX, read_backend, s);
}

/* --- whole entries --- */

/* Connections are counted by the backends' ports: with every port open to clients, one of them
 * could make counts without end. */
static void check_strategy(struct reader *r, const struct node *key, const struct config_service *s)
{
	bool all = s->n_backends > 0;

	for (size_t i = 0; i < s->n_backends; i++)
		all &= s->backends[i].port != 0;
	if (s->strategy == AX_STRATEGY_LEAST_CONNECTIONS && !s->n_ports && !all)
		report(r, key, "strategy least-connections without ports",
		       "ports: [...], by which its connections are counted");
}

/* (An app that is told apart by its address has no name to be told apart by.) */
static void check_hash(struct reader *r, const struct node *key, const struct config_service *s)
{
	if (s->hash == HASH_SRC)
		return;
	if (s->strategy != AX_STRATEGY_MAGLEV)
		report(r, key, "hash: app with another strategy", "strategy: maglev, or hash: src");
	else if (s->affinity == AFFINITY_SRC)
		report(r, key, "hash: app with affinity: src", "affinity: app or none");
}

static void check_affinity(struct reader *r, const struct node *key, const struct config_service *s)
{
	if (s->affinity_timeout_ms && s->affinity == AFFINITY_NONE)
		report(r, key, "affinity-timeout without affinity", "affinity: app or src");
}

/* --- the section --- */

static void read_ip(struct reader *r, const struct node *n, void *to)
{
	struct config_service *s = to;

	read_vips(r, n, OWNER_SERVICE, &s->ip4, &s->ip6);
}

static void read_strategy(struct reader *r, const struct node *n, void *to)
{
	const char *text;
	char what[128];

	strategy_list(what, sizeof(what));
	text = scalar_text(r, n, what);
	if (text && !strategy_parse(text, to))
		reject(r, n, "%s", what);
}

static void read_affinity(struct reader *r, const struct node *n, void *to)
{
	const char *text = scalar_text(r, n, "none, app or src");
	const char *want = text ? want_affinity(text, to) : NULL;

	if (want)
		reject(r, n, "%s", want);
}

static void read_hash(struct reader *r, const struct node *n, void *to)
{
	const char *text = scalar_text(r, n, "src or app");
	const char *want = text ? want_hash(text, to) : NULL;

	if (want)
		reject(r, n, "%s", want);
}

static void read_udp_choice(struct reader *r, const struct node *n, void *to)
{
	const char *text = scalar_text(r, n, "affinity or per-send");
	const char *want = text ? want_udp_choice(text, to) : NULL;

	if (want)
		reject(r, n, "%s", want);
}

static void read_on_remove(struct reader *r, const struct node *n, void *to)
{
	const char *text = scalar_text(r, n, "udp, destroy or keep");
	const char *want = text ? want_on_remove(text, to) : NULL;

	if (want)
		reject(r, n, "%s", want);
}

static const struct key service_keys[] = {
	{"ip", read_ip, 0},
	{"ports", read_ports, 0},
	{"backends", read_backends, 0},
	{"strategy", read_strategy, offsetof(struct config_service, strategy)},
	{"hash", read_hash, offsetof(struct config_service, hash)},
	{"affinity", read_affinity, offsetof(struct config_service, affinity)},
	{"affinity-timeout", read_duration_ms,
	 offsetof(struct config_service, affinity_timeout_ms)},
	{"udp", read_udp_choice, offsetof(struct config_service, udp)},
	{"on-remove", read_on_remove, offsetof(struct config_service, on_remove)},
	{"wait", read_duration_ms, offsetof(struct config_service, wait_ms)},
	{"drain", read_duration_ms, offsetof(struct config_service, drain_ms)},
	{"slow-start", read_duration_ms, offsetof(struct config_service, slow_start_ms)},
	{"splice", read_splice, offsetof(struct config_service, splice)},
	{"check", read_check, offsetof(struct config_service, check)},
	{"expose", read_expose, offsetof(struct config_service, expose)},
};

static void read_service(struct reader *r, const struct node *key, const struct node *value,
			 void *to)
{
	struct config *c = to;
	struct config_service *s = &c->services[c->n_services++];
	const char *want = want_name(key->text);

	s->name = strdup(key->text);
	if (!have(r, s->name))
		return;
	if (want)
		reject(r, key, "%s", want);
	else
		claim_name(r, key, key->text, OWNER_SERVICE);
	read_mapping(r, value, service_keys, ARRAY_SIZE(service_keys), s);
	check_check(r, key, s);
	check_strategy(r, key, s);
	check_hash(r, key, s);
	check_affinity(r, key, s);
}

void read_services(struct reader *r, const struct node *n, void *to)
{
	struct config *c = to;

	if (n->kind == NODE_MAPPING && n->n > 0) {
		c->services = calloc(n->n, sizeof(*c->services));
		if (!have(r, c->services))
			return;
	}
	read_entries(r, n, "services by name", read_service, c);
}
