/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The way between nodes through the kernel's WireGuard: a device of this node's with a key of its
 * own, and each other node as a peer that may send, and gets, what its blocks have. The private key
 * is in the instance's run directory and in the kernel, nowhere else; the public one is in this
 * node's record. What the kernel has is compared with what is known, as routes.c does it.
 */
#include <search.h>

#include "base/log.h"
#include "cluster/priv.h"
#include "config/defaults.h"
#include "datapath/datapath.h"
#include "machine/instance.h"
#include "registry/state.h"

/* What WireGuard puts around a packet, with the headers of IPv6 (of IPv4 it is 20 bytes less). */
#define OVERHEAD  80
#define MTU_USUAL 1420 /* on Ethernet */
#define MTU_MIN	  576  /* as every IPv4 host takes */
#define MTU_MIN6  1280 /* by less the kernel has no IPv6 */
#define MTU_MAX	  65455

#define KEY_FILE_MAX 64

bool tunnel_is_on(const struct cluster *c)
{
	return c->conf.routes == CLUSTER_ROUTES_WIREGUARD;
}

/* --- this node's key --- */

static int make_key(const char *path, uint8_t key[WG_KEY_SIZE], struct error *e)
{
	char text[RECORD_WG_KEY_MAX + 1];
	int r = wg_make_key(key);

	if (r)
		return error_set(e, r, "there is no key for WireGuard: %s", strerror(-r));
	record_wg_key_text(key, text);
	text[RECORD_WG_KEY_MAX - 1] = '\n';
	text[RECORD_WG_KEY_MAX] = 0;
	r = file_replace(path, 0600, text);
	explicit_bzero(text, sizeof(text));
	return r ? error_set(e, r, "WireGuard's key cannot be kept in %s: %s", path, strerror(-r))
		 : 0;
}

/* Made once; whoever deletes the file has another one made. */
static int get_key(const struct agent *a, uint8_t key[WG_KEY_SIZE], struct error *e)
{
	autofree char *text = NULL;
	char path[128];
	int r;

	snprintf(path, sizeof(path), "%s/wireguard.key", a->inst->run_dir);
	r = file_read(path, KEY_FILE_MAX, &text);
	if (r && r != -ENOENT)
		return error_set(e, r, "WireGuard's key %s cannot be read: %s", path, strerror(-r));
	if (r)
		return make_key(path, key, e);
	text[strcspn(text, "\n")] = 0;
	r = record_wg_key_read(text, key);
	explicit_bzero(text, strlen(text));
	return r ? error_set(e, r,
			     "%s is no key of WireGuard's: delete it, and another one is made",
			     path)
		 : 0;
}

/* --- the device --- */

static int no_device(const struct cluster *c, int err, struct error *e)
{
	const char *device = c->a->inst->tunnel_device;

	if (err == -EOPNOTSUPP)
		return error_set(e, err,
				 "this kernel has no WireGuard: load its module (modprobe "
				 "wireguard, "
				 "CONFIG_WIREGUARD), or give all nodes another word than routes: "
				 "wireguard");
	if (err == -EEXIST)
		return error_set(e, err,
				 "there is an interface %s that is not ax's: remove it (ip link "
				 "del %s), or give this agent another --instance",
				 device, device);
	if (err == -EADDRINUSE)
		return error_set(e, err,
				 "WireGuard's UDP port %u is somebody else's: give this node "
				 "another one as cluster.wireguard.port",
				 c->conf.wireguard_port);
	return error_set(e, err, "WireGuard's device %s cannot be set up: %s", device,
			 strerror(-err));
}

/* *made: it was not there. */
static int get_device(struct cluster *c, struct wg_link *l, bool *made)
{
	const char *device = c->a->inst->tunnel_device;
	char alias[160];
	int r = wg_link_find(c->a->nl, device, l);

	*made = r == -ENODEV;
	if (!*made)
		return r ? r : l->ours ? 0 : -EEXIST;
	*l = (struct wg_link){.mtu = MTU_USUAL};
	snprintf(alias, sizeof(alias), "ax, instance %s: to the nodes of cluster %s",
		 c->a->inst->name, c->conf.name);
	return wg_link_add(c->a->nl, device, alias, l->mtu, &l->ifindex);
}

