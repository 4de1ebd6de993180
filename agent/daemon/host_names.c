/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of apps and services in /etc/hosts, or what has the host's resolver ask the agent, so that
 * programs outside ax find them, too. */
#include "daemon/host_names.h"
#include "base/address.h"
#include "base/log.h"
#include "config/config.h"
#include "daemon/names_zone.h"
#include "machine/hosts_file.h"
#include "machine/instance.h"
#include "registry/names.h"
#include "registry/state.h"
#include "sections/host_resolver.h"

#define DEBOUNCE_NS (200ull * 1000 * 1000)
#define LINES_MAX   (1u << 20) /* bytes */

struct listing {
	const char *domain, *others; /* the file: names that it has already are left to it */
	FILE *to;
	size_t left_out;
};

static void put(struct listing *l, const struct ax_addr *addr, const char *name)
{
	char text[ADDR_STRLEN];

	if (addr_is_zero(addr))
		return;
	if (ftell(l->to) > (long)LINES_MAX) {
		l->left_out++;
		return;
	}
	fprintf(l->to, "%s %s.%s%s%s\n", addr_format(addr, text), name, l->domain,
		hosts_has_name(l->others, name) ? "" : " ",
		hosts_has_name(l->others, name) ? "" : name);
}

static void on_name(void *arg, const struct name *n)
{
	struct listing *l = arg;
	struct ax_addr ip4, ip6;

	/* (programs outside ax do not reach those of other nodes) */
	if (streq(n->text, "localhost") || !names_is_here(n))
		return;
	names_address(n, &ip4, &ip6);
	put(l, &ip4, n->text);
	put(l, &ip6, n->text);
}

/* NULL: out of memory, or the file cannot be read. */
static char *make_lines(struct agent *a)
{
	autofree char *others = NULL;
	struct listing l = {.domain = a->config.dns_domain};
	char *lines = NULL;
	size_t size;

	if (file_read(HOSTS_FILE, HOSTS_FILE_MAX, &others))
		return NULL;
	l.others = others;
	l.to = open_memstream(&lines, &size);
	if (!l.to)
		return NULL;
	name_each(a, on_name, &l);
	if (fclose(l.to)) {
		free(lines);
		return NULL;
	}
	if (l.left_out)
		log_warn("%zu addresses have no room in " HOSTS_FILE, l.left_out);
	return lines;
}

static void write_names(struct agent *a)
{
	bool wanted = a->config.host_names == HOST_NAMES_HOSTS && a->config.host_access;
	autofree char *lines = wanted ? make_lines(a) : NULL;
	struct error e = {0};

	if (wanted && !lines)
		log_error("the names of apps cannot be put into " HOSTS_FILE);
	else if (hosts_file_update(HOSTS_FILE, a->inst->name, wanted ? lines : "", &e))
		log_error("%s", e.text);
}

void host_names_due(struct agent *a, uint64_t now_ns)
{
	if (!a->host_names_at_ns || a->host_names_at_ns > now_ns)
		return;
	a->host_names_at_ns = 0;
	write_names(a);
	host_resolver_set(a, a->config.host_access ? a->config.host_names : HOST_NAMES_OFF);
}

uint64_t host_names_deadline(const struct agent *a)
{
	return a->host_names_at_ns;
}

void host_names_changed(struct agent *a)
{
	if (a->host_names_at_ns)
		return;
	a->host_names_at_ns = time_mono_ns() + DEBOUNCE_NS;
	a->timers_stale = true;
}

void host_names_remove(struct agent *a)
{
	struct error e = {0};

	if (hosts_file_update(HOSTS_FILE, a->inst->name, "", &e))
		log_warn("%s", e.text);
	host_resolver_remove(a);
}
