// SPDX-License-Identifier: GPL-2.0-or-later
/* What is on an interface: rules, status, explanations. Counters: counters.c; captures: captures.c.
 */
#include <dirent.h>
#include <fcntl.h>
#include <net/if.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "net/netlink.h"
#include "iface/priv.h"

/* --- opening --- */

void xdp_close(struct xdp *x)
{
	ring_buffer__free(x->captures);
	ring_buffer__free(x->triggers);
	close_fd(&x->capture_lock);
	generation_close(&x->g);
	datapath_xdp_close(&x->d);
	rule_list_free(&x->list);
	strv_free(&x->names);
	free(x);
}

/* So many changes were made in place so far. */
static uint32_t changes_of(const struct generation *g)
{
	const struct ax_journal *j = (const void *)(g->data + g->layout.journal);

	return g->layout.journal ? __atomic_load_n(&j->n, __ATOMIC_ACQUIRE) : 0;
}

static int read_generation(struct xdp *x)
{
	uint32_t changes;
	struct generation g;
	struct rule_list l;
	struct strv names = {0};
	int r = generation_get(&x->d, xdp_jump(&x->d), &g);

	if (r)
		return r;
	rule_list_init(&l);
	changes = changes_of(&g); /* the list may have more already: then it is read once more */
	r = xdp_generation_list(&g, &l);
	if (!r)
		r = rule_list_counter_names(&l, &names);
	if (r) {
		generation_close(&g);
		rule_list_free(&l);
		return r;
	}
	generation_close(&x->g);
	rule_list_free(&x->list);
	strv_free(&x->names);
	x->g = g;
	x->list = l;
	x->names = names;
	x->read = true;
	x->changes = changes;
	return 0;
}

int xdp_refresh(struct xdp *x)
{
	uint32_t key = xdp_jump(&x->d), id = 0;
	struct bpf_prog_info info = {0};
	uint32_t len = sizeof(info);

	if (x->read && x->changes == changes_of(&x->g) &&
	    !bpf_map_lookup_elem(x->d.map[XDP_MAP_JUMPS], &key, &id) &&
	    !bpf_obj_get_info_by_fd(x->g.prog, &info, &len) && info.id == id)
		return 0;
	return read_generation(x);
}

/* A list whose first confirmation did not come: the interface is as if nothing was loaded. */
static int open_pins(struct xdp *x, const char *dir, struct error *e)
{
	uint32_t id = 0;
	int r = datapath_xdp_open(dir, &x->d);

	if (!r)
		r = datapath_xdp_root_id(dir, &id);
	if (!r)
		r = datapath_list_is_on(dir, x->ifindex, id)
			    ? generation_get_layout(&x->d, xdp_jump(&x->d), &x->g)
			    : -ENOENT;
	if (r == -ENOENT)
		return xdp_not_loaded(x->inst, x->ifname, e);
	if (r == -EPROTO || r == -EINVAL)
		return error_set(e, r,
				 "what is loaded on %s is of another version of ax: unload it and "
				 "load it again",
				 x->ifname);
	return r ? error_set(e, r, "cannot open the dataplane of %s: %s%s", x->ifname, strerror(-r),
			     r == -EPERM || r == -EACCES ? "; run as root" : "")
		 : 0;
}

int xdp_open(const struct instance *inst, const char *ifname, struct xdp **ret, struct error *e)
{
	struct xdp *x = calloc(1, sizeof(*x));
	char dir[256];
	int r;

	if (!x)
		return error_set(e, -ENOMEM, "no memory");
	datapath_xdp_init(&x->d);
	x->g.prog = x->g.arena = x->capture_lock = -1;
	x->inst = inst;
	rule_list_init(&x->list);
	snprintf(x->ifname, sizeof(x->ifname), "%.31s", ifname);
	x->ifindex = place_ifindex(ifname);
	if (!x->ifindex)
		r = xdp_no_interface(ifname, e);
	else
		r = datapath_xdp_dir(inst, ifname, false, dir, sizeof(dir), e);
	if (r == -ENOENT) /* there is no bpffs even */
		r = xdp_not_loaded(inst, ifname, e);
	if (!r) {
		datapath_xdp_find(dir, sizeof(dir), x->ifindex);
		r = open_pins(x, dir, e);
	}
	if (r)
		xdp_close(x);
	else
		*ret = x;
	return r;
}

