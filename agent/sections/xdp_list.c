/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <arpa/inet.h>
#include <netinet/in.h>

#include "sections/xdp_list.h"
#include "base/address.h"
#include "machine/instance.h"
#include "base/log.h"
#include "base/strv.h"
#include "config/config.h"
#include "config/rule_file.h"
#include "iface/iface.h"
#include "registry/service_table.h"
#include "rules/list.h"
#include "rules/rule.h"
#include "sections/app_backends.h"
#include "services/members.h"
#include "yaml/errors.h"

#define RULES_FILE_MAX (64u << 20)

/* --- reading --- */

static char *directory_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	if (!slash)
		return strdup(".");
	return slash == path ? strdup("/") : strndup(path, (size_t)(slash - path));
}

static int refuse_file(const char *path, const struct config_errors *errs, struct error *e)
{
	const struct config_error *first = errs->e;
	char more[48] = "";

	if (!errs->n)
		return error_set(e, -EINVAL, "the rules file %s cannot be read", path);
	if (errs->n > 1)
		snprintf(more, sizeof(more), " (and %zu more errors)", errs->n - 1);
	return error_set(e, -EINVAL, "%s:%u:%u: %s%sfound %s, expected %s%s", path, first->line,
			 first->column, first->path, *first->path ? ": " : "", first->found,
			 first->expected, more);
}

/* d: its direction, if the file does not say it. */
static int read_rules_file(const char *path, enum xdp_direction d, struct rule_list *l,
			   struct error *e)
{
	CLEANUP(config_errors_free) struct config_errors errs = {0};
	autofree char *text = NULL;
	int r = file_read(path, RULES_FILE_MAX, &text);

	if (r)
		return error_set(e, r, "cannot read the rules file %s: %s", path, strerror(-r));
	r = rule_file_parse(text, strlen(text), d, l, &errs);
	if (r == -ENOMEM)
		return error_set(e, r, "out of memory");
	return r ? refuse_file(path, &errs, e) : 0;
}

/* Balancers of services get theirs when the list is put somewhere. */
static void clear_backends(struct rule_list *l)
{
	for (size_t i = 0; i < l->n_balancers; i++) {
		struct balancer *b = &l->balancers[i];

		if (!b->service)
			continue;
		free(b->backends);
		b->backends = NULL;
		b->n = 0;
	}
}

/* The list as the config has it. */
static int read_own(const struct config_interface *c, const char *dir, struct rule_list *l,
		    struct error *e)
{
	if (rule_list_copy(&c->list, l))
		return error_set(e, -ENOMEM, "out of memory");
	return rule_list_read_sets(l, dir, e);
}

/* A rules file has everything of its own but the sets and balancers of the config's section. */
static int read_file(const struct config_interface *c, const char *dir, struct rule_list *l,
		     struct error *e)
{
	autofree char *path = NULL, *sets_dir = NULL;
	CLEANUP(rule_list_free) struct rule_list shared;
	int r;

	rule_list_init(&shared);
	if (c->rules_file[0] == '/')
		path = strdup(c->rules_file);
	else if (asprintf(&path, "%s/%s", dir, c->rules_file) < 0)
		path = NULL;
	sets_dir = path ? directory_of(path) : NULL;
	if (!sets_dir)
		return error_set(e, -ENOMEM, "out of memory");
	r = read_rules_file(path, c->list.direction, l, e);
	if (!r && l->direction != c->list.direction && l->direction == DIRECTION_EGRESS)
		r = error_set(e, -EINVAL,
			      "the rules file %s is for packets that leave: say direction: egress "
			      "beside rules-file, too",
			      path);
	l->direction = c->list.direction;
	r = r ? r : rule_list_read_sets(l, sets_dir, e);
	r = r ? r : read_own(c, dir, &shared, e);
	if (!r && rule_list_share(l, &shared))
		r = error_set(e, -ENOMEM, "out of memory");
	return r;
}

int xdp_list_read(const struct config_interface *c, const char *dir, struct rule_list *l,
		  struct error *e)
{
	struct error why = {0};
	int r;

	rule_list_init(l);
	r = c->rules_file ? read_file(c, dir, l, &why) : read_own(c, dir, l, &why);
	r = r ? r : rule_list_check(l, &why);
	if (!r) {
		clear_backends(l);
		return 0;
	}
	return error_set(e, r, "interface %s: %s", c->name, why.text);
}

/* --- services --- */

int xdp_list_services(const struct rule_list *l, struct strv *names)
{
	int r = 0;

	strv_free(names);
	for (size_t i = 0; i < l->n_balancers && !r; i++)
		if (l->balancers[i].service)
			r = strv_add(names, l->balancers[i].service);
	return r;
}

