// SPDX-License-Identifier: GPL-2.0-or-later
/* Looking at the packets of an interface, while somebody wants to. */
#include <fcntl.h>
#include <sys/file.h>

#include "iface/priv.h"

struct xdp_tap {
	struct xdp *x; /* borrowed */
	struct datapath_tap tap;
	int lock; /* one at a time looks at an interface */
	bool verdicts;
	int told;      /* 0, or why the list cannot tell what it decides */
	uint32_t root; /* the id of the program that packets come by */
	struct {
		int (*f)(void *arg, const struct ax_tapped *p, const uint8_t *data);
		void *arg;
		int result;
	} reader;
};

static int on_record(void *arg, void *data, size_t size)
{
	const struct ax_tapped *p = data;
	struct xdp_tap *t = arg;

	if (size < sizeof(*p) || p->captured > size - sizeof(*p) || t->reader.result)
		return 0;
	t->reader.result = t->reader.f(t->reader.arg, p, (const uint8_t *)(p + 1));
	return t->reader.result ? -1 : 0;
}

/* --- what is wanted --- */

/* Whether a condition asks for a set, whose elements are the interface's list's. */
static bool asks_sets(const struct rule *r)
{
	for (int i = 0; i < AX_FIELDS; i++)
		if (r->in[i].sets.n)
			return true;
	return false;
}

/* A list that passes what the filter's conditions hold for. */
static int filter_list(const struct xdp *x, const struct rule *filter, struct rule_list *l,
		       struct error *e)
{
	const struct rule_list sets = {.sets = x->list.sets, .n_sets = x->list.n_sets};
	struct rule copy;
	int r = asks_sets(filter) ? rule_list_share(l, &sets) : 0;

	l->default_action = AX_VERDICT_DROP;
	if (!r)
		r = rule_copy(filter, &copy);
	if (!r)
		r = rule_list_insert(l, 0, &copy);
	return r ? error_set(e, r, "the filter could not be made: %s", strerror(-r))
		 : rule_list_check(l, e);
}

static int compile_filter(const struct xdp *x, const struct rule_list *l, struct arena *a,
			  struct ax_layout *layout, struct error *e)
{
	const struct rule_binding bind[2] = {{.counter = 0}, {.counter = 1}};
	int r = rule_compile(l, bind, NULL, a, layout, e);

	if (r)
		return r;
	/* odd packets are looked at like any others, and nothing is let through */
	memset(layout->policy, AX_POLICY_RULES, sizeof(layout->policy));
	layout->since_boot = x->g.layout.since_boot;
	layout->hz = x->g.layout.hz;
	layout->ifindex = x->ifindex;
	layout->generation = 1;
	layout->has_frags = x->g.layout.has_frags;
	layout->netns_cookie = x->g.layout.netns_cookie;
	return 0;
}

int xdp_tap_filter(const struct xdp *x, const struct rule *filter, struct generation *g,
		   struct error *e)
{
	struct arena a CLEANUP(arena_free) = {0};
	bool flows = x->g.layout.flows != AX_FLOWS_NONE;
	uint32_t sizes[XDP_MAPS];
	struct ax_layout layout;
	struct datapath_xdp d;
	struct rule_list l;
	int r;

	rule_list_init(&l);
	datapath_xdp_init(&d);
	r = filter_list(x, filter, &l, e);
	if (!r)
		r = compile_filter(x, &l, &a, &layout, e);
	if (!r) {
		xdp_sizes(&l, 0, false, flows, sizes);
		r = datapath_xdp_create(x->inst, sizes, &d, e);
	}
	if (!r && xdp_bind_flows(&d, &layout, flows ? AX_FLOWS_LOOK : AX_FLOWS_NONE) == 0)
		memcpy(a.data, &layout, sizeof(layout));
	if (!r)
		r = generation_load(&d, a.data, a.size, &layout, g, e);
	datapath_xdp_close(&d);
	rule_list_free(&l);
	return r;
}

static int put_filter(struct xdp_tap *t, const struct rule *filter, struct error *e)
{
	struct generation g = {.prog = -1, .arena = -1};
	int r = xdp_tap_filter(t->x, filter, &g, e);

	if (!r) {
		r = datapath_tap_filter(&t->tap, &g);
		if (r)
			error_set(e, r, "the filter could not be put in place: %s", strerror(-r));
	}
	generation_close(&g); /* the tap has it */
	return r;
}

/* --- following the list --- */

/* Has the list that is current tell, under the lock. */
static int tell(struct xdp_tap *t)
{
	struct generation g;
	struct datapath_xdp d;
	int r = datapath_xdp_open(t->x->d.dir, &d);

	if (r)
		return r;
	r = generation_get_layout(&d, AX_JUMP_CURRENT, &g);
	if (!r)
		r = datapath_tap_tell(&t->tap, &d, &g);
	generation_close(&g);
	datapath_xdp_close(&d);
	return r;
}