/* Something that is pinned. */
struct pin {
	const struct instance *inst;
	const char *name, *dir; /* whatever it was for, and where it is */
	unsigned holder;	/* the interface of this network namespace that has it; 0: none */
	const char *set;	/* what is asked for: see add_with_set() */
};

/* Calls f, which adds to `ret`, for each interface name under which something is pinned. */
static int pins_each(const struct instance *inst, const char *set,
		     int (*f)(const struct pin *p, struct strv *ret), struct strv *ret,
		     struct error *e)
{
	char dir[256];
	int r = datapath_xdp_dir(inst, NULL, false, dir, sizeof(dir), e);
	struct dirent *de;
	DIR *d;

	if (r == -ENOENT)
		return 0;
	if (r)
		return r;
	d = opendir(dir);
	if (!d)
		return errno == ENOENT
			       ? 0
			       : error_set(e, -errno, "cannot read %s: %s", dir, strerror(errno));
	while (!r && (de = readdir(d))) {
		char name[PLACE_MAX], path[600];
		struct pin p = {.inst = inst, .name = name, .dir = path, .set = set};

		if (de->d_name[0] == '.' || de->d_type != DT_DIR)
			continue;
		datapath_xdp_place_of(de->d_name, name);
		snprintf(path, sizeof(path), "%s/%s", dir, de->d_name);
		p.holder = datapath_xdp_holder(path, place_ifindex(name));
		r = f(&p, ret);
	}
	closedir(d);
	return r ? error_set(e, r, "cannot list what is in %s: %s", dir, strerror(-r)) : 0;
}

/* By the name that the interface has now: it may have been renamed. */
static bool place_now(const struct pin *p, char ret[PLACE_MAX])
{
	char name[IF_NAMESIZE];

	if (!p->holder || !if_indextoname(p->holder, name))
		return false;
	place_make(ret, name, place_direction(p->name));
	return true;
}

static int add_loaded(const struct pin *p, struct strv *ret)
{
	struct error ignored = {0};
	struct xdp *x = NULL;
	char name[PLACE_MAX];

	if (!place_now(p, name) || xdp_open(p->inst, name, &x, &ignored))
		return 0;
	xdp_close(x);
	return strv_add(ret, name);
}

static int add_elsewhere(const struct pin *p, struct strv *ret)
{
	return p->holder ? 0 : strv_add(ret, p->name);
}

static bool has_set(const struct pin *p)
{
	struct generation_view w CLEANUP(generation_view_close) = {0};
	struct generation g = {.prog = -1, .arena = -1};
	struct datapath_xdp d;
	bool ret = false;
	size_t n;

	if (!datapath_xdp_open_root(p->dir, &d) && !generation_get_layout(&d, xdp_jump(&d), &g) &&
	    !generation_view_open(&g, false, &w))
		ret = !arena_set_size(&w.v, p->set, &n);
	generation_view_close(&w);
	generation_close(&g);
	datapath_xdp_close(&d);
	return ret;
}

static int add_with_set(const struct pin *p, struct strv *ret)
{
	char name[PLACE_MAX];

	return place_now(p, name) && has_set(p) ? strv_add(ret, name) : 0;
}

int xdp_interfaces(const struct instance *inst, struct strv *names, struct error *e)
{
	return pins_each(inst, NULL, add_loaded, names, e);
}

int xdp_interfaces_with_set(const struct instance *inst, const char *set, struct strv *names,
			    struct error *e)
{
	return pins_each(inst, set, add_with_set, names, e);
}