/* In this order nothing comes in by it that is not looked at. */
static int set_up(struct cluster *c, const struct wg_link *l, const uint8_t key[WG_KEY_SIZE])
{
	CLEANUP(wg_device_free) struct wg_device d = {0};
	int r = c->wg ? 0 : wg_open(&c->wg);

	r = r ? r
	      : datapath_tunnel_attach(c->a->dp, c->a->nl, l->ifindex, c->a->inst->route_metric);
	r = r ? r : wg_set(c->wg, l->ifindex, key, c->conf.wireguard_port);
	r = r ? r : wg_link_set(c->a->nl, l->ifindex, l->mtu);
	r = r ? r : wg_read(c->wg, l->ifindex, &d);
	r = r ? r : d.has_key ? 0 : -ENOKEY;
	if (r)
		return r;
	if (c->tunnel_has_key && memcmp(c->tunnel_key, d.key, WG_KEY_SIZE) != 0)
		cluster_at(c, &c->node_at_ns, 0);
	memcpy(c->tunnel_key, d.key, WG_KEY_SIZE);
	c->tunnel_has_key = true;
	c->tunnel_ifindex = l->ifindex;
	c->tunnel_mtu = l->mtu;
	return 0;
}

static int begin(struct cluster *c, const struct wg_link *l, struct error *e)
{
	uint8_t key[WG_KEY_SIZE];
	int r = get_key(c->a, key, e);

	if (r)
		return r;
	r = set_up(c, l, key);
	explicit_bzero(key, sizeof(key));
	return r ? no_device(c, r, e) : 0;
}

int tunnel_begin(struct cluster *c, struct error *e)
{
	struct wg_link l;
	bool made;
	int r;

	if (!tunnel_is_on(c))
		return 0;
	c->tunnel_ifindex = 0;
	r = get_device(c, &l, &made);
	if (r)
		return no_device(c, r, e);
	r = begin(c, &l, e);
	if (r && made)
		nl_link_del(c->a->nl, l.ifindex);
	return r;
}

void tunnel_open(struct agent *a)
{
	if (!a->cluster || !tunnel_is_on(a->cluster))
		wg_link_remove(a->nl, a->inst->tunnel_device);
}

void tunnel_close(struct cluster *c)
{
	wg_close(c->wg);
	c->wg = NULL;
}

/* What the kernel has; whatever somebody has changed about the device itself is put right. */
static int look(struct cluster *c, struct wg_device *d, struct error *e)
{
	struct wg_link l;
	int r = wg_link_find(c->a->nl, c->a->inst->tunnel_device, &l);

	if (!r && l.ours && l.up && l.ifindex == c->tunnel_ifindex) {
		r = wg_read(c->wg, l.ifindex, d);
		if (!r && d->has_key && d->port == c->conf.wireguard_port &&
		    memcmp(d->key, c->tunnel_key, WG_KEY_SIZE) == 0) {
			c->tunnel_mtu = l.mtu;
			return 0;
		}
		wg_device_free(d);
	}
	r = tunnel_begin(c, e);
	if (r)
		return r;
	r = wg_read(c->wg, c->tunnel_ifindex, d);
	return r ? no_device(c, r, e) : 0;
}

/* --- who is to be a peer --- */

struct node_block {
	struct peer_node *node;
	struct prefix prefix;
};

/* A node and its blocks. */
struct want {
	struct peer_node *node;
	size_t at, n; /* of allowed */
};

