// SPDX-License-Identifier: GPL-2.0-or-later
/* The life of the config's structs. */
#include "config/config.h"

/* --- strings that may be missing --- */

static int copy_string(const char *from, char **to)
{
	*to = from ? strdup(from) : NULL;
	return from && !*to ? -ENOMEM : 0;
}

static bool string_eq(const char *a, const char *b)
{
	return a && b ? streq(a, b) : a == b;
}

/* --- apps --- */

void app_spec_free(struct app_spec *s)
{
	free(s->name);
	labels_free(&s->labels);
	free(s->user);
	strv_free(&s->env);
	strv_free(&s->command);
	strv_free(&s->volumes);
	free(s->directory);
	expose_list_free(&s->expose);
	egress_free(&s->egress);
	*s = (struct app_spec){0};
}

int app_spec_copy(const struct app_spec *from, struct app_spec *to)
{
	struct app_spec copy = *from;

	copy.name = copy.user = copy.directory = NULL;
	copy.labels = (struct labels){0};
	copy.env = copy.command = copy.volumes = (struct strv){0};
	copy.expose = (struct expose_list){0};
	copy.egress = (struct egress){0};
	if (copy_string(from->name, &copy.name) < 0 || copy_string(from->user, &copy.user) < 0 ||
	    copy_string(from->directory, &copy.directory) < 0 ||
	    labels_copy(&from->labels, &copy.labels) < 0 || strv_copy(&from->env, &copy.env) < 0 ||
	    strv_copy(&from->command, &copy.command) < 0 ||
	    strv_copy(&from->volumes, &copy.volumes) < 0 ||
	    expose_list_copy(&from->expose, &copy.expose) < 0 ||
	    egress_copy(&from->egress, &copy.egress) < 0) {
		app_spec_free(&copy);
		return -ENOMEM;
	}
	*to = copy;
	return 0;
}

bool app_spec_eq(const struct app_spec *a, const struct app_spec *b)
{
	return string_eq(a->name, b->name) && addr_eq(&a->ip4, &b->ip4) &&
	       addr_eq(&a->ip6, &b->ip6) && labels_eq(&a->labels, &b->labels) &&
	       string_eq(a->user, b->user) && a->net == b->net && strv_eq(&a->env, &b->env) &&
	       strv_eq(&a->command, &b->command) && string_eq(a->directory, b->directory) &&
	       a->wait_ms == b->wait_ms && egress_eq(&a->egress, &b->egress) &&
	       a->detach == b->detach && a->restart == b->restart && a->splice == b->splice &&
	       a->splice_emulation == b->splice_emulation && a->memory == b->memory &&
	       a->cpus == b->cpus && a->pids == b->pids && strv_eq(&a->volumes, &b->volumes) &&
	       a->read_only == b->read_only && expose_list_eq(&a->expose, &b->expose);
}

/* --- services --- */

void service_check_free(struct service_check *c)
{
	free(c->path);
	free(c->user);
	strv_free(&c->command);
	*c = (struct service_check){0};
}

int service_check_copy(const struct service_check *from, struct service_check *to)
{
	struct service_check copy = *from;

	copy.path = copy.user = NULL;
	copy.command = (struct strv){0};
	if (copy_string(from->path, &copy.path) < 0 || copy_string(from->user, &copy.user) < 0 ||
	    strv_copy(&from->command, &copy.command) < 0) {
		service_check_free(&copy);
		return -ENOMEM;
	}
	*to = copy;
	return 0;
}

bool service_check_eq(const struct service_check *a, const struct service_check *b)
{
	return a->type == b->type && a->port == b->port && a->status == b->status &&
	       string_eq(a->path, b->path) && a->every_ms == b->every_ms &&
	       a->timeout_ms == b->timeout_ms && a->fall == b->fall && a->rise == b->rise &&
	       strv_eq(&a->command, &b->command) && string_eq(a->user, b->user) &&
	       a->passive == b->passive && a->window_ms == b->window_ms;
}

void config_service_free(struct config_service *s)
{
	for (size_t i = 0; i < s->n_backends; i++) {
		free(s->backends[i].app);
		free(s->backends[i].zone);
		labels_free(&s->backends[i].labels);
	}
	free(s->backends);
	free(s->ports);
	service_check_free(&s->check);
	expose_list_free(&s->expose);
	free(s->name);
	*s = (struct config_service){0};
}

static int copy_backend(const struct service_backend *from, struct service_backend *to)
{
	*to = *from;
	to->app = to->zone = NULL;
	to->labels = (struct labels){0};
	if (copy_string(from->app, &to->app) < 0 || copy_string(from->zone, &to->zone) < 0)
		return -ENOMEM;
	return labels_copy(&from->labels, &to->labels);
}