int xdp_elsewhere(const struct instance *inst, struct strv *names, struct error *e)
{
	return pins_each(inst, NULL, add_elsewhere, names, e);
}

int xdp_lost_target(struct xdp *x)
{
	if (xdp_refresh(x))
		return -1;
	for (size_t i = 0; i < x->list.n_rules; i++) {
		const struct rule *rule = &x->list.rules[i];
		const struct ax_action *act;
		uint32_t key, ifindex = 0;

		if (rule->verdict != AX_VERDICT_REDIRECT)
			continue;
		act = xdp_action(&x->g, i);
		if (!act || act->flags & AX_ACTION_OFF) /* no packet gets there */
			continue;
		key = act->target;
		if (!bpf_map_lookup_elem(x->d.map[XDP_MAP_IFINDEXES], &key, &ifindex) &&
		    (!ifindex || ifindex != if_nametoindex(rule->target)))
			return (int)i;
	}
	return -1;
}

bool xdp_lost_app(struct xdp *x, struct ax_addr *which)
{
	CLEANUP(datapath_apps_close) struct datapath_apps apps = {.vips = -1};
	const struct ax_layout *l = &x->g.layout;
	const struct ax_balancer *b;
	const struct ax_real *r;
	bool lost = false;

	if (xdp_refresh(x))
		return false;
	datapath_apps_open(x->inst, &apps);
	b = (const void *)(x->g.data + l->balancers);
	r = (const void *)(x->g.data + l->backends);
	for (uint32_t i = 0; i < l->backends_n && !lost; i++) {
		bool app = r[i].flags & AX_REAL_APP;

		if (!(r[i].flags & AX_REAL_PRESENT) || r[i].flags & AX_REAL_DOWN ||
		    b[r[i].balancer].mode != AX_BALANCE_NAT)
			continue;
		lost = app != (datapath_apps_find(&apps, &r[i].addr) != DATAPATH_NO_APP) ||
		       (app && l->apps.ifindex != apps.ifindex);
		if (lost && which)
			*which = r[i].addr;
	}
	return lost;
}

int xdp_list(struct xdp *x, struct rule_list *l, struct error *e)
{
	int r = xdp_refresh(x);

	if (!r)
		r = rule_list_copy(&x->list, l);
	return r ? error_set(e, r, "cannot read the rules of %s: %s", x->ifname, strerror(-r)) : 0;
}

/* --- status --- */

static uint32_t used_fields(const struct ax_layout *l)
{
	uint32_t r = 0;

	for (int i = 0; i < AX_FIELDS; i++)
		if (l->field[i].used)
			r |= 1u << i;
	return r;
}

int xdp_status(struct xdp *x, struct xdp_status *ret, struct error *e)
{
	uint64_t deadline = x->d.root->deadline_ns, now = time_mono_ns();
	struct datapath_xdp_programs p;
	uint32_t id = 0;
	int r = xdp_refresh(x);

	if (!r)
		r = datapath_xdp_root_id(x->d.dir, &id);
	if (!r)
		r = datapath_list_programs(x->d.dir, x->ifindex, id, &p);
	if (r)
		return error_set(e, r, "cannot ask for the programs of %s: %s", x->ifname,
				 strerror(-r));
	*ret = (struct xdp_status){
		.ifname = x->ifname,
		.ifindex = x->ifindex,
		.mode = p.mode,
		.dispatcher = p.dispatcher,
		/* libxdp knows of its dispatcher only */
		.frags = p.dispatcher ? p.frags : x->g.layout.has_frags,
		.generation = x->g.layout.generation,
		.since = time_unix_of_boot_ns(x->g.layout.since_boot),
		.confirm_ms = deadline > now ? (deadline - now + 999999) / 1000000 : 0,
		.arena_size = x->g.layout.size,
		.match = x->g.layout.match,
		.fields = used_fields(&x->g.layout),
		.conntrack = x->g.layout.conntrack,
		.flows = x->g.layout.flows != AX_FLOWS_NONE,
		.programs = p.v,
		.n_programs = p.n,
	};
	return 0;
}

