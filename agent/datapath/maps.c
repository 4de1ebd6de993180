/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Typed access to the dataplane's maps. */
#include <fcntl.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "datapath/priv.h"
#include "seen.h"
#include "base/log.h"
#include "net/netlink.h"

int map_set(struct datapath *dp, enum datapath_map m, const void *key, const void *value)
{
	return bpf_map_update_elem(dp->map[m], key, value, BPF_ANY) ? -errno : 0;
}

int map_get(struct datapath *dp, enum datapath_map m, const void *key, void *value)
{
	return bpf_map_lookup_elem(dp->map[m], key, value) ? -errno : 0;
}

int map_del(struct datapath *dp, enum datapath_map m, const void *key)
{
	return bpf_map_delete_elem(dp->map[m], key) && errno != ENOENT ? -errno : 0;
}

/* An element that is replaced is another's at once, while a program may still read it: one that
 * would be what it was stays. */
static int map_change(struct datapath *dp, enum datapath_map m, const void *key, const void *value,
		      size_t size)
{
	char was[128];

	if (size <= sizeof(was) && map_get(dp, m, key, was) == 0 && memcmp(was, value, size) == 0)
		return 0;
	return map_set(dp, m, key, value);
}

int datapath_ctl_get(struct datapath *dp, struct ax_ctl *ret)
{
	uint32_t zero = 0;

	return map_get(dp, MAP_CTL, &zero, ret);
}

int datapath_ctl_set(struct datapath *dp, const struct ax_ctl *c)
{
	uint32_t zero = 0;

	return map_set(dp, MAP_CTL, &zero, c);
}

/* Leaves it as it is if there is one. */
static int count_begin(struct datapath *dp, uint32_t app)
{
	uint32_t none = 0;

	return bpf_map_update_elem(dp->map[MAP_APP_SERVERS], &app, &none, BPF_NOEXIST) &&
			       errno != EEXIST
		       ? -errno
		       : 0;
}

int datapath_tell_host(struct datapath *dp)
{
	autoclose int netns = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	const struct ax_netns_app host = {0};
	int r = netns < 0 ? -errno : netns_cookie(netns, &dp->netns_cookie);

	r = r ? r : map_set(dp, MAP_NETNS_APPS, &dp->netns_cookie, &host);
	return r ? r : count_begin(dp, 0);
}

int datapath_app_set(struct datapath *dp, uint64_t cgroup, const struct ax_app *a)
{
	int r = count_begin(dp, a->id);

	return r ? r : map_change(dp, MAP_APPS, &cgroup, a, sizeof(*a));
}

int datapath_source_set(struct datapath *dp, uint32_t app, const struct ax_source *s)
{
	if (addr_is_zero(&s->v4) && addr_is_zero(&s->v6))
		return map_del(dp, MAP_SOURCES, &app);
	return map_set(dp, MAP_SOURCES, &app, s);
}

int datapath_app_del(struct datapath *dp, uint64_t cgroup)
{
	return map_del(dp, MAP_APPS, &cgroup);
}

int datapath_netns_set(struct datapath *dp, uint64_t cookie, const struct ax_netns_app *a)
{
	return map_set(dp, MAP_NETNS_APPS, &cookie, a);
}

int datapath_netns_del(struct datapath *dp, uint64_t cookie)
{
	return map_del(dp, MAP_NETNS_APPS, &cookie);
}

/* Whether who asked since then may be gone, and is not in the map any more. */
static bool may_be_pushed_out(const struct datapath *dp, uint64_t since_ns)
{
	uint64_t n = __atomic_load_n(dp->dns_gone_n, __ATOMIC_ACQUIRE);
	uint64_t lost_ns = __atomic_load_n(dp->dns_gone_lost_ns, __ATOMIC_RELAXED);

	return (lost_ns && lost_ns >= since_ns) ||
	       (n >= AX_DNS_GONE_SURE && __atomic_load_n(&dp->dns_gone_at[n % AX_DNS_GONE_SURE],
							 __ATOMIC_RELAXED) >= since_ns);
}

uint32_t datapath_dns_asker(struct datapath *dp, const struct ax_endpoint *from, uint64_t since_ns)
{
	struct ax_dns_gone gone;
	uint32_t id = 0;

	if (map_get(dp, MAP_DNS_SOURCES, from, &id) == 0)
		return id;
	if (map_get(dp, MAP_DNS_GONE, from, &gone) == 0 && gone.at_ns >= since_ns)
		return gone.app;
	return may_be_pushed_out(dp, since_ns) ? DATAPATH_ASKER_UNKNOWN : 0;
}

