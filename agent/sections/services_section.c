/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sections/services_section.h"
#include "sections/added_services.h"
#include "sections/shared_services.h"
#include "apps/linger.h"
#include "config/config.h"
#include "ingress/ingress.h"
#include "registry/service_table.h"
#include "registry/state.h"
#include "services/drain.h"
#include "services/services.h"

static void free_addresses(struct agent *a, const struct config_service *c)
{
	app_release_addr(a, &c->ip4);
	app_release_addr(a, &c->ip6);
}

int services_section_put(struct agent *a, const struct config_service *old,
			 struct config_service *next, struct error *e)
{
	struct service *s = old ? service_by_name(a, next->name) : NULL;

	if (s && !s->conf)
		s = NULL; /* apps have formed it, while the config's could not be */
	if (s && config_service_eq(old, next)) {
		s->conf = next; /* the same words in the new config's memory */
		return 0;
	}
	free_addresses(a, next);
	return s ? service_change(a, s, next, e) : service_declare(a, next, e);
}

void services_section_drop(struct agent *a, const struct config_service *old,
			   const struct config_service *next)
{
	struct service *s = service_by_name(a, old->name);

	if (!s || !s->conf)
		return;
	if (next) {
		ingress_service_next(a, s, &next->expose);
		return;
	}
	drains_forget(a, s->name);
	service_remove(a, s);
}

void services_section_retry(struct agent *a)
{
	for (size_t i = 0; i < a->config.n_services; i++) {
		struct config_service *c = &a->config.services[i];
		struct error e;

		if (service_by_name(a, c->name))
			continue;
		free_addresses(a, c);
		service_declare(a, c, &e);
	}
	added_retry(a);
	shared_retry(a);
}
