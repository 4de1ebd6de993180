// SPDX-License-Identifier: GPL-2.0-or-later
/* Elements that are in a set for a time: put there, removed, and shown. */
#include "tools/xdp/set_timed.h"

/* --- put there --- */

/* Which set, and what it is to have for a time. */
struct timing {
	const char *name;
	enum set_kind kind;
};

static int make_timed(void *arg, struct rule_list *l, struct error *e)
{
	const struct timing *t = arg;
	const char *name = t->name;
	struct rule_set_def *s = rule_list_set(l, name);

	if (!s)
		return error_set(e, -ENOENT, "there is no set '%.60s'", name);
	if (t->kind == SET_FLOWS)
		return error_set(e, -EINVAL, "set '%.60s' is one of %s: flows are in sets of flows",
				 name, set_kind_name(s->kind));
	if (s->kind == SET_PORTS)
		return error_set(
			e, -EINVAL,
			"set '%.60s' is one of ports: only addresses and flows can be in a set "
			"for a time",
			name);
	s->timed = true;
	return 0;
}

static void put_time(uint64_t ms, char buf[32])
{
	uint64_t s = (ms + 999) / 1000;

	if (s < 60)
		snprintf(buf, 32, "%llus", (unsigned long long)s);
	else
		snprintf(buf, 32, "%llum%02llus", (unsigned long long)s / 60,
			 (unsigned long long)s % 60);
}

int set_hold(struct cmd *c, const char *ifname, const char *set,
	     const struct rule_set_def *elements, uint32_t ms, const struct xdp_load_options *o,
	     struct error *e)
{
	int r = xdp_hold(&c->inst, ifname, set, elements, ms, e);
	struct timing timing = {set, elements->kind};
	char time[32];

	if (r == -EOPNOTSUPP) {
		*e = (struct error){0};
		r = xdp_edit(&c->inst, ifname, make_timed, &timing, o, e);
		r = r ? r : xdp_hold(&c->inst, ifname, set, elements, ms, e);
	}
	if (r)
		return r;
	put_time(ms, time);
	printf("%s: set %s has %zu %s for %s\n", ifname, set, elements->n,
	       elements->kind == SET_FLOWS ? elements->n == 1 ? "flow" : "flows"
	       : elements->n == 1	   ? "address"
					   : "addresses",
	       time);
	return 0;
}

/* --- shown --- */

/* An address needs no length. */
static void put_element(const struct xdp_timed_element *t, char *buf)
{
	if (t->is_flow)
		set_flow_format(&t->flow, buf);
	else if (t->prefix.len == 128)
		addr_format(&t->prefix.addr, buf);
	else
		prefix_format(&t->prefix, buf);
}

static int put_one(const struct xdp_timed_element *t, json_t *to)
{
	const char *by = t->held ? "command" : "rule";
	char buf[FLOW_STRLEN], time[32];

	put_element(t, buf);
	put_time(t->left_ms, time);
	if (!to)
		return printf("%s  for %s more, by a %s\n", buf, time, by) < 0 ? -EIO : 0;
	return json_array_append_new(to, json_pack("{s:s,s:f,s:s}", "element", buf, "seconds-left",
						   (double)t->left_ms / 1000, "by", by))
		       ? -ENOMEM
		       : 0;
}

int set_put_timed(struct xdp *x, const char *set, json_t *to, struct error *e)
{
	autofree struct xdp_timed_element *v = NULL;
	size_t n;
	int r = xdp_timed(x, set, &v, &n, e);

	for (size_t i = 0; !r && i < n; i++)
		r = put_one(&v[i], to);
	return r && !e->code ? error_set(e, r, "the set could not be printed: %s", strerror(-r))
			     : r;
}

int set_count_timed(struct xdp *x, const char *set, size_t *n, struct error *e)
{
	autofree struct xdp_timed_element *v = NULL;

	return xdp_timed(x, set, &v, n, e);
}
