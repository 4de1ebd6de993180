// SPDX-License-Identifier: GPL-2.0-or-later
/* Putting a list on an interface. */
#include <net/if.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <time.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <net/if_arp.h>

#include "net/netlink.h"
#include "iface/defaults.h"
#include "iface/preflight.h"
#include "iface/priv.h"

struct applying {
	const struct instance *inst;
	const char *ifname;
	unsigned ifindex;
	char dir[256];
	const struct rule_list *list;
	const struct xdp_load_options *o;
	struct datapath_xdp d;
	bool loaded; /* something was there before */
	struct generation old, new;
	struct rule_list old_list;
	struct xdp_binding bind;
	struct arena arena;
	struct ax_layout layout;
	enum xdp_mode mode;
	bool frags;
	struct xdp_growth growth;
	bool nat;   /* some list of the instance has NAT, with this one */
	bool flows; /* the list keeps flows */
	struct datapath_apps apps;
	int bad;	   /* findings that speak against the list itself */
	bool new_counters; /* a bigger map of them has taken the former one's place */
};

static void applying_end(struct applying *a)
{
	generation_close(&a->old);
	generation_close(&a->new);
	rule_list_free(&a->old_list);
	xdp_binding_free(&a->bind);
	arena_free(&a->arena);
	xdp_growth_free(&a->growth);
	datapath_apps_close(&a->apps);
	datapath_xdp_close(&a->d);
}
#define autoapplying CLEANUP(applying_end)

static void say(const struct applying *a, const char *fmt, ...) PRINTF(2, 3);
static void say(const struct applying *a, const char *fmt, ...)
{
	char text[700];
	va_list ap;

	if (!a->o->say)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	a->o->say(a->o->arg, text);
}

/* A counter, limit or slot that somebody else had starts at zero. */
static int clear_counters(const struct applying *a)
{
	int cpus = libbpf_num_possible_cpus();
	autofree struct ax_rule_count *zero = cpus < 0 ? NULL : calloc((size_t)cpus, sizeof(*zero));
	autofree struct ax_real_count *none = cpus < 0 ? NULL : calloc((size_t)cpus, sizeof(*none));
	uint64_t full = 0;

	if (cpus < 0)
		return cpus;
	if (!zero || !none)
		return -ENOMEM;
	for (size_t i = 0; i < a->bind.n_fresh; i++) {
		uint32_t key = a->bind.fresh[i];

		if (bpf_map_update_elem(a->d.map[XDP_MAP_RULE_COUNTS], &key, zero, 0) < 0 ||
		    bpf_map_update_elem(a->d.map[XDP_MAP_LIMITS], &key, &full, 0) < 0)
			return -errno;
	}
	for (size_t i = 0; i < a->bind.n_fresh_reals; i++) {
		uint32_t key = a->bind.fresh_reals[i];

		if (bpf_map_update_elem(a->d.map[XDP_MAP_REAL_COUNTS], &key, none, 0) < 0)
			return -errno;
	}
	for (size_t i = 0; i < a->bind.n_fresh_slots; i++) {
		const struct ax_slot empty = {0};
		uint32_t key = a->bind.fresh_slots[i];

		if (bpf_map_update_elem(a->d.map[XDP_MAP_SLOTS], &key, &empty, BPF_F_LOCK) < 0)
			return -errno;
	}
	return 0;
}