bool xdp_list_has_triggers(const struct rule_list *l)
{
	for (size_t i = 0; i < l->n_rules; i++)
		if (l->rules[i].trigger)
			return true;
	return false;
}

/*
 * Where a service's backends listen: one port for all of them, or 0, the packet's. (A balancer has
 * one backend for a flow whatever its port; it cannot send each port to another.)
 */
static int target_of(const struct service *s, const struct balancer *b, uint16_t *ret,
		     struct error *e)
{
	const struct config_service *c = s->conf;
	bool same = true;

	*ret = 0;
	if (!c || b->mode != BALANCE_NAT)
		return 0;
	for (size_t i = 0; i < c->n_ports; i++)
		same &= c->ports[i].target == c->ports[i].port;
	if (same)
		return 0;
	for (size_t i = 1; i < c->n_ports; i++)
		if (c->ports[i].target != c->ports[0].target)
			return error_set(e, -EINVAL,
					 "balancer %s: the ports of the service %s have different "
					 "targets, and a balancer has one: make a service of each",
					 b->name, s->name);
	*ret = c->ports[0].target;
	return 0;
}

/* By where they are, and then as they stood. */
static int compare_places(const void *x, const void *y)
{
	const struct balance_backend *const *a = x, *const *b = y;
	int r = addr_cmp(&(*a)->addr, &(*b)->addr);

	r = r ? r : (*a)->port - (*b)->port;
	return r ? r : (*a > *b) - (*a < *b);
}

/* Of those at one place the first stays. (Thousands of them are no reason to hold up the loop.) */
static int drop_alike(struct balancer *b)
{
	autofree struct balance_backend **at = calloc(b->n + 1, sizeof(*at));
	autofree bool *drop = calloc(b->n + 1, sizeof(*drop));
	size_t n = 0;

	if (!at || !drop)
		return -ENOMEM;
	for (size_t i = 0; i < b->n; i++)
		at[i] = &b->backends[i];
	qsort(at, b->n, sizeof(*at), compare_places);
	for (size_t i = 1; i < b->n; i++)
		drop[at[i] - b->backends] =
			at[i]->port == at[i - 1]->port && addr_eq(&at[i]->addr, &at[i - 1]->addr);
	for (size_t i = 0; i < b->n; i++)
		if (!drop[i])
			b->backends[n++] = b->backends[i];
	b->n = n;
	return 0;
}

static size_t quic_slot(const struct balance_backend *b)
{
	return (addr_is_v4(&b->addr) ? UINT16_MAX + 1u : 0) + b->quic_id;
}

/*
 * A number leads to one server: where several members of a family have it (apps that share a name,
 * a range of addresses), nobody has, and packets go by their addresses.
 */
static void settle_quic_ids(struct balancer *b)
{
	autofree uint8_t *n = NULL; /* by family and number: how many have it, 2: more than one, 3:
				       that is said */

	for (size_t i = 0; i < b->n; i++) {
		uint8_t *of;

		if (!b->backends[i].has_quic_id)
			continue;
		if (!n && !(n = calloc(2, UINT16_MAX + 1)))
			return; /* (two with one number are refused when the list is checked) */
		of = &n[quic_slot(&b->backends[i])];
		*of += *of < 2;
	}
	for (size_t i = 0; n && i < b->n; i++) {
		struct balance_backend *one = &b->backends[i];
		uint8_t *of = &n[quic_slot(one)];

		if (!one->has_quic_id || *of < 2)
			continue;
		one->has_quic_id = false;
		if (*of == 2)
			log_warn("balancer %s: quic-id %u of the service %s is several backends': "
				 "connections go by their addresses alone; give each backend its "
				 "own",
				 b->name, one->quic_id, b->service);
		*of = 3;
	}
}

/* The service's members as backends of `to`, which has none. */
static int members_to_backends(struct agent *a, const struct service *s, struct balancer *to,
			       struct error *e)
{
	struct service_member *m = NULL;
	size_t n = 0;
	uint16_t target;
	int r = target_of(s, to, &target, e);

	if (r)
		return r;
	r = service_members(a, s, &m, &n);
	if (!r)
		to->backends = calloc(n + 1, sizeof(*to->backends));
	if (r || !to->backends) {
		free(m);
		return error_set(e, -ENOMEM, "out of memory");
	}
	for (size_t i = 0; i < n; i++) {
		struct balance_backend x = {.addr = m[i].addr,
					    .port = m[i].port ? m[i].port : target,
					    .weight = (uint16_t)m[i].weight,
					    .drain = m[i].draining || m[i].drained,
					    .down = m[i].down || m[i].declared || m[i].over,
					    .has_quic_id = m[i].of && m[i].of->has_quic_id,
					    .quic_id = m[i].of ? m[i].of->quic_id : 0};

		if (to->mode != BALANCE_NAT)
			x.port = 0;
		to->backends[to->n++] = x;
	}
	free(m);
	if (drop_alike(to))
		return error_set(e, -ENOMEM, "out of memory");
	settle_quic_ids(to);
	return 0;
}