struct wants {
	struct cluster *c;
	struct cluster *of; /* whose blocks are looked at: it, or a peer of it */
	struct node_block *blocks;
	struct prefix *allowed; /* of all of them, in the same order */
	struct want *v;
	size_t n_blocks, n;
	unsigned mtu; /* the least of the interfaces that lead to them; 0: there is none */
};

static void wants_free(struct wants *w)
{
	free(w->blocks);
	free(w->allowed);
	free(w->v);
}

static void note_block(const void *at, VISIT which, void *arg)
{
	const struct peer_block *b = *(struct peer_block *const *)at;
	struct wants *w = arg;

	if ((which == postorder || which == leaf) && is_others(w->of, b) &&
	    peers_up(w->of, b->node))
		w->blocks[w->n_blocks++] = (struct node_block){b->node, b->rec.prefix};
}

static int allowed_cmp(const void *x, const void *y)
{
	const struct prefix *a = x, *b = y;
	int r = addr_cmp(&a->addr, &b->addr);

	return r ? r : (a->len > b->len) - (a->len < b->len);
}

/* This cluster's own come first. */
static int node_cmp(const struct peer_node *a, const struct peer_node *b)
{
	const struct cluster *x = a->of, *y = b->of;

	if (x != y && (!x->home || !y->home))
		return x->home ? 1 : -1;
	if (x != y)
		return strcmp(x->conf.name, y->conf.name);
	return strcmp(a->rec.name, b->rec.name);
}

static int block_cmp(const void *x, const void *y)
{
	const struct node_block *a = x, *b = y;
	int r = node_cmp(a->node, b->node);

	return r ? r : allowed_cmp(&a->prefix, &b->prefix);
}

static int want_cmp(const void *x, const void *y)
{
	const struct peer_node *a = ((const struct want *)x)->node;
	const struct peer_node *b = ((const struct want *)y)->node;
	int r = memcmp(a->rec.wireguard_key, b->rec.wireguard_key, WG_KEY_SIZE);

	return r ? r : node_cmp(a, b);
}

/* Whether it can be one, as far as its record says; else why not. */
static bool is_possible(struct wants *w, struct peer_node *n)
{
	const struct record_node *rec = &n->rec;
	char *why = n->no_peer, text[ADDR_STRLEN];
	size_t size = sizeof(n->no_peer);
	int r;

	*why = 0;
	if (!rec->has_wireguard) {
		snprintf(why, size,
			 "its node has no WireGuard key in the registry: it needs routes: "
			 "wireguard, too, and an ax that knows the word (it has version %s)",
			 rec->version);
		text_make_printable(why);
		return false;
	}
	if (memcmp(rec->wireguard_key, w->c->tunnel_key, WG_KEY_SIZE) == 0) {
		snprintf(why, size,
			 "its node has the WireGuard key of this one: no two may share one");
		return false;
	}
	r = addr_is_zero(&rec->address) ? -EDESTADDRREQ : routes_hop(w->c, n, false)->none;
	if (r)
		snprintf(why, size, "there is no way to its node's address %s: %s",
			 addr_format(&rec->address, text),
			 r == -EADDRINUSE ? "it is this machine's own"
			 : r == -ELOOP	  ? "it is one of the cluster's pool"
					  : strerror(-r));
	return !r;
}

static void note_mtu(struct wants *w, const struct peer_node *n)
{
	unsigned mtu;

	if (nl_link_mtu(w->c->a->nl, n->hop.to.ifindex, &mtu) == 0 && mtu &&
	    (!w->mtu || mtu < w->mtu))
		w->mtu = mtu;
}

/* Two with one key cannot be told from each other: the one whose name comes first has it. */
static void drop_twins(struct wants *w)
{
	size_t n = 0;

	if (w->n)
		qsort(w->v, w->n, sizeof(*w->v), want_cmp);
	for (size_t i = 0; i < w->n; i++) {
		struct peer_node *node = w->v[i].node, *last = n ? w->v[n - 1].node : NULL;

		if (last &&
		    memcmp(last->rec.wireguard_key, node->rec.wireguard_key, WG_KEY_SIZE) == 0) {
			snprintf(node->no_peer, sizeof(node->no_peer),
				 "its node has the WireGuard key of node %s: no two may share one",
				 last->rec.name);
			continue;
		}
		w->v[n++] = w->v[i];
	}
	w->n = n;
}