static int put_device(const struct applying *a, size_t i, struct error *e)
{
	const struct rule *rule = &a->list->rules[i];
	struct bpf_devmap_val val = {.ifindex = if_nametoindex(rule->target), .bpf_prog.fd = -1};
	uint32_t key = a->bind.rules[i].target;

	if (!val.ifindex && a->o->force) { /* what is to go there is lost and counted */
		bpf_map_delete_elem(a->d.map[XDP_MAP_DEVICES], &key);
		bpf_map_update_elem(a->d.map[XDP_MAP_IFINDEXES], &key, &val.ifindex, 0);
		return 0;
	}
	if (!val.ifindex)
		return error_set(e, -ENODEV,
				 "rule %zu redirects to '%s': there is no such interface", i + 1,
				 rule->target);
	if (bpf_map_update_elem(a->d.map[XDP_MAP_DEVICES], &key, &val, 0) < 0)
		return error_set(e, -errno, "cannot redirect to '%s': %s", rule->target,
				 strerror(errno));
	bpf_map_update_elem(a->d.map[XDP_MAP_IFINDEXES], &key, &val.ifindex, 0);
	return 0;
}

static int put_cpu(const struct applying *a, size_t i, struct error *e)
{
	struct bpf_cpumap_val val = {.qsize = IFACE_CPU_QUEUE, .bpf_prog.fd = -1};
	uint32_t key = a->list->rules[i].cpu, had = 0;

	if (!bpf_map_lookup_elem(a->d.map[XDP_MAP_CPUS], &key, &had) && had)
		return 0;
	if (bpf_map_update_elem(a->d.map[XDP_MAP_CPUS], &key, &val, 0) < 0)
		return error_set(e, -errno, "rule %zu redirects to CPU %u: %s", i + 1, key,
				 strerror(errno));
	return 0;
}

static int put_targets(const struct applying *a, struct error *e)
{
	int r = 0;

	for (size_t i = 0; i < a->list->n_rules && !r; i++) {
		if (a->bind.rules[i].off)
			continue;
		if (a->list->rules[i].verdict == AX_VERDICT_REDIRECT)
			r = put_device(a, i, e);
		else if (a->list->rules[i].verdict == AX_VERDICT_CPU)
			r = put_cpu(a, i, e);
	}
	return r;
}

/* --- before it is done --- */

static bool has_ethernet(const char *ifname)
{
	autoclose int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq rq = {0};

	snprintf(rq.ifr_name, sizeof(rq.ifr_name), "%s", ifname);
	return fd >= 0 && !ioctl(fd, SIOCGIFHWADDR, &rq) &&
	       (rq.ifr_hwaddr.sa_family == ARPHRD_ETHER ||
		rq.ifr_hwaddr.sa_family == ARPHRD_LOOPBACK);
}

static void on_finding(void *arg, const struct finding *f)
{
	struct applying *a = arg;

	/* (of answers to another list's balancer it is only said what would become of them here) */
	a->bad += f->state == FINDING_BAD && !f->others;
	if (f->state == FINDING_BAD ||
	    (f->state == FINDING_NOTE && (streq(f->what, "vlan") || streq(f->what, "challenge"))))
		say(a, "%s: %s%s%s", f->what, f->why, *f->fix ? "; repair it with: " : "", f->fix);
	else if (f->state == FINDING_FIXED)
		say(a, "%s: repaired: %s", f->what, f->why);
}

/* Whether answers to SYNs are all that leaves by these rules. */
static bool only_challenges(const struct rule_list *l)
{
	for (size_t i = 0; i < l->n_rules; i++)
		if (l->rules[i].verdict != AX_VERDICT_PASS &&
		    l->rules[i].verdict != AX_VERDICT_DROP &&
		    l->rules[i].verdict != AX_VERDICT_CHALLENGE)
			return false;
	return xdp_challenges(l) && !xdp_has_nat(l);
}

/* Whether packets leave by these rules. */
static bool sends(const struct rule_list *l)
{
	for (size_t i = 0; i < l->n_rules; i++)
		if (l->rules[i].verdict != AX_VERDICT_PASS &&
		    l->rules[i].verdict != AX_VERDICT_DROP)
			return true;
	for (size_t i = 0; i < l->n_balancers; i++)
		if (l->balancers[i].mode == BALANCE_NAT) /* its answers */
			return true;
	return false;
}