static bool backends_same(const struct balancer *x, const struct balancer *y)
{
	if (x->n != y->n)
		return false;
	for (size_t i = 0; i < x->n; i++)
		if (!balance_backend_eq(&x->backends[i], &y->backends[i]))
			return false;
	return true;
}

int xdp_list_set_backends(struct agent *a, struct rule_list *l, bool *changed, struct error *e)
{
	*changed = false;
	for (size_t i = 0; i < l->n_balancers; i++) {
		struct balancer *b = &l->balancers[i], now = *b;
		struct service *s = b->service ? service_by_name(a, b->service) : NULL;
		int r = 0;

		if (!b->service)
			continue;
		now.backends = NULL;
		now.n = 0;
		if (s)
			r = members_to_backends(a, s, &now, e);
		else
			log_warn("balancer %s: there is no service %s", b->name, b->service);
		if (r) {
			free(now.backends);
			return r;
		}
		*changed |= !backends_same(b, &now);
		free(b->backends);
		*b = now;
	}
	return app_backends_in(a, l) ? app_backends_open(a, e) : 0;
}

/* --- comparing --- */

/* A program of ours is there, on the device that has the name now. */
static int is_attached(struct xdp *x, const char *ifname, struct error *e)
{
	struct xdp_status s = {0};
	bool ours = false;
	int r = xdp_status(x, &s, e);

	if (r)
		return r;
	for (size_t i = 0; i < s.n_programs; i++)
		ours |= s.programs[i].ours;
	ours &= s.ifindex == place_ifindex(ifname);
	xdp_status_free(&s);
	return ours ? 0 : error_set(e, -ENOENT, "%s has no program of ours", ifname);
}

int xdp_list_of_kernel(const struct instance *inst, const char *ifname, struct rule_list *l,
		       struct error *e)
{
	CLEANUP(xdp_closep) struct xdp *x = NULL;
	struct error ignored;
	int r;

	e = e ? e : &ignored;
	if (!place_ifindex(ifname))
		return error_set(e, -ENOENT, "there is no interface %s", ifname);
	r = xdp_open(inst, ifname, &x, e);
	r = r ? r : is_attached(x, ifname, e);
	return r ? r : xdp_list(x, l, e);
}

static bool list_eq(const struct rule_list *x, const struct rule_list *y)
{
	autofree void *p = NULL, *q = NULL;
	size_t n, m;

	return !rule_list_save(x, &p, &n) && !rule_list_save(y, &q, &m) && n == m &&
	       memcmp(p, q, n) == 0;
}

int xdp_list_is_loaded(const struct instance *inst, const char *ifname, const struct rule_list *l,
		       bool *same, struct error *e)
{
	CLEANUP(rule_list_free) struct rule_list old;
	CLEANUP(xdp_closep) struct xdp *x = NULL;
	int r;

	rule_list_init(&old);
	r = xdp_open(inst, ifname, &x, e);
	r = r ? r : xdp_list(x, &old, e);
	*same = !r && list_eq(&old, l) && xdp_lost_target(x) < 0 && !xdp_lost_app(x, NULL) &&
		!xdp_lacks_states(x) && !xdp_lacks_group(x);
	/* what cannot be read, because another version wrote it, is replaced */
	return r == -ENOMEM ? r : 0;
}

/* --- differences in words --- */

#define LINES_MAX 20 /* of each kind */

static int text_cmp(const void *x, const void *y)
{
	return strcmp(*(char *const *)x, *(char *const *)y);
}

static int rule_lines(const struct rule_list *l, struct strv *lines)
{
	int r = 0;

	for (size_t i = 0; i < l->n_rules && !r; i++) {
		autofree char *line = rule_format(&l->rules[i]);

		r = line ? strv_add(lines, line) : -ENOMEM;
	}
	return r;
}

static void put_sep(FILE *f)
{
	if (ftell(f) > 0)
		fputs("; ", f);
}

static void put_lines(FILE *f, char sign, char **v, size_t n)
{
	for (size_t i = 0; i < n && i < LINES_MAX; i++) {
		put_sep(f);
		fprintf(f, "%c %s", sign, v[i]);
	}
	if (n > LINES_MAX) {
		put_sep(f);
		fprintf(f, "%c %zu more rules", sign, n - LINES_MAX);
	}
}

