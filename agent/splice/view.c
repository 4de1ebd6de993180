// SPDX-License-Identifier: GPL-2.0-or-later
/* What `ax get conns` says of splicing. */
#include "splice/splice.h"
#include "registry/app_table.h"
#include "registry/state.h"
#include "splice/look.h"

struct splice_view {
	struct agent *a;
	bool holds;	      /* the programs */
	struct census census; /* empty when no programs are loaded */
	struct pair *pairs;
	size_t n_pairs;
	const struct pair **pair_of; /* of each record: the one that it is an end of, or NULL */
};

struct splice_view *splice_view_open(struct agent *a)
{
	struct splice_view *v = calloc(1, sizeof(*v));

	if (!v)
		return NULL;
	v->a = a;
	if (!a->splicing || !a->splicing->programs)
		return v;
	splice_hold(a->splicing);
	v->holds = true;
	if (census_take(a, a->reads, &v->census) == 0 && v->census.n)
		v->pairs = calloc(v->census.n, sizeof(*v->pairs));
	v->pair_of = calloc(v->census.n + 1, sizeof(struct pair *));
	if (!v->pairs || !v->pair_of)
		return v;
	v->n_pairs = pairs_find(v->census.conns, v->census.n, census_owns, a, v->pairs);
	for (size_t i = 0; i < v->n_pairs; i++) {
		v->pair_of[v->pairs[i].client - v->census.conns] = &v->pairs[i];
		v->pair_of[v->pairs[i].server - v->census.conns] = &v->pairs[i];
	}
	return v;
}

void splice_view_close(struct splice_view *v)
{
	if (!v)
		return;
	if (v->holds)
		splice_release(v->a);
	census_free(&v->census);
	free(v->pair_of);
	free(v->pairs);
	free(v);
}

/* Without programs: what is said by those who are known. */
static enum splice_reason by_words(const struct splice_view *v, const struct ax_conn *c)
{
	const struct app *local = app_of_endpoint(v->a, &c->local);
	const struct app *remote = app_of_endpoint(v->a, &c->remote);
	enum splice_reason r;

	if (!local || !remote || !v->a->splicing)
		return REASON_NO_PEER;
	r = splice_allowed(mode_of(v->a, &c->asked, local, remote),
			   gate_verdict(v->a->splicing->gate));
	return r ? r : REASON_YOUNG;
}

enum splice_reason splice_view_of(const struct splice_view *v, const struct ax_conn *c,
				  uint64_t *bytes)
{
	const struct ax_splice_conn *end =
		v->n_pairs ? pairs_end(v->census.conns, v->census.n, &c->local, &c->remote) : NULL;
	const struct pair *p = end ? v->pair_of[end - v->census.conns] : NULL;
	const struct decision *d;

	if (!p)
		return by_words(v, c);
	*bytes = end->redirected_bytes;
	if (pair_is_joined(p))
		return REASON_NONE;
	d = decisions_find(&v->a->splicing->decisions, p->client->cookie, p->server->cookie);
	return d && d->reason ? d->reason : REASON_YOUNG;
}