static int no_such_cpu(size_t rule, uint32_t cpu, struct error *e)
{
	return error_set(e, -EINVAL, "rule %zu redirects to CPU %u: there is no such CPU", rule + 1,
			 cpu);
}

static bool looks_at_tags(const struct rule_list *l)
{
	for (size_t i = 0; i < l->n_rules; i++)
		if (l->rules[i].in[AX_FIELD_VLAN].n)
			return true;
	return false;
}

static int check_first(struct applying *a, struct error *e)
{
	bool own = sends(a->list) || looks_at_tags(a->list);
	int cpus = libbpf_num_possible_cpus(), r;

	if (place_is_egress(a->ifname) || (!own && !a->nat))
		return 0;
	for (size_t i = 0; i < a->list->n_rules; i++) /* before anything is repaired for it */
		if (a->list->rules[i].verdict == AX_VERDICT_CPU &&
		    (int64_t)a->list->rules[i].cpu >= cpus)
			return no_such_cpu(i, a->list->rules[i].cpu, e);
	r = preflight(a->inst, a->ifname, a->list, a->mode, a->o->fix, on_finding, a, e);
	if (r < 0 || !a->bad || a->o->force || !own)
		return r < 0 ? r : 0;
	return error_set(
		e, -ENOLINK,
		only_challenges(a->list)
			? "SYNs that come in by %s would not be answered as this list says (see "
			  "above): repair it, or give --fix to have it repaired, or --force"
			: "packets that this list sends from %s would be lost (see above): repair "
			  "it, or give --fix to have it repaired, or --force",
		a->ifname);
}

/* --- the swap --- */

uint32_t xdp_ticks_per_second(void)
{
	struct timespec t = {0};

	clock_getres(CLOCK_MONOTONIC_COARSE, &t);
	return t.tv_nsec ? (uint32_t)(1000000000 / t.tv_nsec) : 100;
}

/* The socket's namespace says nothing of it before some kernels: then 0. */
static uint32_t rmem_max(void)
{
	autofree char *value = NULL;

	return file_read("/proc/sys/net/core/rmem_max", 16, &value) < 0
		       ? 0
		       : (uint32_t)strtoul(value, NULL, 10);
}

/* Its two ends are alike. */
static void way_to_apps(struct applying *a)
{
	autoclose int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq mac = {0}, mtu;

	if (fd < 0 || !if_indextoname(a->apps.ifindex, mac.ifr_name))
		return;
	mtu = mac;
	if (ioctl(fd, SIOCGIFHWADDR, &mac) < 0 || ioctl(fd, SIOCGIFMTU, &mtu) < 0)
		return;
	a->layout.apps.ifindex = a->apps.ifindex;
	a->layout.apps.mtu = (uint16_t)mtu.ifr_mtu;
	memcpy(a->layout.apps.mac, mac.ifr_hwaddr.sa_data, sizeof(a->layout.apps.mac));
}

static int compile_list(struct applying *a, struct error *e)
{
	uint32_t n = xdp_map_entries(a->d.map[XDP_MAP_RULE_COUNTS]);
	int r = xdp_bind(a->list, a->loaded ? &a->old : NULL, a->loaded ? &a->old_list : NULL, n,
			 &a->apps, &a->bind, e);

	if (!r)
		r = xdp_bind_groups(a->list, a->ifindex, a->bind.rules, e);
	if (!r)
		r = rule_compile(a->list, a->bind.rules, a->bind.reals, &a->arena, &a->layout, e);
	if (!r) {
		r = xdp_bind_timed(&a->d, &a->layout, a->list, a->loaded ? &a->old.layout : NULL,
				   &a->old_list);
		if (r)
			error_set(e, r, "cannot make room for what rules learn: %s", strerror(-r));
	}
	if (!r) {
		r = xdp_bind_flows(&a->d, &a->layout, a->flows ? AX_FLOWS_KEEP : AX_FLOWS_NONE);
		if (r)
			error_set(e, r, "cannot tell the list of its flows: %s", strerror(-r));
	}
	if (r)
		return r;
	a->layout.since_boot = time_boot_ns();
	a->layout.hz = xdp_ticks_per_second();
	a->layout.ifindex = a->ifindex;
	a->layout.generation = a->loaded ? a->old.layout.generation + 1 : 1;
	a->layout.mode = a->mode;
	a->layout.has_frags = a->frags;
	a->layout.netns_cookie = xdp_own_netns_cookie();
	a->layout.answers = a->nat;
	a->layout.rmem_max = a->layout.challenges ? rmem_max() : 0;
	if (a->apps.ifindex)
		way_to_apps(a);
	memcpy(a->arena.data, &a->layout, sizeof(a->layout));
	return 0;
}

