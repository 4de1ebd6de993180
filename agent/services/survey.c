/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <netinet/in.h>

#include "services/survey.h"
#include "base/work.h"
#include "datapath/datapath.h"
#include "registry/app_table.h"
#include "registry/state.h"

struct survey {
	struct agent *a;
	bool tcp;
	int netns; /* the one that is looked at, -1: the host's */
	int r;	   /* a negative errno: it is not whole */
	struct ax_addr *v;
	size_t n, size;
};

static int note(struct survey *s, const struct ax_addr *asked)
{
	if (s->n && addr_eq(&s->v[s->n - 1], asked))
		return 0;
	if (s->n == s->size) {
		size_t more = s->size ? 2 * s->size : 64;
		void *p = reallocarray(s->v, more, sizeof(*s->v));

		if (!p)
			return -ENOMEM;
		s->v = p;
		s->size = more;
	}
	s->v[s->n++] = *asked;
	return 0;
}

static int note_conn(void *arg, const struct ax_conn *c)
{
	return c->asked.port_be ? note(arg, &c->asked.addr) : 0;
}

/* By a thread. */
static void look(void *arg)
{
	struct survey *s = arg;
	struct datapath *dp = s->a->dp;

	s->r = datapath_udp_conns_each(dp, s->netns, note_conn, s);
	if (!s->r && s->tcp)
		s->r = datapath_conns_each(dp, s->netns, note_conn, s);
}

/* False: none is forgotten. */
static bool note_flow(void *arg, const struct datapath_flow *f)
{
	struct survey *s = arg;
	int r = note(s, &f->asked.addr);

	s->r = r ? r : s->r;
	return false;
}

/* By a thread. */
static void look_outside(void *arg)
{
	struct survey *s = arg;
	int r = datapath_flows_each(s->a->dp, IPPROTO_UDP, note_flow, s);

	s->r = r < 0 ? r : s->r;
}

static int compare(const void *x, const void *y)
{
	return addr_cmp(x, y);
}

static void look_everywhere(struct survey *s)
{
	struct agent *a = s->a;
	autofree uint32_t *ids = calloc(a->n_apps + 1, sizeof(*ids));
	size_t n = 0;

	s->r = ids ? 0 : -ENOMEM;
	if (s->r)
		return;
	for (const struct app *x = a->apps; x && n < a->n_apps; x = x->next)
		if (x->spec.net == NET_PRIVATE)
			ids[n++] = x->id;
	s->netns = -1;
	work_offload(a->work, look, s);
	for (size_t i = 0; i < n && !s->r; i++) {
		const struct app *x = app_by_id(a, ids[i]); /* it may have ended meanwhile */
		autoclose int fd = x ? app_netns(x) : -1;

		s->netns = fd;
		if (fd >= 0)
			work_offload(a->work, look, s);
		work_pause(a->work);
	}
	if (!s->r && (a->ctl.service_ifindex || a->ctl.exposed))
		work_offload(a->work, look_outside, s);
}

struct survey *survey_take(struct agent *a, bool tcp)
{
	struct survey *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->a = a;
	s->tcp = tcp;
	look_everywhere(s);
	if (s->r) {
		survey_free(s);
		return NULL;
	}
	if (s->n)
		qsort(s->v, s->n, sizeof(*s->v), compare);
	return s;
}

bool survey_has(const struct survey *s, const struct ax_addr *asked)
{
	return s->n && bsearch(asked, s->v, s->n, sizeof(*asked), compare);
}

void survey_free(struct survey *s)
{
	if (s)
		free(s->v);
	free(s);
}
