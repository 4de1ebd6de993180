/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <arpa/inet.h>
#include <netinet/in.h>

#include "services/ending.h"
#include "base/work.h"
#include "config/config.h"
#include "datapath/datapath.h"
#include "net/sock_diag.h"
#include "registry/app_table.h"
#include "registry/service_table.h"
#include "registry/state.h"
#include "services/outside.h"
#include "services/survey.h"

int ending_compare(const struct ending_backend *x, const struct ending_backend *y)
{
	int r = memcmp(&x->vip, &y->vip, sizeof(x->vip));

	r = r ? r : memcmp(&x->addr, &y->addr, sizeof(x->addr));
	return r ? r : (int)x->port - (int)y->port;
}

static int compare(const void *x, const void *y)
{
	return ending_compare(x, y);
}

struct ax_addr ending_vip(const struct ending *e, const struct ax_addr *asked)
{
	bool own = addr_eq(asked, &e->vip4) || addr_eq(asked, &e->vip6);

	return own ? (struct ax_addr){0} : *asked;
}

bool ending_has(const struct ending *e, const struct ending_backend *b)
{
	struct ending_backend any = *b;

	if (bsearch(b, e->b, e->n, sizeof(*e->b), compare))
		return true;
	any.port = 0;
	return bsearch(&any, e->b, e->n, sizeof(*e->b), compare) != NULL;
}

static bool has(const struct ending *e, const struct ax_conn *c)
{
	const struct ending_backend one = {.addr = c->remote.addr,
					   .port = ntohs(c->remote.port_be),
					   .vip = ending_vip(e, &c->asked.addr)};

	return c->asked.port_be ? ending_has(e, &one) : outside_has(e, c);
}

static int note(void *arg, const struct ax_conn *c)
{
	struct ending *e = arg;

	return has(e, c) ? ending_note(e, &c->wire_local, &c->wire_remote, c->cookie) : 0;
}

int ending_note(struct ending *e, const struct ax_endpoint *local, const struct ax_endpoint *remote,
		uint64_t cookie)
{
	if (e->n_conns == e->size) {
		size_t more = e->size ? 2 * e->size : 64;
		void *p = realloc(e->conns, more * sizeof(*e->conns));

		if (!p)
			return -ENOMEM;
		e->conns = p;
		e->size = more;
	}
	e->conns[e->n_conns++] = (struct sock_conn){*local, *remote, cookie, 0};
	return 0;
}

/* By a thread. */
static void end_there(void *arg)
{
	struct ending *e = arg;
	int n = 0;

	e->n_conns = 0;
	if (e->udp)
		datapath_udp_conns_each(e->a->dp, e->netns, note, e);
	if (e->tcp)
		datapath_conns_each(e->a->dp, e->netns, note, e);
	if (e->outside_tcp && e->netns < 0)
		outside_note_accepted(e);
	if (e->n_conns)
		n = socks_end_conns(e->netns, e->conns, e->n_conns);
	e->ended += n > 0 ? (uint32_t)n : 0;
}

/* Who has connected to the others since goes on. */
static void drop_others(struct ending *e)
{
	size_t n = 0;

	for (size_t i = 0; i < e->n; i++)
		if (e->holds(e, &e->b[i]))
			e->b[n++] = e->b[i];
	e->n = n;
}

static void begin_outside(void *arg)
{
	struct ending *e = arg;

	if (e->udp)
		outside_forget_datagrams(e);
	if (e->outside_tcp)
		outside_note_flows(e);
}

static void end_everywhere(struct ending *e)
{
	struct agent *a = e->a;

	e->netns = -1;
	if (e->n)
		work_offload(a->work, end_there, e);
	for (size_t i = 0; i < e->n_apps; i++) {
		const struct app *x = app_by_id(a, e->apps[i]);
		autoclose int fd = x ? app_netns(x) : -1;

		drop_others(e);
		if (!e->n)
			break;
		e->netns = fd;
		if (fd >= 0)
			work_offload(a->work, end_there, e);
		work_pause(a->work);
	}
}

/* What was just being opened when the others were ended. */
static void note_late(void *arg)
{
	datapath_wait_for_programs();
	outside_note_flows(arg);
}

static void run(struct ending *e)
{
	struct agent *a = e->a;

	qsort(e->b, e->n, sizeof(*e->b), compare);
	drop_others(e); /* others' works came before */
	if (e->n && e->outside)
		work_offload(a->work, begin_outside, e);
	end_everywhere(e);
	if (e->n && e->n_flows)
		work_offload(a->work, note_late, e);
	if (e->n_flows)
		end_everywhere(e);
	e->done(e);
	ending_free(e);
}

/* --- several at once --- */

/* Whether it may have a connection, as far as the survey (NULL: there is none) can tell. */
static bool may_have_any(const struct ending *e, const struct survey *s)
{
	bool zero4 = addr_is_zero(&e->vip4), zero6 = addr_is_zero(&e->vip6);

	if (!s || e->outside_tcp || e->n_ports || (zero4 && zero6))
		return true;
	return (!zero4 && survey_has(s, &e->vip4)) || (!zero6 && survey_has(s, &e->vip6));
}

static struct survey *survey_for(struct agent *a, const struct ending *list)
{
	bool tcp = false;

	if (!list || !list->next) /* one alone looks for itself */
		return NULL;
	for (const struct ending *e = list; e; e = e->next)
		tcp |= e->tcp;
	return survey_take(a, tcp);
}

/* Takes over all that have been started until now, in that order. */
static struct ending *take_started(struct agent *a)
{
	struct ending *list = NULL, *e;

	while ((e = a->endings)) {
		a->endings = e->next;
		e->next = list;
		list = e;
	}
	return list;
}

static void run_started(void *arg)
{
	struct agent *a = arg;
	struct ending *list = take_started(a), *e;
	struct survey *s = survey_for(a, list);

	while ((e = list)) {
		list = e->next;
		if (may_have_any(e, s)) {
			run(e);
		} else {
			e->done(e);
			ending_free(e);
		}
		work_pause(a->work);
	}
	survey_free(s);
}

static int note_apps(struct ending *e)
{
	size_t n = 0;

	for (const struct app *x = e->a->apps; x; x = x->next)
		n += x->spec.net == NET_PRIVATE;
	e->apps = calloc(n + 1, sizeof(*e->apps));
	if (!e->apps)
		return -ENOMEM;
	for (const struct app *x = e->a->apps; x; x = x->next)
		if (x->spec.net == NET_PRIVATE)
			e->apps[e->n_apps++] = x->id;
	return 0;
}

struct ending *ending_new(struct agent *a, const struct service *s, size_t most)
{
	struct ending *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	*e = (struct ending){.a = a,
			     .service = strdup(s->name),
			     .vip4 = s->vip4,
			     .vip6 = s->vip6,
			     .b = calloc(most + 1, sizeof(*e->b)),
			     .netns = -1};
	if (e->service && e->b && !outside_ports(e, s) && !note_apps(e))
		return e;
	ending_free(e);
	return NULL;
}

void ending_free(struct ending *e)
{
	if (!e)
		return;
	free(e->service);
	free(e->what);
	free(e->b);
	free(e->apps);
	free(e->conns);
	free(e->ports);
	free(e->flows);
	free(e);
}

bool ending_start(struct ending *e)
{
	struct agent *a = e->a;
	bool begun = a->endings;

	if (!a->work) {
		run(e);
		return true;
	}
	e->next = a->endings;
	a->endings = e; /* first that: the work may begin at once */
	if (begun || !work_start(a->work, 0, run_started, a))
		return true;
	a->endings = e->next;
	ending_free(e);
	return false;
}