static int prepare(struct applying *a, struct error *e)
{
	int r = check_first(a, e);

	if (!r)
		r = compile_list(a, e);
	if (!r)
		r = put_targets(a, e);
	if (!r) {
		r = clear_counters(a);
		if (r)
			error_set(e, r, "cannot clear counters: %s", strerror(-r));
	}
	if (!r) {
		r = xdp_answers_note(&a->d, &a->bind, a->list);
		if (r)
			error_set(e, r, "cannot note NAT's addresses: %s", strerror(-r));
	}
	if (!r && xdp_asks_exposed(a->list)) {
		r = datapath_xdp_exposed(a->inst, &a->d);
		if (r)
			error_set(e, r, "cannot tell the list what is exposed: %s", strerror(-r));
	}
	if (!r && (a->layout.routes || a->layout.challenges)) {
		r = xdp_ways(a->inst);
		if (r)
			error_set(e, r, "cannot tell the list of the host's interfaces: %s",
				  strerror(-r));
	}
	if (!r)
		r = generation_load(&a->d, a->arena.data, a->arena.size, &a->layout, &a->new, e);
	if (!r)
		xdp_warn_cut_off(a->ifname, &a->new, a->loaded ? &a->old : NULL, a->o);
	return r;
}

/* From here on the new list judges; before, the old one did. */
static int swap(struct applying *a, struct error *e)
{
	bool confirm = a->o->confirm_ms;
	int r = 0;

	if (confirm) {
		r = generation_set(&a->d, AX_JUMP_PREVIOUS, a->loaded ? &a->old : NULL);
		__atomic_store_n(&a->d.root->deadline_ns,
				 time_mono_ns() + a->o->confirm_ms * 1000000ull, __ATOMIC_RELEASE);
	}
	if (!r)
		r = generation_set(&a->d, AX_JUMP_CURRENT, &a->new);
	if (!r)
		return 0;
	__atomic_store_n(&a->d.root->deadline_ns, 0, __ATOMIC_RELEASE);
	return error_set(e, r, "cannot put the list in place: %s", strerror(-r));
}

/* Has what rules send but nobody gets counted, in the counters that hold from now on. */
static void watch(const struct applying *a)
{
	int r;

	if (datapath_xdp_watched(a->dir) ? !a->new_counters : !sends(a->list))
		return;
	r = datapath_xdp_watch(&a->d, a->dir, a->layout.netns_cookie, a->ifindex);
	if (r)
		say(a, "failed redirects are not counted: %s", strerror(-r));
}

static int attach_fresh(struct applying *a, struct error *e)
{
	int r = swap(a, e);

	if (!r)
		r = datapath_xdp_pin(&a->d, a->dir, e);
	if (r)
		return r;
	watch(a);
	xdp_neighbours(a->inst, a->ifname, NULL, a->list);
	r = datapath_xdp_attach(&a->d, a->dir, a->ifindex, &a->mode, a->list->priority,
				a->o->replace, e);
	if (r)
		datapath_xdp_unpin(a->dir);
	return r;
}