int datapath_vip_set(struct datapath *dp, const struct ax_addr *addr, const struct ax_vip *v)
{
	return map_change(dp, MAP_VIPS, addr, v, sizeof(*v));
}

/* A grace period of RCU. (Kernels with nohz_full refuse it; there a program that is held up for as
 * long as there is between two changes may judge by the wrong rules.) */
void datapath_wait_for_programs(void)
{
	if (syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0))
		log_debug("membarrier: %s", strerror(errno));
}

int datapath_vip_get(struct datapath *dp, const struct ax_addr *addr, struct ax_vip *v)
{
	return map_get(dp, MAP_VIPS, addr, v);
}

int datapath_vip_del(struct datapath *dp, const struct ax_addr *addr)
{
	return map_del(dp, MAP_VIPS, addr);
}

/* --- walking --- */

#define WALK_BATCH 1024

struct batch {
	void *keys, *values;
	uint32_t max;
};

static void batch_free(struct batch *b)
{
	free(b->keys);
	free(b->values);
}

static int batch_alloc(struct batch *b, uint32_t max, size_t key_size, size_t value_size)
{
	batch_free(b);
	b->max = max;
	b->keys = calloc(max, key_size);
	b->values = calloc(max, value_size);
	return b->keys && b->values ? 0 : -ENOMEM;
}

/*
 * Walks a hash map bucket by bucket: each entry that is there all the time comes once, whatever
 * others add and delete meanwhile. (From a key that has vanished, bpf_map_get_next_key() starts
 * anew.) f returns 1 to delete, 0 to keep, or a negative errno.
 */
int map_walk(struct datapath *dp, enum datapath_map m, size_t key_size, size_t value_size,
	     int (*f)(void *arg, const void *key, const void *value), void *arg)
{
	CLEANUP(batch_free) struct batch b = {0};
	uint32_t n, place = 0, from = 0;
	bool begun = false;
	int r = batch_alloc(&b, WALK_BATCH, key_size, value_size);

	while (!r) {
		n = b.max;
		r = bpf_map_lookup_batch(dp->map[m], begun ? &from : NULL, &place, b.keys, b.values,
					 &n, NULL)
			    ? -errno
			    : 0;
		if (r == -ENOSPC) { /* a bucket with more than that; it comes again */
			r = batch_alloc(&b, 2 * b.max, key_size, value_size);
			continue;
		}
		if (r && r != -ENOENT) /* the end, with the last ones */
			return r;
		for (uint32_t i = 0; i < n; i++) {
			const char *key = (const char *)b.keys + i * key_size;
			int verdict = f(arg, key, (const char *)b.values + i * value_size);

			if (verdict < 0)
				return verdict;
			if (verdict == 1)
				map_del(dp, m, key);
		}
		begun = true;
		from = place;
	}
	return r == -ENOENT ? 0 : r;
}

/* --- sweeping --- */

struct sweep {
	struct datapath *dp;
	const struct datapath_keep *keep;
};

static int sweep_app(void *arg, const void *key, const void *value)
{
	struct sweep *s = arg;

	(void)value;
	return !s->keep->cgroup(s->keep->arg, *(const uint64_t *)key);
}

static int sweep_vip(void *arg, const void *key, const void *value)
{
	struct sweep *s = arg;

	(void)value;
	return !s->keep->vip(s->keep->arg, key);
}

static int sweep_service(void *arg, const void *key, const void *value)
{
	struct sweep *s = arg;

	(void)value;
	if (!s->keep->service(s->keep->arg, key))
		datapath_service_del(s->dp, key);
	return 0;
}

/* The sockets of an endpoint that is nobody's any more: one in most cases, and the first. */
static void listeners_del(struct datapath *dp, const struct ax_endpoint *ep,
			  const struct ax_server *s)
{
	struct ax_endpoint key = *ep;
	unsigned left = AX_SERVER_SOCKETS(s->sockets);

	for (unsigned i = 0; left && i < AX_LISTENERS_MAX; i++) {
		key.pad = (uint8_t)i;
		left -= bpf_map_delete_elem(dp->map[MAP_LISTENERS], &key) == 0;
	}
}

/* Whoever had the address when it was written need not have it now. */
static int sweep_server(void *arg, const void *key, const void *value)
{
	const struct ax_endpoint *ep = key;
	const struct ax_server *v = value;
	struct sweep *s = arg;
	struct ax_vip vip;

	if (s->keep->app(s->keep->arg, v->app) && map_get(s->dp, MAP_VIPS, &ep->addr, &vip) == 0 &&
	    vip.kind == AX_VIP_APP && vip.id == v->app)
		return 0;
	listeners_del(s->dp, ep, v);
	return 1;
}