static int turn_on(struct xdp_tap *t, const struct xdp_tap_options *o, struct error *e)
{
	autoclose int lock = -1;
	int r = xdp_lock(t->x->inst, t->x->ifname, &lock, e);

	if (r)
		return r;
	datapath_tap_turn(&t->tap, &t->x->d, false); /* of one that was killed */
	__atomic_store_n(&t->x->d.root->told, 0, __ATOMIC_RELEASE);
	if (o->verdicts)
		t->told = tell(t);
	r = datapath_tap_turn(&t->tap, &t->x->d, true);
	if (r == -E2BIG)
		return error_set(
			e, r,
			"what is on %s is of an older version of ax: unload it and load it "
			"again",
			t->x->ifname);
	return r ? error_set(e, r, "the packets of %s cannot be looked at: %s", t->x->ifname,
			     strerror(-r))
		 : 0;
}

static void follow(struct xdp_tap *t)
{
	struct ax_root *root = t->x->d.root;
	struct error ignored = {0};
	autoclose int lock = -1;

	if (!t->verdicts || t->told || __atomic_load_n(&root->told, __ATOMIC_ACQUIRE) ||
	    xdp_lock(t->x->inst, t->x->ifname, &lock, &ignored))
		return;
	t->told = tell(t);
}

/* --- from the first to the last packet --- */

static int take_lock(struct xdp_tap *t, struct error *e)
{
	char path[128];
	int r = mkdir_parents(t->x->inst->run_dir, 0755);

	snprintf(path, sizeof(path), "%s/xdp-%.20s.tap", t->x->inst->run_dir, t->x->ifname);
	t->lock = r ? -1 : open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (t->lock < 0)
		return error_set(e, -errno, "cannot open %s: %s", path, strerror(errno));
	if (flock(t->lock, LOCK_EX | LOCK_NB) < 0)
		return error_set(e, -EBUSY,
				 "another command looks at the packets of %s (ax xdp dump or top): "
				 "one at a time can",
				 t->x->ifname);
	return 0;
}

int xdp_tap_open(struct xdp *x, const struct xdp_tap_options *o, struct xdp_tap **ret,
		 struct error *e)
{
	const struct ax_tap_options options = {
		.snap = o->snap && o->snap < AX_CAPTURE_MAX ? o->snap : AX_CAPTURE_MAX,
		.verdicts = o->verdicts,
		.filtered = o->filter != NULL,
	};
	struct xdp_tap *t;
	int r;

	if (x->d.egress)
		return error_set(e, -EOPNOTSUPP,
				 "what leaves is not looked at so: packets that come in are; of "
				 "those that leave, rules of %s can capture or log",
				 x->ifname);
	t = calloc(1, sizeof(*t));
	if (!t)
		return error_set(e, -ENOMEM, "out of memory");
	t->x = x;
	t->verdicts = o->verdicts;
	t->lock = -1;
	r = take_lock(t, e);
	if (!r) {
		r = xdp_refresh(x);
		if (!r)
			r = datapath_xdp_root_id(x->d.dir, &t->root);
		if (r)
			error_set(e, r, "cannot read the rules of %s: %s", x->ifname, strerror(-r));
	}
	if (!r)
		r = datapath_tap_open(&x->d, &x->g, &options, o->ring, on_record, t, &t->tap, e);
	if (!r && o->filter)
		r = put_filter(t, o->filter, e);
	if (!r)
		r = turn_on(t, o, e);
	if (r)
		xdp_tap_close(t);
	else
		*ret = t;
	return r;
}

void xdp_tap_close(struct xdp_tap *t)
{
	struct error ignored = {0};
	autoclose int lock = -1;

	if (t->tap.skel && !xdp_lock(t->x->inst, t->x->ifname, &lock, &ignored))
		datapath_tap_turn(&t->tap, &t->x->d, false);
	datapath_tap_close(&t->tap);
	close_fd(&t->lock);
	free(t);
}

int xdp_tap_read(struct xdp_tap *t,
		 int (*f)(void *arg, const struct ax_tapped *p, const uint8_t *data), void *arg)
{
	int r;

	t->reader.f = f;
	t->reader.arg = arg;
	t->reader.result = 0;
	/* what is there was mostly decided by the list that is known */
	r = datapath_tap_read(&t->tap);
	if (!t->reader.result && r >= 0) {
		follow(t);
		r = xdp_refresh(t->x);
	}
	return t->reader.result ? t->reader.result : r < 0 ? r : 0;
}

void xdp_tap_sample(struct xdp_tap *t, uint32_t n)
{
	__atomic_store_n(&t->tap.control->sample, n, __ATOMIC_RELAXED);
}

int xdp_tap_count(struct xdp_tap *t, struct ax_tap_count *ret)
{
	return datapath_tap_count(&t->tap, ret);
}

bool xdp_tap_goes_on(struct xdp_tap *t)
{
	return __atomic_load_n(&t->x->d.root->tapped, __ATOMIC_ACQUIRE) &&
	       datapath_xdp_is_on(t->x->ifindex, t->root);
}

int xdp_tap_explain(struct xdp_tap *t, const struct ax_tapped *p, struct xdp_explanation *ret)
{
	int r;

	*ret = (struct xdp_explanation){.x = p->told, .action = p->action};
	if (!p->told.key || p->told.key != t->x->g.layout.generation)
		return -ESTALE;
	r = xdp_name_explanation(t->x, ret);
	if (r)
		xdp_explanation_free(ret);
	return r;
}