/* Sorts both, leaves the lines that only one has at its start; the strings stay owned by *v. */
static void drop_common(struct strv *x, struct strv *y, size_t *nx, size_t *ny)
{
	size_t i = 0, k = 0;

	*nx = *ny = 0;
	if (x->n)
		qsort(x->v, x->n, sizeof(*x->v), text_cmp);
	if (y->n)
		qsort(y->v, y->n, sizeof(*y->v), text_cmp);
	while (i < x->n || k < y->n) {
		int c = i == x->n ? 1 : k == y->n ? -1 : strcmp(x->v[i], y->v[k]);
		char *keep;

		if (c < 0) { /* swapped, so that every string is still there to be freed */
			keep = x->v[*nx];
			x->v[(*nx)++] = x->v[i];
			x->v[i] = keep;
		} else if (c > 0) {
			keep = y->v[*ny];
			y->v[(*ny)++] = y->v[k];
			y->v[k] = keep;
		}
		i += c <= 0;
		k += c >= 0;
	}
}

static int diff_rules(FILE *f, const struct rule_list *old, const struct rule_list *new)
{
	CLEANUP(strv_free) struct strv x = {0}, y = {0};
	size_t nx, ny;
	bool moved = false;

	if (rule_lines(old, &x) || rule_lines(new, &y))
		return -ENOMEM;
	for (size_t i = 0; i < x.n && i < y.n && !moved; i++)
		moved = !streq(x.v[i], y.v[i]);
	drop_common(&x, &y, &nx, &ny);
	put_lines(f, '-', x.v, nx);
	put_lines(f, '+', y.v, ny);
	if (moved && !nx && !ny) {
		put_sep(f);
		fputs("order of the rules", f);
	}
	return 0;
}

/* The kernel does not know which file a set was read from. */
static bool same_elements(const struct rule_set_def *old, const struct rule_set_def *new)
{
	struct rule_set_def x = *old, y = *new;

	x.file = y.file = NULL;
	return set_eq(&x, &y);
}

static void diff_sets(FILE *f, const struct rule_list *old, const struct rule_list *new)
{
	for (size_t i = 0; i < new->n_sets; i++) {
		const struct rule_set_def *n = &new->sets[i], *o = rule_list_set(old, n->name);

		if (o && same_elements(o, n))
			continue;
		put_sep(f);
		fprintf(f, "%c set %s", o ? '~' : '+', n->name);
	}
	for (size_t i = 0; i < old->n_sets; i++) {
		if (rule_list_set(new, old->sets[i].name))
			continue;
		put_sep(f);
		fprintf(f, "- set %s", old->sets[i].name);
	}
}

static bool balancer_same(const struct balancer *o, const struct balancer *n)
{
	if (o->mode != n->mode || o->affinity != n->affinity || o->gue_port != n->gue_port ||
	    !addr_eq(&o->source4, &n->source4) || !addr_eq(&o->source6, &n->source6) ||
	    !o->service != !n->service)
		return false;
	return o->service ? streq(o->service, n->service) : backends_same(o, n);
}

static void diff_balancers(FILE *f, const struct rule_list *old, const struct rule_list *new)
{
	for (size_t i = 0; i < new->n_balancers; i++) {
		const struct balancer *n = &new->balancers[i];
		const struct balancer *o = rule_list_balancer(old, n->name);

		if (o && balancer_same(o, n))
			continue;
		put_sep(f);
		fprintf(f, "%c balancer %s", o ? '~' : '+', n->name);
	}
	for (size_t i = 0; i < old->n_balancers; i++) {
		if (rule_list_balancer(new, old->balancers[i].name))
			continue;
		put_sep(f);
		fprintf(f, "- balancer %s", old->balancers[i].name);
	}
}

static void diff_settings(FILE *f, const struct rule_list *old, const struct rule_list *new)
{
	if (old->default_action != new->default_action) {
		put_sep(f);
		fprintf(f, "default %s -> %s", ax_verdict_names[old->default_action],
			ax_verdict_names[new->default_action]);
	}
	for (size_t i = 1; i < AX_REASON_POLICIES; i++) {
		if (old->policy[i] == new->policy[i])
			continue;
		put_sep(f);
		fprintf(f, "class %s", rule_reasons[i].name);
	}
	if (old->mode != new->mode || old->priority != new->priority) {
		put_sep(f);
		fputs("mode or priority", f);
	}
	if (old->track != new->track) {
		put_sep(f);
		fprintf(f, "track %s -> %s", list_track_name(old->track),
			list_track_name(new->track));
	}
}

char *xdp_list_diff(const struct rule_list *old, const struct rule_list *new)
{
	autofree char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	int r;

	if (!f)
		return NULL;
	r = diff_rules(f, old, new);
	diff_settings(f, old, new);
	diff_sets(f, old, new);
	diff_balancers(f, old, new);
	return fclose(f) || r ? NULL : take_ptr(&text);
}