/* The same generation, loaded as a root needs it that is not attached as was thought. */
static int reload(struct applying *a, struct error *e)
{
	int r = datapath_xdp_new_jumps(&a->d);

	*e = (struct error){0};
	a->frags = !a->frags;
	a->layout.has_frags = a->frags;
	memcpy(a->arena.data, &a->layout, sizeof(a->layout));
	generation_close(&a->new);
	if (r)
		return error_set(e, r, "cannot make a program array: %s", strerror(-r));
	return generation_load(&a->d, a->arena.data, a->arena.size, &a->layout, &a->new, e);
}

static int load_fresh(struct applying *a, struct error *e)
{
	enum xdp_mode mode = a->mode;
	uint32_t sizes[XDP_MAPS];
	int r;

	xdp_sizes(a->list, 0, a->nat, a->flows, sizes);
	r = datapath_xdp_create(a->inst, sizes, &a->d, e);
	if (r)
		return r;
	a->d.egress = place_is_egress(a->ifname);
	a->d.root->fallback = a->d.egress ? (uint32_t)TC_ACT_UNSPEC : XDP_PASS;
	a->frags = kernel_has_freplace() != 0; /* no dispatcher then */
	r = prepare(a, e);
	if (!r)
		r = attach_fresh(a, e);
	if (r != -EINVAL || a->new.prog < 0 || mode == ATTACH_OFFLOAD || a->d.egress)
		return r;
	a->mode = mode;
	r = reload(a, e);
	return r ? r : attach_fresh(a, e);
}

/*
 * A list that may come back counts where its successor does: else nobody would see what it counts
 * then. So it is loaded again over the bigger maps before anything else.
 */
static int take_along(struct applying *a, struct error *e)
{
	struct arena arena CLEANUP(arena_free) = {0};
	struct ax_layout layout = a->old.layout;
	struct generation again;
	int r = 0;

	if (arena_add(&arena, layout.size, 64) < 0)
		return error_set(e, -ENOMEM, "no memory");
	layout.generation++;
	memcpy(arena.data, a->old.data, layout.size);
	memcpy(arena.data, &layout, sizeof(layout));
	r = generation_load(&a->d, arena.data, arena.size, &layout, &again, e);
	if (r)
		return r;
	r = generation_set(&a->d, AX_JUMP_CURRENT, &again);
	generation_close(r ? &again : &a->old);
	if (r)
		return error_set(e, r, "cannot put the list in place: %s", strerror(-r));
	a->old = again;
	r = xdp_grown(&a->d, &a->growth, NULL, 0, e);
	xdp_growth_free(&a->growth);
	return r;
}

/* What else packets meet stays: where rules lead is found anew for each list. */
static bool changes_sets_only(const struct applying *a)
{
	return !a->o->confirm_ms && !a->nat && !sends(a->list) &&
	       !xdp_groups_differ(&a->old, &a->old_list, a->ifindex) &&
	       xdp_change_elements(&a->old, a->ifname, &a->old_list, a->list, a->o);
}

static int swap_loaded(struct applying *a, struct error *e)
{
	uint32_t sizes[XDP_MAPS];
	int r;

	if (a->d.root->deadline_ns)
		return error_set(
			e, -EINPROGRESS,
			"the last list of %s waits for its confirmation: ax xdp confirm %s, or "
			"ax xdp rollback %s",
			a->ifname, a->ifname, a->ifname);
	r = generation_get(&a->d, AX_JUMP_CURRENT, &a->old);
	if (!r)
		r = xdp_generation_list(&a->old, &a->old_list);
	if (r)
		return error_set(
			e, r, "cannot read the rules that are loaded on %s (%s): unload them first",
			a->ifname, strerror(-r));
	if (a->list->mode != ATTACH_AUTO && a->list->mode != a->old.layout.mode)
		return error_set(e, -EINVAL,
				 "%s is attached in another mode: unload it to change that",
				 a->ifname);
	a->mode = a->old.layout.mode;
	a->frags = a->old.layout.has_frags;
	if (changes_sets_only(a))
		return 0;
	xdp_sizes(a->list, a->old_list.n_rules, a->nat, a->flows, sizes);
	r = xdp_grow(a->inst, &a->d, sizes, &a->growth, e);
	a->new_counters = a->growth.old[XDP_MAP_RULE_COUNTS] >= 0;
	if (!r && a->new_counters && a->o->confirm_ms)
		r = take_along(a, e);
	if (!r)
		r = prepare(a, e);
	if (!r)
		r = swap(a, e);
	if (!r)
		r = xdp_grown(&a->d, &a->growth, a->bind.fresh, a->bind.n_fresh, e);
	if (!r) {
		watch(a);
		xdp_neighbours(a->inst, a->ifname, &a->old_list, a->list);
	}
	return r;
}