static int copy_lists(const struct config_service *from, struct config_service *to)
{
	if (copy_string(from->name, &to->name) < 0 ||
	    service_check_copy(&from->check, &to->check) < 0 ||
	    expose_list_copy(&from->expose, &to->expose) < 0)
		return -ENOMEM;
	if (from->n_ports) {
		to->ports = calloc(from->n_ports, sizeof(*to->ports));
		if (!to->ports)
			return -ENOMEM;
		memcpy(to->ports, from->ports, from->n_ports * sizeof(*to->ports));
		to->n_ports = from->n_ports;
	}
	if (from->n_backends) {
		to->backends = calloc(from->n_backends, sizeof(*to->backends));
		if (!to->backends)
			return -ENOMEM;
		to->n_backends = from->n_backends;
	}
	for (size_t i = 0; i < from->n_backends; i++)
		if (copy_backend(&from->backends[i], &to->backends[i]) < 0)
			return -ENOMEM;
	return 0;
}

int config_service_copy(const struct config_service *from, struct config_service *to)
{
	struct config_service copy = {
		.ip4 = from->ip4,
		.ip6 = from->ip6,
		.strategy = from->strategy,
		.hash = from->hash,
		.wait_ms = from->wait_ms,
		.drain_ms = from->drain_ms,
		.slow_start_ms = from->slow_start_ms,
		.affinity = from->affinity,
		.affinity_timeout_ms = from->affinity_timeout_ms,
		.udp = from->udp,
		.on_remove = from->on_remove,
		.splice = from->splice,
	};

	if (copy_lists(from, &copy) < 0) {
		config_service_free(&copy);
		return -ENOMEM;
	}
	*to = copy;
	return 0;
}

struct ax_addr service_backend_address(const struct service_backend *b, uint32_t i)
{
	struct ax_addr a = b->address;

	a.w[3] = htobe32(be32toh(a.w[3]) + i);
	return a;
}

static bool backend_eq(const struct service_backend *a, const struct service_backend *b)
{
	return string_eq(a->app, b->app) && labels_eq(&a->labels, &b->labels) &&
	       addr_eq(&a->address, &b->address) && a->port == b->port && a->weight == b->weight &&
	       a->more == b->more && string_eq(a->zone, b->zone) &&
	       a->has_quic_id == b->has_quic_id && a->quic_id == b->quic_id;
}

bool config_service_eq(const struct config_service *a, const struct config_service *b)
{
	if (!string_eq(a->name, b->name) || !addr_eq(&a->ip4, &b->ip4) ||
	    !addr_eq(&a->ip6, &b->ip6) || a->strategy != b->strategy || a->wait_ms != b->wait_ms ||
	    a->drain_ms != b->drain_ms || a->splice != b->splice || a->affinity != b->affinity ||
	    a->affinity_timeout_ms != b->affinity_timeout_ms || a->udp != b->udp ||
	    a->hash != b->hash || a->on_remove != b->on_remove ||
	    a->slow_start_ms != b->slow_start_ms || a->n_ports != b->n_ports ||
	    a->n_backends != b->n_backends)
		return false;
	for (size_t i = 0; i < a->n_ports; i++)
		if (a->ports[i].port != b->ports[i].port ||
		    a->ports[i].target != b->ports[i].target ||
		    a->ports[i].proto != b->ports[i].proto)
			return false;
	if (!service_check_eq(&a->check, &b->check) || !expose_list_eq(&a->expose, &b->expose))
		return false;
	for (size_t i = 0; i < a->n_backends; i++)
		if (!backend_eq(&a->backends[i], &b->backends[i]))
			return false;
	return true;
}

/* --- the XDP dataplane --- */

void config_interface_free(struct config_interface *i)
{
	free(i->name);
	free(i->rules_file);
	rule_list_free(&i->list);
	*i = (struct config_interface){0};
}

int config_interface_copy(const struct config_interface *from, struct config_interface *to)
{
	struct config_interface copy = {0};

	if (copy_string(from->name, &copy.name) < 0 ||
	    copy_string(from->rules_file, &copy.rules_file) < 0 ||
	    rule_list_copy(&from->list, &copy.list) < 0) {
		config_interface_free(&copy);
		return -ENOMEM;
	}
	*to = copy;
	return 0;
}

bool config_interface_eq(const struct config_interface *a, const struct config_interface *b)
{
	return string_eq(a->name, b->name) && string_eq(a->rules_file, b->rules_file) &&
	       rule_list_eq(&a->list, &b->list);
}

void config_trigger_free(struct config_trigger *t)
{
	free(t->name);
	free(t->key_file);
	free(t->user);
	strv_free(&t->command);
	*t = (struct config_trigger){0};
}

