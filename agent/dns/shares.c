// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Who has how much of the server open. What is bounded for all is shared: who has most gives way,
 * so that whoever asks a lot waits for itself.
 */
#include "dns/server.h"

struct dns_share *dns_share_get(struct dns_server *s, const struct ax_addr *who)
{
	struct dns_share *sh;

	for (sh = s->shares; sh; sh = sh->next) {
		if (addr_eq(&sh->who, who))
			return sh;
	}
	sh = calloc(1, sizeof(*sh));
	if (!sh)
		return NULL;
	sh->who = *who;
	sh->next = s->shares;
	s->shares = sh;
	return sh;
}

void dns_share_put(struct dns_server *s, struct dns_share *sh)
{
	struct dns_share **at = &s->shares;

	if (sh->n_queries || sh->n_clients || sh->n_held || sh->n_wishes)
		return;
	while (*at != sh)
		at = &(*at)->next;
	*at = sh->next;
	free(sh);
}

struct dns_share *dns_share_with_most_queries(const struct dns_server *s)
{
	struct dns_share *most = s->shares;

	for (struct dns_share *sh = s->shares; sh; sh = sh->next) {
		if (sh->n_queries > most->n_queries)
			most = sh;
	}
	return most;
}

struct dns_share *dns_share_with_most_clients(const struct dns_server *s)
{
	struct dns_share *most = s->shares;

	for (struct dns_share *sh = s->shares; sh; sh = sh->next) {
		if (sh->n_clients > most->n_clients)
			most = sh;
	}
	return most;
}

struct dns_share *dns_share_with_most_wishes(const struct dns_server *s)
{
	struct dns_share *most = s->shares;

	for (struct dns_share *sh = s->shares; sh; sh = sh->next) {
		if (sh->n_wishes > most->n_wishes)
			most = sh;
	}
	return most;
}