static int check_place(const char *place, const struct rule_list *l, struct error *e)
{
	char name[IF_NAMESIZE];

	if (place_direction(place) != l->direction)
		return error_set(e, -EINVAL, "the list is for direction %s, and %s is not",
				 xdp_direction_name(l->direction), place);
	place_ifname(place, name);
	if (l->direction == DIRECTION_EGRESS && !has_ethernet(name))
		return error_set(e, -EOPNOTSUPP,
				 "packets leave %s without an Ethernet header: it can have no list "
				 "with direction: egress",
				 name);
	return 0;
}

int xdp_apply_locked(const struct instance *inst, const char *ifname, const struct rule_list *l,
		     const struct xdp_load_options *o, struct error *e)
{
	autoapplying struct applying a = {
		.inst = inst, .ifname = ifname, .list = l, .o = o, .mode = l->mode};
	int r;

	xdp_growth_init(&a.growth);
	a.old.prog = a.old.arena = a.new.prog = a.new.arena = -1;
	a.nat = !place_is_egress(ifname) && (xdp_has_nat(l) || datapath_xdp_has_nat(inst));
	datapath_apps_open(inst, &a.apps);
	rule_list_init(&a.old_list);
	datapath_xdp_init(&a.d);
	r = xdp_index(ifname, &a.ifindex, e);
	if (!r)
		r = rule_list_check(l, e);
	if (!r)
		r = check_place(ifname, l, e);
	if (!r)
		r = datapath_xdp_dir(inst, ifname, true, a.dir, sizeof(a.dir), e);
	if (r)
		return r;
	a.flows = xdp_keeps_flows(l);
	r = xdp_open_locked(inst, a.dir, a.ifindex, &a.d, e);
	if (r == -EEXIST && o->replace) {
		*e = (struct error){0};
		datapath_xdp_unpin(a.dir);
		r = -ENOENT;
	}
	if (r == -ENOENT) {
		r = load_fresh(&a, e);
		if (r)
			datapath_xdp_remove(a.dir);
		return r;
	}
	if (!r && o->fresh)
		return error_set(e, -EEXIST,
				 "there is a list on %s already: change it with 'ax xdp apply %s "
				 "--rules FILE' or 'ax xdp rule', or take it off with 'ax xdp "
				 "unload %s'",
				 ifname, ifname, ifname);
	a.loaded = true;
	return r ? r : swap_loaded(&a, e);
}

int xdp_apply(const struct instance *inst, const char *ifname, const struct rule_list *l,
	      const struct xdp_load_options *o, struct error *e)
{
	bool had_nat = datapath_xdp_has_nat(inst);
	int lock = -1, r = xdp_lock(inst, ifname, &lock, e);

	r = r ? r : xdp_apply_locked(inst, ifname, l, o, e);
	close_fd(&lock);
	if (!r && !had_nat && xdp_has_nat(l))
		xdp_answers_spread(inst, ifname, o);
	if (!r) /* with a program, this interface may take frames that others' lists route */
		xdp_ways(inst);
	return r;
}
