// SPDX-License-Identifier: GPL-2.0-or-later
/* Nodes to balancers. */
#include "base/values.h"
#include "config/read.h"
#include "config/rules.h"
#include "rules/defaults.h"

struct balancer_reading {
	struct balancer b;
	const struct node *port_key;
	bool service, backends;
};

static void read_mode(struct reader *r, const struct node *n, void *to)
{
	static const char what[] = "nat, ipip or gue";
	const char *text = scalar_text(r, n, what);
	int i = text ? value_word(text, balance_mode_names, ARRAY_SIZE(balance_mode_names)) : -1;

	if (text && i < 0)
		reject(r, n, "%s", what);
	if (i >= 0)
		((struct balancer_reading *)to)->b.mode = (enum balance_mode)i;
}

static void read_affinity(struct reader *r, const struct node *n, void *to)
{
	static const char what[] = "none or src";
	const char *text = scalar_text(r, n, what);
	int i = text ? value_word(text, balance_affinity_names, ARRAY_SIZE(balance_affinity_names))
		     : -1;

	if (text && i < 0)
		reject(r, n, "%s", what);
	if (i >= 0)
		((struct balancer_reading *)to)->b.affinity = (enum balance_affinity)i;
}

static void read_source(struct reader *r, const struct node *n, void *to)
{
	struct balancer_reading *b = to;

	read_addresses(r, n, &b->b.source4, &b->b.source6);
}

static void read_gue_port(struct reader *r, const struct node *n, void *to)
{
	struct balancer_reading *b = to;

	b->port_key = n;
	read_port(r, n, &b->b.gue_port);
}

/* The mapping below `services:` of the config, or NULL. */
static const struct node *find_services(const struct node *root)
{
	const struct node *key = node_key(root, "services");

	return key && key[1].kind == NODE_MAPPING ? key + 1 : NULL;
}

static void report_no_service(struct reader *r, const struct node *n, const struct node *services)
{
	size_t count = services ? services->n : 0, known = 0;
	autofree const char **names = calloc(count + 1, sizeof(*names));
	char hint[96];

	if (!have(r, names))
		return;
	for (size_t i = 0; i < count; i++) {
		const struct node *key = &services->items[2 * i];

		if (key->kind == NODE_SCALAR && key->text)
			names[known++] = key->text;
	}
	reject(r, n, "a service of this file%s", value_hint(n->text, names, known, hint));
}

static void read_service(struct reader *r, const struct node *n, void *to)
{
	const struct config_reading *file = r->context;
	const struct node *services = file ? find_services(file->root) : NULL;
	const char *text = scalar_text(r, n, "a service's name");
	const char *want = text ? want_name(text) : NULL;
	struct balancer_reading *b = to;

	b->service = true;
	if (want)
		reject(r, n, "%s", want);
	else if (text && file && !(services && node_key(services, text)))
		report_no_service(r, n, services);
	if (!text || want)
		return;
	b->b.service = strdup(text);
	have(r, b->b.service);
}

/* --- backends --- */

static void read_address(struct reader *r, const struct node *n, void *to)
{
	struct balance_backend *b = to;

	read_address_port(r, n, want_unicast, &b->addr, &b->port);
}

static void read_backend_weight(struct reader *r, const struct node *n, void *to)
{
	struct balance_backend *b = to;
	uint32_t weight = b->weight;

	read_weight(r, n, &weight);
	b->weight = (uint16_t)weight;
}

static void read_backend_quic_id(struct reader *r, const struct node *n, void *to)
{
	struct balance_backend *b = to;

	b->has_quic_id = read_quic_id(r, n, &b->quic_id);
}

static const struct key backend_keys[] = {
	{"address", read_address, 0},
	{"port", read_port, offsetof(struct balance_backend, port)},
	{"weight", read_backend_weight, 0},
	{"drain", read_bool, offsetof(struct balance_backend, drain)},
	{"quic-id", read_backend_quic_id, 0},
};

static void read_backend(struct reader *r, const struct node *n, void *to)
{
	struct balance_backend backend = {.weight = BACKEND_WEIGHT};
	struct balancer *b = &((struct balancer_reading *)to)->b;
	size_t before = r->errs->n;

	if (n->kind == NODE_SCALAR)
		read_address(r, n, &backend);
	else
		read_mapping(r, n, backend_keys, ARRAY_SIZE(backend_keys), &backend);
	if (r->errs->n > before)
		return;
	if (addr_is_zero(&backend.addr)) {
		reject(r, n, "a mapping with the key address");
		return;
	}
	for (size_t i = 0; i < b->n; i++) {
		if (addr_eq(&b->backends[i].addr, &backend.addr) &&
		    b->backends[i].port == backend.port) {
			reject(r, n, "each backend once (a weight gives it more)");
			return;
		}
		if (balance_backend_same_id(&b->backends[i], &backend)) {
			report(r, n, "a quic-id that another backend has",
			       "another quic-id for each backend of a family");
			return;
		}
	}
	if (done(r, array_grow(&b->backends, b->n, sizeof(backend))))
		b->backends[b->n++] = backend;
}

static void read_backends(struct reader *r, const struct node *n, void *to)
{
	((struct balancer_reading *)to)->backends = true;
	read_list(r, n, "backends", BALANCER_BACKENDS_MAX, read_backend, to);
}

/* --- the balancer --- */

static const struct key balancer_keys[] = {
	{"mode", read_mode, 0},		{"source", read_source, 0},
	{"port", read_gue_port, 0},	{"service", read_service, 0},
	{"backends", read_backends, 0}, {"affinity", read_affinity, 0},
};

static bool has_ports(const struct balancer *b)
{
	for (size_t i = 0; i < b->n; i++)
		if (b->backends[i].port)
			return true;
	return false;
}

static void check_balancer(struct reader *r, const struct node *n, const struct balancer_reading *b)
{
	if (b->service == b->backends)
		reject(r, n, "exactly one of service and backends");
	else if (b->port_key && b->b.mode != BALANCE_GUE)
		report(r, b->port_key, "port", "it with mode gue only: it is the tunnel's");
	else if (b->b.mode != BALANCE_NAT && has_ports(&b->b))
		report(r, n, "a backend's port",
		       "none with mode %s: the packet inside keeps its own",
		       balance_mode_names[b->b.mode]);
}

static void read_balancer(struct reader *r, const struct node *key, const struct node *value,
			  void *to)
{
	struct list_reading *l = to;
	struct balancer_reading b = {.b.gue_port = GUE_PORT};
	size_t before = r->errs->n;

	if (!value_is_name(key->text)) {
		reject(r, key, "a name of 1 to 63 letters, digits and . _ - :");
		return;
	}
	if (l->shared && rule_list_balancer(l->shared, key->text)) {
		reject(r, key, "a name that no balancer of the whole section has");
		return;
	}
	b.b.name = strdup(key->text);
	if (read_mapping(r, value, balancer_keys, ARRAY_SIZE(balancer_keys), &b) &&
	    r->errs->n == before)
		check_balancer(r, value, &b);
	if (!have(r, b.b.name) ||
	    !done(r, array_grow(&l->list.balancers, l->list.n_balancers, sizeof(b.b))))
		balancer_free(&b.b);
	else
		l->list.balancers[l->list.n_balancers++] = b.b;
}

void list_read_balancers(struct reader *r, const struct node *n, void *to)
{
	read_entries(r, n, "balancers by name", read_balancer, to);
}
