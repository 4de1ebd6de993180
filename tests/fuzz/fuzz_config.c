// SPDX-License-Identifier: GPL-2.0-or-later
/* Any text: the config parser either takes it, and every part can be copied and compares equal to
 * its copy, or explains itself with errors that have a place and are in the file's order. */
#include "config/config.h"
#include "config/edit.h"
#include "config/parse.h"
#include "config/probes.h"
#include "config/shared.h"
#include "config/spec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool good)
{
	if (!good)
		abort();
}

static void check_app(const struct config_app *app)
{
	struct app_spec copy;

	check(spec_check_name(app->key, NULL) == 0);
	check(app->spec.name && spec_check_name(app->spec.name, NULL) == 0);
	check(app_spec_copy(&app->spec, &copy) == 0);
	check(app_spec_eq(&app->spec, &copy));
	app_spec_free(&copy);
}

static void check_service(const struct config_service *s)
{
	struct config_service copy;

	check(spec_check_name(s->name, NULL) == 0);
	for (size_t i = 0; i < s->n_ports; i++)
		check(s->ports[i].port && s->ports[i].target);
	for (size_t i = 0; i < s->n_backends; i++) {
		const struct service_backend *b = &s->backends[i];

		check(b->weight >= 1 && b->weight <= 1000);
		check((b->app != NULL) + (b->labels.n > 0) + !addr_is_zero(&b->address) == 1);
	}
	check(config_service_copy(s, &copy) == 0);
	check(config_service_eq(s, &copy));
	config_service_free(&copy);
}

static void check_labels(const struct labels *l)
{
	autofree char *text = labels_format(l);
	struct labels again;

	check(labels_parse(text, &again, NULL) == 0);
	check(labels_eq(l, &again));
	labels_free(&again);
}

static void check_probe(const struct config_probe *p)
{
	struct config_probe copy;

	check(config_probe_check_name(p->name, NULL) == 0);
	check(config_probe_copy(p, &copy) == 0);
	check(config_probe_eq(p, &copy));
	/* what is right stays so, and is canonical already */
	check(config_probe_check(&copy, NULL, NULL) == 0);
	check(config_probe_eq(p, &copy));
	config_probe_free(&copy);
}

static void check_side(const struct config_side *s)
{
	for (size_t i = 0; i < s->n; i++)
		check_labels(&s->v[i].labels);
}

static void check_rule(const struct config_rule *r)
{
	autofree char *text = config_rule_text(r);

	check(text && *text);
	check(config_rule_eq(r, r));
	check_side(&r->from);
	check_side(&r->to);
	for (size_t i = 0; i < r->n_ports; i++)
		check(r->ports[i].first && r->ports[i].first <= r->ports[i].last);
}

static void check_config(const struct config *c)
{
	for (size_t i = 0; i < c->n_apps; i++)
		check_app(&c->apps[i]);
	for (size_t i = 0; i < c->n_services; i++)
		check_service(&c->services[i]);
	check_labels(&c->default_labels);
	for (size_t i = 0; i < c->n_rules; i++)
		check_rule(&c->rules[i]);
	for (size_t i = 0; i < c->n_probes; i++)
		check_probe(&c->probes[i]);
	check(c->dns_domain && *c->dns_domain);
	check(c->pool4.len >= 96 + 8 && c->pool4.len <= 96 + 29);
	check(c->pool6.len == 0 || (c->pool6.len >= 48 && c->pool6.len <= 120));
}

static void check_errors(const struct config_errors *errs)
{
	autofree char *text = NULL;
	unsigned line = 1;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	check(f && errs->n > 0);
	for (size_t i = 0; i < errs->n; i++) {
		const struct config_error *e = &errs->e[i];

		check(e->line >= line && e->column >= 1);
		check(e->path && e->found && e->expected);
		line = e->line;
	}
	config_errors_print(errs, "file", f);
	fclose(f);
	for (size_t i = 0; i < size; i++) /* nothing that a terminal would obey */
		check((unsigned char)text[i] >= ' ' || text[i] == '\n');
}

/* A line of it twice, or none of it: read in part or as a whole, it is the same. */
static void check_edit(const char *text, size_t size, size_t line, bool twice)
{
	struct config_errors errs = {0}, whole_errs = {0};
	struct config_next old, next;
	struct config whole;
	const char *from = text + line, *nl = memchr(from, '\n', size - line);
	size_t n = nl ? (size_t)(nl + 1 - from) : size - line, len = twice ? size + n : size - n;
	autofree char *other = malloc(size + n + 1);
	int r;

	check(other && config_read(NULL, NULL, text, size, &old, &errs) == 0);
	memcpy(other, text, line);
	memcpy(other + line, from, size - line);
	memcpy(other + line + (twice ? n : 0), twice ? from : from + n,
	       size - line - (twice ? 0 : n));
	r = config_parse(other, len, &whole, &whole_errs);
	check(config_read(&old.config, old.source, other, len, &next, &errs) == r);
	check(errs.n == whole_errs.n);
	if (r == 0) {
		check(next.config.n_services == whole.n_services);
		for (size_t i = 0; i < whole.n_services; i++)
			check(config_service_eq(&next.config.services[i], &whole.services[i]));
		config_next_free(&next);
		config_free(&whole);
	}
	config_errors_free(&errs);
	config_errors_free(&whole_errs);
	config_next_free(&old);
}

static void check_edits(const char *text, size_t size)
{
	size_t line = 0, lines = 0;

	for (const char *nl; lines++ < 64 && line < size; line = (size_t)(nl + 1 - text)) {
		check_edit(text, size, line, false);
		check_edit(text, size, line, true);
		nl = memchr(text + line, '\n', size - line);
		if (!nl)
			break;
	}
}

/* One for all nodes is a config, and has nothing but services that run no commands, and rules. */
static void check_shared(const char *text, size_t size)
{
	struct config_errors errs;
	struct config c, own;

	if (config_shared_parse(text, size, &c, &errs)) {
		check_errors(&errs);
		config_errors_free(&errs);
		return;
	}
	check(errs.n == 0 && size <= CONFIG_SHARED_MAX);
	for (size_t i = 0; i < c.n_services; i++)
		check(c.services[i].check.type != CHECK_EXEC && !c.services[i].check.command.n);
	check(!c.n_apps && !c.n_egress && !c.n_probes && !c.n_triggers);
	check(!c.policy_audit && !c.cluster.name && c.default_labels.n == 1); /* what is always */
	check(config_parse(text, size, &own, &errs) == 0);
	check(own.n_services == c.n_services && own.n_rules == c.n_rules);
	config_free(&own);
	config_free(&c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct config_errors errs;
	struct config c;

	check_shared((const char *)data, size);

	if (config_parse((const char *)data, size, &c, &errs) == 0) {
		check(errs.n == 0);
		check_config(&c);
		if (c.n_services > 1)
			check_edits((const char *)data, size);
		config_free(&c);
	} else {
		check_errors(&errs);
	}
	config_errors_free(&errs);
	return 0;
}