static int sweep_loopback(void *arg, const void *key, const void *value)
{
	struct sweep *s = arg;

	(void)value;
	return !s->keep->app(s->keep->arg, ((const struct ax_app_endpoint *)key)->app);
}

static int sweep_source(void *arg, const void *key, const void *value)
{
	struct sweep *s = arg;

	(void)key;
	return !s->keep->app(s->keep->arg, *(const uint32_t *)value);
}

static int sweep_count(void *arg, const void *key, const void *value)
{
	uint32_t app = *(const uint32_t *)key;
	struct sweep *s = arg;

	(void)value;
	return app && !s->keep->app(s->keep->arg, app);
}

/* Counts of addresses that are nobody's any more, once their last connection is gone. */
static int sweep_open(void *arg, const void *key, const void *value)
{
	const struct ax_endpoint *ep = key;
	struct sweep *s = arg;

	return !*(const uint32_t *)value && !s->keep->vip(s->keep->arg, &ep->addr);
}

static int sweep_netns(void *arg, const void *key, const void *value)
{
	const struct ax_netns_app *v = value;
	struct sweep *s = arg;

	return v->id ? !s->keep->app(s->keep->arg, v->id)
		     : *(const uint64_t *)key != s->dp->netns_cookie;
}

static int sweep_across(void *arg, const void *key, const void *value)
{
	struct sweep *s = arg;

	if (s->keep->app(s->keep->arg, ((const struct ax_across_slot *)key)->app))
		return 0;
	across_flow_del(s->dp, value);
	return 1;
}

int datapath_sweep(struct datapath *dp, const struct datapath_keep *keep)
{
	const struct {
		enum datapath_map map;
		size_t key_size, value_size;
		int (*f)(void *arg, const void *key, const void *value);
	} maps[] = {
		{MAP_APPS, sizeof(uint64_t), sizeof(struct ax_app), sweep_app},
		{MAP_VIPS, sizeof(struct ax_addr), sizeof(struct ax_vip), sweep_vip},
		{MAP_SERVICES, sizeof(struct ax_endpoint), sizeof(struct ax_service),
		 sweep_service},
		{MAP_SERVERS, sizeof(struct ax_endpoint), sizeof(struct ax_server), sweep_server},
		{MAP_LOOPBACK_SERVERS, sizeof(struct ax_app_endpoint), sizeof(uint32_t),
		 sweep_loopback},
		{MAP_UDP_CLIENTS, sizeof(struct ax_app_endpoint), sizeof(uint32_t), sweep_loopback},
		{MAP_DNS_SOURCES, sizeof(struct ax_endpoint), sizeof(uint32_t), sweep_source},
		{MAP_APP_SERVERS, sizeof(uint32_t), sizeof(uint32_t), sweep_count},
		{MAP_ACCEPTS, sizeof(uint32_t), sizeof(uint64_t), sweep_count},
		{MAP_OPEN_CONNS, sizeof(struct ax_endpoint), sizeof(uint32_t), sweep_open},
		{MAP_NETNS_APPS, sizeof(uint64_t), sizeof(struct ax_netns_app), sweep_netns},
		{MAP_ACROSS_SLOTS, sizeof(struct ax_across_slot), sizeof(struct ax_across_ends),
		 sweep_across},
	};
	struct sweep s = {.dp = dp, .keep = keep};
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(maps) && !r; i++)
		r = map_walk(dp, maps[i].map, maps[i].key_size, maps[i].value_size, maps[i].f, &s);
	return r ? r : datapath_sweep_lists(dp);
}

/* --- what is reserved --- */

int datapath_reserve(struct datapath *dp, const struct ax_prefix *list, size_t n)
{
	struct ax_prefix key, next;
	uint32_t one = 1;
	int r = 0;

	for (size_t i = 0; i < n && !r; i++)
		r = map_set(dp, MAP_RESERVED, &list[i], &one);
	if (r || bpf_map_get_next_key(dp->map[MAP_RESERVED], NULL, &next))
		return r;
	do { /* of an earlier agent with another config; nobody but the agent writes here */
		bool known = false;

		key = next;
		r = bpf_map_get_next_key(dp->map[MAP_RESERVED], &key, &next);
		for (size_t i = 0; i < n; i++)
			known |= memcmp(&list[i], &key, sizeof(key)) == 0;
		if (!known)
			map_del(dp, MAP_RESERVED, &key);
	} while (!r);
	return 0;
}