void xdp_status_free(struct xdp_status *s)
{
	free(s->programs);
	*s = (struct xdp_status){0};
}

int xdp_programs(const struct instance *inst, const char *ifname, struct xdp_program_info **ret,
		 size_t *n, enum xdp_mode *mode, bool *dispatcher, struct error *e)
{
	unsigned ifindex = place_ifindex(ifname);
	struct datapath_xdp_programs p;
	struct error ignored = {0};
	uint32_t root = 0;
	char dir[256] = "";
	int r;

	if (!ifindex)
		return xdp_no_interface(ifname, e);
	if (!datapath_xdp_dir(inst, ifname, false, dir, sizeof(dir), &ignored)) {
		datapath_xdp_find(dir, sizeof(dir), ifindex);
		if (datapath_xdp_root_id(dir, &root))
			root = 0;
	}
	r = place_is_egress(ifname) ? datapath_list_programs(dir, ifindex, root, &p)
				    : datapath_xdp_programs(ifindex, root, &p);
	if (r)
		return error_set(e, r, "cannot ask for the programs of %s: %s", ifname,
				 strerror(-r));
	*ret = p.v;
	*n = p.n;
	*mode = p.mode;
	*dispatcher = p.dispatcher;
	return 0;
}

/* --- explaining --- */

static int name_rule(struct xdp *x, uint16_t rule, char **name, char **line)
{
	const struct ax_action *a = (const void *)(x->g.data + x->g.layout.actions);
	size_t n = rule <= x->g.layout.rules ? a[rule].rule : x->list.n_rules;

	if (n >= x->names.n)
		n = x->names.n - 1;
	*name = strdup(x->names.v[n]);
	if (line && n < x->list.n_rules)
		*line = rule_format(&x->list.rules[n]);
	return *name ? 0 : -ENOMEM;
}

int xdp_name_explanation(struct xdp *x, struct xdp_explanation *ret)
{
	int r = name_rule(x, ret->x.rule, &ret->rule, &ret->line);

	if (!r && ret->x.quoted_rule <= x->g.layout.rules)
		r = name_rule(x, ret->x.quoted_rule, &ret->quoted_rule, NULL);
	return r;
}

int xdp_explain(struct xdp *x, const void *frame, size_t len, struct xdp_explanation *ret,
		struct error *e)
{
	const struct xdp_assumed nothing = {.state = AX_STATE_UNASKED, .minute = AX_TIME_UNKNOWN};

	return xdp_explain_as(x, frame, len, &nothing, ret, e);
}

int xdp_explain_as(struct xdp *x, const void *frame, size_t len, const struct xdp_assumed *as,
		   struct xdp_explanation *ret, struct error *e)
{
	int r = xdp_refresh(x);

	*ret = (struct xdp_explanation){
		.x = {.state = (uint8_t)as->state, .minute = as->minute, .for_us = as->for_us},
	};
	if (x->d.egress)
		ret->x.mark = as->mark;
	if (!r)
		r = generation_explain(&x->g, frame, len, &ret->x, &ret->action, &ret->out,
				       &ret->out_len);
	if (r == -EINVAL && x->d.egress)
		return error_set(e, r,
				 "the kernel does not run a packet of %zu bytes that leaves: it "
				 "takes no more than a page, and whole IP headers",
				 len);
	if (r == -EINVAL)
		return error_set(
			e, r,
			"the kernel does not run a packet of %zu bytes: it takes 14 and more, "
			"and no more than a page without jumbo frames",
			len);
	if (!r)
		r = xdp_name_explanation(x, ret);
	if (!r)
		return 0;
	xdp_explanation_free(ret);
	return error_set(e, r, "cannot run the packet: %s", strerror(-r));
}

void xdp_explanation_free(struct xdp_explanation *x)
{
	free(x->rule);
	free(x->quoted_rule);
	free(x->line);
	free(x->out);
	*x = (struct xdp_explanation){0};
}