static int find_wants(struct wants *w)
{
	size_t room = 1;

	for (const struct cluster *v = w->c; v; v = v->next)
		room += v->peers.n_blocks;

	w->blocks = calloc(room, sizeof(*w->blocks));
	w->allowed = calloc(room, sizeof(*w->allowed));
	w->v = calloc(room, sizeof(*w->v));
	if (!w->blocks || !w->allowed || !w->v)
		return -ENOMEM;
	for (w->of = w->c; w->of; w->of = w->of->next)
		twalk_r(w->of->peers.blocks, note_block, w);
	if (w->n_blocks)
		qsort(w->blocks, w->n_blocks, sizeof(*w->blocks), block_cmp);
	for (size_t i = 0, next; i < w->n_blocks; i = next) {
		struct peer_node *n = w->blocks[i].node;

		for (next = i; next < w->n_blocks && w->blocks[next].node == n; next++)
			w->allowed[next] = w->blocks[next].prefix;
		if (!is_possible(w, n))
			continue;
		note_mtu(w, n);
		w->v[w->n++] = (struct want){.node = n, .at = i, .n = next - i};
	}
	drop_twins(w);
	return 0;
}

/* --- and what differs --- */

static int peer_cmp(const void *x, const void *y)
{
	return memcmp(((const struct wg_peer *)x)->key, ((const struct wg_peer *)y)->key,
		      WG_KEY_SIZE);
}

static void note_stats(struct peer_node *n, const struct wg_peer *has)
{
	n->handshake_s = has ? has->handshake_s : 0;
	n->rx = has ? has->rx : 0;
	n->tx = has ? has->tx : 0;
}

static bool has_same(const struct wg_peer *p, const struct prefix *allowed, size_t n)
{
	if (p->has_others || p->n_allowed != n)
		return false;
	qsort(p->allowed, n, sizeof(*p->allowed), allowed_cmp);
	for (size_t i = 0; i < n; i++)
		if (allowed_cmp(&p->allowed[i], &allowed[i]) != 0)
			return false;
	return true;
}

/* Where the node is the kernel is told once, and when the record says another place: a node that
 * answers from another address of its own is followed there. */
static bool has_moved(const struct peer_node *n, const struct wg_peer *has)
{
	const struct record_node *rec = &n->rec;

	if (!has || addr_is_zero(&has->addr))
		return true;
	if (!n->told_port) /* by an agent before this one */
		return has->port != rec->wireguard_port || !addr_eq(&has->addr, &rec->address);
	return n->told_port != rec->wireguard_port || !addr_eq(&n->told_addr, &rec->address);
}

static void sync_peer(struct wants *w, const struct want *want, const struct wg_peer *has)
{
	struct peer_node *n = want->node;
	struct wg_peer p = {.port = n->rec.wireguard_port,
			    .allowed = &w->allowed[want->at],
			    .n_allowed = want->n};
	bool moved = has_moved(n, has);
	int r = 0;

	memcpy(p.key, n->rec.wireguard_key, WG_KEY_SIZE);
	if (moved)
		p.addr = n->rec.address;
	if (!has || !has_same(has, p.allowed, p.n_allowed))
		r = wg_peer_put(w->c->wg, w->c->tunnel_ifindex, &p);
	else if (moved)
		r = wg_peer_move(w->c->wg, w->c->tunnel_ifindex, &p);
	note_stats(n, has);
	if (r) {
		snprintf(n->no_peer, sizeof(n->no_peer), "WireGuard refuses its node as a peer: %s",
			 strerror(-r));
		n->told_port = 0;
	} else {
		n->told_addr = n->rec.address;
		n->told_port = p.port;
	}
}

