/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What services of this node say of its apps, for other nodes: who is checked is checked here. */
#include "cluster/priv.h"
#include "registry/app_table.h"
#include "registry/service_table.h"
#include "registry/state.h"
#include "services/members.h"

static int app_cmp(const void *x, const void *y)
{
	uint32_t a = ((const struct serving *)x)->app, b = ((const struct serving *)y)->app;

	return (a > b) - (a < b);
}

static int serving_cmp(const void *x, const void *y)
{
	const struct serving *a = x, *b = y;
	int r = app_cmp(x, y);

	r = r ? r : strcmp(a->state.service, b->state.service);
	return r ? r : (int)b->state.v4 - (int)a->state.v4;
}

static int add(struct serving_list *l, const struct service *s, const struct service_member *m)
{
	struct serving *one;

	if (l->n == l->room) {
		size_t room = l->room ? 2 * l->room : 64;
		struct serving *more = reallocarray(l->v, room, sizeof(*more));

		if (!more)
			return -ENOMEM;
		l->v = more;
		l->room = room;
	}
	one = &l->v[l->n++];
	*one = (struct serving){.app = m->app->id,
				.state = {.v4 = addr_is_v4(&m->addr),
					  .checked = m->checked,
					  .down = m->down,
					  .drained = m->drained}};
	snprintf(one->state.service, sizeof(one->state.service), "%s", s->name);
	/* (of one that is up the last failure is nobody's matter, and would be written each time)
	 */
	other_state_why(&one->state, m->down ? m->why : NULL);
	return 0;
}

static int add_service(struct agent *a, const struct service *s, struct serving_list *l)
{
	struct service_member *m = NULL;
	size_t n = 0;
	int r = service_members(a, s, &m, &n);

	for (size_t i = 0; i < n && !r; i++)
		if (m[i].app && (m[i].checked || m[i].drained))
			r = add(l, s, &m[i]);
	free(m);
	return r;
}

int serving_read(struct agent *a, struct serving_list *l)
{
	int r = 0;

	for (const struct service *s = a->services; s && !r; s = s->next)
		if (s->health || a->drains)
			r = add_service(a, s, l);
	if (l->n)
		qsort(l->v, l->n, sizeof(*l->v), serving_cmp);
	return r;
}

size_t serving_of(const struct serving_list *l, uint32_t app,
		  struct other_state ret[RECORD_STATES_MAX])
{
	const struct serving key = {.app = app};
	const struct serving *s = l->n ? bsearch(&key, l->v, l->n, sizeof(key), app_cmp) : NULL;
	size_t n = 0;

	while (s && s > l->v && s[-1].app == app)
		s--;
	for (; s && s < l->v + l->n && s->app == app && n < RECORD_STATES_MAX; s++)
		ret[n++] = s->state;
	return n;
}