int config_trigger_copy(const struct config_trigger *from, struct config_trigger *to)
{
	struct config_trigger copy = {.window_ms = from->window_ms};

	if (copy_string(from->name, &copy.name) < 0 ||
	    copy_string(from->key_file, &copy.key_file) < 0 ||
	    copy_string(from->user, &copy.user) < 0 ||
	    strv_copy(&from->command, &copy.command) < 0) {
		config_trigger_free(&copy);
		return -ENOMEM;
	}
	*to = copy;
	return 0;
}

bool config_trigger_eq(const struct config_trigger *a, const struct config_trigger *b)
{
	return string_eq(a->name, b->name) && string_eq(a->key_file, b->key_file) &&
	       string_eq(a->user, b->user) && strv_eq(&a->command, &b->command) &&
	       a->window_ms == b->window_ms;
}

/* --- probes --- */

void config_probe_free(struct config_probe *p)
{
	free(p->name);
	free(p->probe);
	free(p->app);
	free(p->cgroup);
	free(p->types);
	strv_free(&p->armed_by);
	strv_free(&p->disarmed_by);
	*p = (struct config_probe){0};
}

int config_probe_copy(const struct config_probe *from, struct config_probe *to)
{
	struct config_probe copy = *from;

	copy.name = copy.probe = copy.app = copy.cgroup = copy.types = NULL;
	copy.armed_by = copy.disarmed_by = (struct strv){0};
	if (copy_string(from->name, &copy.name) < 0 || copy_string(from->probe, &copy.probe) < 0 ||
	    copy_string(from->app, &copy.app) < 0 || copy_string(from->cgroup, &copy.cgroup) < 0 ||
	    copy_string(from->types, &copy.types) < 0 ||
	    strv_copy(&from->armed_by, &copy.armed_by) < 0 ||
	    strv_copy(&from->disarmed_by, &copy.disarmed_by) < 0) {
		config_probe_free(&copy);
		return -ENOMEM;
	}
	*to = copy;
	return 0;
}

bool config_probe_eq(const struct config_probe *a, const struct config_probe *b)
{
	return string_eq(a->name, b->name) && string_eq(a->probe, b->probe) &&
	       a->action == b->action && a->last == b->last &&
	       memcmp(a->linear, b->linear, sizeof(a->linear)) == 0 && a->pid == b->pid &&
	       string_eq(a->app, b->app) && string_eq(a->cgroup, b->cgroup) &&
	       string_eq(a->types, b->types) && strv_eq(&a->armed_by, &b->armed_by) &&
	       strv_eq(&a->disarmed_by, &b->disarmed_by) && a->per_thread == b->per_thread &&
	       a->exact == b->exact && a->enabled == b->enabled;
}

/* --- the config --- */

int config_init(struct config *c)
{
	*c = (struct config){.dns = CONFIG_DNS,
			     .dns_keep_ms = CONFIG_DNS_KEEP_MS,
			     .host_access = CONFIG_HOST_ACCESS,
			     .logs_size = CONFIG_LOGS_SIZE,
			     .splice = CONFIG_SPLICE};
	prefix_parse(CONFIG_POOL4, &c->pool4);
	c->dns_domain = strdup(CONFIG_DNS_DOMAIN);
	if (!c->dns_domain ||
	    labels_add(&c->default_labels, CONFIG_LABEL_KEY, CONFIG_LABEL_VALUE, NULL) < 0) {
		config_free(c);
		return -ENOMEM;
	}
	return 0;
}

void config_free(struct config *c)
{
	free(c->socket);
	free(c->zone);
	config_cluster_free(&c->cluster);
	free(c->dns_domain);
	free(c->dns_upstreams);
	free(c->dns_upstream_ports_be);
	for (size_t i = 0; i < c->n_apps; i++) {
		free(c->apps[i].key);
		app_spec_free(&c->apps[i].spec);
	}
	free(c->apps);
	for (size_t i = 0; i < c->n_services; i++)
		config_service_free(&c->services[i]);
	free(c->services);
	labels_free(&c->default_labels);
	for (size_t i = 0; i < c->n_rules; i++)
		config_rule_free(&c->rules[i]);
	free(c->rules);
	for (size_t i = 0; i < c->n_egress; i++)
		config_egress_free(&c->egress[i]);
	free(c->egress);
	for (size_t i = 0; i < c->n_interfaces; i++)
		config_interface_free(&c->interfaces[i]);
	free(c->interfaces);
	for (size_t i = 0; i < c->n_triggers; i++)
		config_trigger_free(&c->triggers[i]);
	free(c->triggers);
	for (size_t i = 0; i < c->n_probes; i++)
		config_probe_free(&c->probes[i]);
	free(c->probes);
	*c = (struct config){0};
}