static const struct wg_peer *find_peer(const struct wg_device *d, const struct want *want)
{
	struct wg_peer key;

	memcpy(key.key, want->node->rec.wireguard_key, WG_KEY_SIZE);
	return d->n_peers ? bsearch(&key, d->peers, d->n_peers, sizeof(key), peer_cmp) : NULL;
}

static bool is_wanted(const struct wants *w, const struct wg_peer *p)
{
	for (size_t low = 0, high = w->n; low < high;) {
		size_t mid = low + (high - low) / 2;
		int r = memcmp(w->v[mid].node->rec.wireguard_key, p->key, WG_KEY_SIZE);

		if (!r)
			return true;
		if (r < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return false;
}

/* Its packets are to fit those of each interface by which a node is reached. */
static void sync_mtu(struct wants *w)
{
	struct cluster *c = w->c;
	unsigned min = c->conf.pool6.len ? MTU_MIN6 : MTU_MIN;
	unsigned mtu = w->mtu < OVERHEAD + min ? min : w->mtu - OVERHEAD;
	int r;

	mtu = !w->mtu ? MTU_USUAL : mtu > MTU_MAX ? MTU_MAX : mtu;
	if (mtu == c->tunnel_mtu)
		return;
	r = wg_link_set(c->a->nl, c->tunnel_ifindex, mtu);
	if (r)
		log_warn("the cluster %s: the MTU of %s cannot be %u: %s", c->conf.name,
			 c->a->inst->tunnel_device, mtu, strerror(-r));
	else
		c->tunnel_mtu = mtu;
}

/* Whether all that it may send is of other clusters that were not read yet. */
static bool is_unknown(const struct cluster *c, const struct wg_peer *p)
{
	size_t n = 0;

	for (size_t i = 0; i < p->n_allowed; i++)
		for (const struct cluster *v = c->next; v; v = v->next)
			n += !v->was_read && cluster_contains(v, &p->allowed[i].addr);
	return n && n == p->n_allowed;
}

int tunnel_sync(struct cluster *c, struct error *e)
{
	CLEANUP(wg_device_free) struct wg_device d = {0};
	CLEANUP(wants_free) struct wants w = {.c = c};
	int r;

	if (!tunnel_is_on(c))
		return 0;
	r = look(c, &d, e);
	if (r)
		return r;
	r = find_wants(&w);
	if (r)
		return error_set(e, r, "out of memory");
	if (d.n_peers)
		qsort(d.peers, d.n_peers, sizeof(*d.peers), peer_cmp);
	/* (whoever is no peer any more loses its addresses before others get them; before all was
	 * read nobody knows who is not) */
	for (size_t i = 0; i < d.n_peers && c->was_read; i++)
		if (!is_wanted(&w, &d.peers[i]) && !is_unknown(c, &d.peers[i]))
			wg_peer_remove(c->wg, c->tunnel_ifindex, d.peers[i].key);
	for (size_t i = 0; i < w.n; i++)
		sync_peer(&w, &w.v[i], find_peer(&d, &w.v[i]));
	sync_mtu(&w);
	return 0;
}

static void look_at(const void *at, VISIT which, void *arg)
{
	struct peer_node *n = *(struct peer_node *const *)at;
	const struct want want = {.node = n};

	if ((which == postorder || which == leaf) && n->rec.has_wireguard)
		note_stats(n, find_peer(arg, &want));
}

void tunnel_stats(struct cluster *c)
{
	CLEANUP(wg_device_free) struct wg_device d = {0};

	if (!c->tunnel_ifindex || wg_read(c->wg, c->tunnel_ifindex, &d))
		return;
	if (d.n_peers)
		qsort(d.peers, d.n_peers, sizeof(*d.peers), peer_cmp);
	for (const struct cluster *v = c; v; v = v->next)
		twalk_r(v->peers.nodes, look_at, &d);
}