/* --- servers --- */

struct servers_each {
	int (*f)(void *arg, const struct ax_endpoint *ep, const struct ax_server *s);
	void *arg;
};

static int each_server(void *arg, const void *key, const void *value)
{
	struct servers_each *s = arg;
	int r = s->f(s->arg, key, value);

	return r > 0 ? -ECANCELED : r;
}

int datapath_servers_each(struct datapath *dp,
			  int (*f)(void *arg, const struct ax_endpoint *ep,
				   const struct ax_server *s),
			  void *arg)
{
	struct servers_each s = {.f = f, .arg = arg};

	return map_walk(dp, MAP_SERVERS, sizeof(struct ax_endpoint), sizeof(struct ax_server),
			each_server, &s);
}

void datapath_servers_watch(struct datapath *dp, bool on)
{
	__atomic_store_n(dp->servers_watched, on, __ATOMIC_SEQ_CST);
	__atomic_store_n(dp->servers_told, 0, __ATOMIC_SEQ_CST);
}

struct drop_servers {
	struct datapath *dp;
	uint32_t app;
	bool host;
};

static int drop_server(void *arg, const void *key, const void *value)
{
	struct drop_servers *d = arg;

	if (((const struct ax_server *)value)->app != d->app)
		return 0;
	if (d->host)
		listeners_del(d->dp, key, value);
	return 1;
}

static int drop_loopback(void *arg, const void *key, const void *value)
{
	struct drop_servers *d = arg;

	(void)value;
	return ((const struct ax_app_endpoint *)key)->app == d->app;
}

static int drop_wild(void *arg, const void *key, const void *value)
{
	struct drop_servers *d = arg;

	(void)key;
	return ((const struct ax_wild *)value)->app == d->app;
}

static int drop_source(void *arg, const void *key, const void *value)
{
	struct drop_servers *d = arg;

	(void)key;
	return *(const uint32_t *)value == d->app;
}

int datapath_servers_drop(struct datapath *dp, uint32_t app, bool host)
{
	struct drop_servers d = {.dp = dp, .app = app, .host = host};
	uint32_t n = 0;
	int r = map_get(dp, MAP_APP_SERVERS, &app, &n);

	if (r || !app)
		return r == -ENOENT ? 0 : r;
	if (n) { /* sockets that got away from it */
		r = map_walk(dp, MAP_SERVERS, sizeof(struct ax_endpoint), sizeof(struct ax_server),
			     drop_server, &d);
		r = r ? r
		      : map_walk(dp, MAP_LOOPBACK_SERVERS, sizeof(struct ax_app_endpoint),
				 sizeof(uint32_t), drop_loopback, &d);
		r = r ? r
		      : map_walk(dp, MAP_UDP_CLIENTS, sizeof(struct ax_app_endpoint),
				 sizeof(uint32_t), drop_loopback, &d);
		r = r ? r
		      : map_walk(dp, MAP_WILD_PORTS, sizeof(struct ax_endpoint),
				 sizeof(struct ax_wild), drop_wild, &d);
		r = r ? r
		      : map_walk(dp, MAP_DNS_SOURCES, sizeof(struct ax_endpoint), sizeof(uint32_t),
				 drop_source, &d);
	}
	return r ? r : map_del(dp, MAP_APP_SERVERS, &app);
}

/* --- reading --- */

struct conns_each {
	int (*f)(void *arg, const struct ax_conn *c);
	void *arg;
};

static int each_conn(void *arg, const void *record)
{
	struct conns_each *c = arg;

	return c->f(c->arg, record);
}

int datapath_conns_each(struct datapath *dp, int netns_fd,
			int (*f)(void *arg, const struct ax_conn *c), void *arg)
{
	struct conns_each c = {.f = f, .arg = arg};

	return datapath_iter_each(dp->conns, netns_fd, sizeof(struct ax_conn), each_conn, &c);
}

int datapath_udp_conns_each(struct datapath *dp, int netns_fd,
			    int (*f)(void *arg, const struct ax_conn *c), void *arg)
{
	struct conns_each c = {.f = f, .arg = arg};

	return datapath_iter_each(dp->udp_conns, netns_fd, sizeof(struct ax_conn), each_conn, &c);
}

int datapath_dual_udp(struct datapath *dp)
{
	autoclose int fd = -1;
	char none[64];
	ssize_t n;

	if (!dp->dual_udp)
		return -EOPNOTSUPP;
	fd = bpf_iter_create(bpf_link__fd(dp->dual_udp));
	if (fd < 0)
		return -errno;
	/* from here on they tell of the next one */
	__atomic_store_n(dp->udp_told, 0, __ATOMIC_SEQ_CST);
	/* reading runs the program; it writes nothing */
	do {
		n = read(fd, none, sizeof(none));
	} while (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)));
	return n < 0 ? -errno : 0;
}

int datapath_accepts(struct datapath *dp, uint32_t app, uint64_t *ret)
{
	uint64_t none = 0;

	*dp->accepts_any = true;
	*ret = 0;
	if (map_get(dp, MAP_ACCEPTS, &app, ret) != -ENOENT)
		return 0;
	return map_set(dp, MAP_ACCEPTS, &app, &none);
}

void datapath_accepts_drop(struct datapath *dp, uint32_t app)
{
	map_del(dp, MAP_ACCEPTS, &app);
}

int datapath_failing_add(struct datapath *dp, const struct ax_endpoint *backend)
{
	const struct ax_failing none = {0};

	*dp->failing_any = true;
	return bpf_map_update_elem(dp->map[MAP_FAILING], backend, &none, BPF_NOEXIST) &&
			       errno != EEXIST
		       ? -errno
		       : 0;
}

struct failing_each {
	struct datapath *dp;
	bool (*f)(void *arg, const struct ax_endpoint *backend, const struct ax_failing *counted);
	void *arg;
};

static int each_failing(void *arg, const void *key, const void *value)
{
	const struct ax_failing none = {0}, *v = value;
	struct failing_each *e = arg;

	if (!e->f(e->arg, key, v))
		return 1;
	if (v->count) /* what fails just now is counted the next time */
		map_set(e->dp, MAP_FAILING, key, &none);
	return 0;
}

int datapath_failing_each(struct datapath *dp,
			  bool (*f)(void *arg, const struct ax_endpoint *backend,
				    const struct ax_failing *counted),
			  void *arg)
{
	struct failing_each e = {.dp = dp, .f = f, .arg = arg};

	__atomic_store_n(dp->failing_told, 0, __ATOMIC_SEQ_CST);
	return map_walk(dp, MAP_FAILING, sizeof(struct ax_endpoint), sizeof(struct ax_failing),
			each_failing, &e);
}

int datapath_door_set(struct datapath *dp, int family, int fd)
{
	uint32_t key = family != AF_INET;
	uint64_t value = (uint32_t)fd;

	return bpf_map_update_elem(dp->map[MAP_DOOR], &key, &value, BPF_ANY) ? -errno : 0;
}

bool datapath_is_served(struct datapath *dp, const struct ax_endpoint *ep)
{
	struct ax_server s;

	return map_get(dp, MAP_SERVERS, ep, &s) == 0 && s.since_ns;
}

struct held_each {
	int (*f)(void *arg, const struct ax_held *h);
	void *arg;
};

static int each_held(void *arg, const void *record)
{
	struct held_each *h = arg;

	return h->f(h->arg, record);
}

int datapath_held_each(struct datapath *dp, int (*f)(void *arg, const struct ax_held *h), void *arg)
{
	struct held_each h = {.f = f, .arg = arg};

	/* from here on they tell of the next one; the iterator says if some are held yet */
	__atomic_store_n(dp->held_any, 0, __ATOMIC_SEQ_CST);
	__atomic_store_n(dp->held_told, 0, __ATOMIC_SEQ_CST);
	return datapath_iter_each(dp->held, -1, sizeof(struct ax_held), each_held, &h);
}

/* --- events --- */

static int on_record(void *ctx, void *data, size_t size)
{
	struct datapath *dp = ctx;

	if (size < sizeof(struct ax_event) || !dp->event)
		return 0;
	return dp->event(dp->event_arg, data);
}

int datapath_events_fd(struct datapath *dp)
{
	if (!dp->ring)
		dp->ring = ring_buffer__new(dp->map[MAP_EVENTS], on_record, dp, NULL);
	return dp->ring ? ring_buffer__epoll_fd(dp->ring) : -errno;
}

int datapath_events_read(struct datapath *dp, int (*f)(void *arg, const struct ax_event *ev),
			 void *arg)
{
	int r;

	if (!dp->ring)
		return 0;
	dp->event = f;
	dp->event_arg = arg;
	r = ring_buffer__consume(dp->ring);
	dp->event = NULL;
	return r < 0 ? r : 0;
}
