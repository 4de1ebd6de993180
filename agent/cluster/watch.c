/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is in the registry is read once, and then told as it changes; after what cannot be told (a
 * compaction, another store) it is read again. From time to time it is looked through all the same:
 * etcd has lost deletions when it was compacted (its issue 18089). */
#include <sys/random.h>

#include "base/log.h"
#include "cluster/priv.h"
#include "registry/state.h"

#define LOOK_MS	      (10 * 60 * 1000)
#define LOOK_SOON_MS  1000
#define LOOK_RETRY_MS 10000
/* Another cluster that takes too much of this node's time; a third: that is not what it is to be.
 */
#define FOREIGN_REST_MS 30000
#define FOREIGN_PAGE	100 /* keys */
/* That is so much work for etcd, which all nodes together give it no more often. */
#define LOOK_KEYS_PER_MS 10

static void not_current(struct cluster *c)
{
	if (c->current)
		c->known_ns = time_mono_ns();
	c->current = false;
}

void watch_end(struct cluster *c)
{
	etcd_cancel(c->reading);
	etcd_watch_free(c->watch);
	c->reading = NULL;
	c->watch = NULL;
	not_current(c);
}

static void again_in(struct cluster *c, uint64_t ms)
{
	watch_end(c);
	cluster_at(c, &c->read_at_ns, ms);
}

/* (others are asked less) */
static void again(struct cluster *c)
{
	again_in(c, c->home ? CLUSTER_RETRY_MS : CLUSTER_RETRY_MS / 3);
}

/* Something of it was worked on. True: nothing more is read for a while. */
static bool is_too_much(struct cluster *c, uint64_t began_ns)
{
	if (!c->home || !foreign_spent(c, began_ns))
		return false;
	again_in(c, FOREIGN_REST_MS);
	return true;
}

static void take_events(struct cluster *c, const struct etcd_news *news)
{
	uint64_t began = time_mono_ns();

	for (size_t i = 0; i < news->n; i++) {
		if (news->events[i].deleted)
			peers_delete(c, &news->events[i].kv);
		else
			peers_put(c, &news->events[i].kv);
	}
	if (news->revision > c->revision)
		c->revision = news->revision;
	peers_settle(c);
	if (c->home) {
		if (!is_too_much(c, began) && c->pool_wrong)
			again(c);
		return;
	}
	configs_settle(c);
	blocks_sync(c);
}

static void on_news(void *arg, const struct etcd_news *news)
{
	struct cluster *c = arg;

	switch (news->kind) {
	case ETCD_NEWS_EVENTS:
		take_events(c, news);
		break;
	case ETCD_NEWS_CURRENT:
		c->current = true;
		blocks_sync(c);
		break;
	case ETCD_NEWS_BROKEN:
		not_current(c);
		break;
	case ETCD_NEWS_GAP:
		log_info("the cluster %s is read anew: %s", c->conf.name, news->why);
		again(c);
		break;
	}
}

/* Between three and five quarters of it, that nodes do not all ask at once. */
static uint64_t about(uint64_t ms)
{
	uint32_t random = 0;

	if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
		random = 1u << 31;
	return ms * 3 / 4 + ms / 2 * (random >> 16) / 65536;
}

static void look_later(struct cluster *c)
{
	const struct peers *p = &c->peers;
	uint64_t keys = (uint64_t)p->n_apps + p->n_blocks + p->n_nodes;
	uint64_t all = keys * p->n_nodes / LOOK_KEYS_PER_MS;

	cluster_at(c, &c->look_at_ns, about(all > LOOK_MS ? all : LOOK_MS));
}

/* What is for this node of its own cluster alone. */
static void own_read(struct cluster *c)
{
	addresses_read(c);
	configs_read(c);
	configs_settle(c);
}

static void on_page(void *arg, int err, const struct etcd_page *page, const char *error)
{
	struct cluster *c = arg;
	char root[RECORD_KEY_MAX];
	uint64_t began;

	if (err) {
		c->reading = NULL;
		if (c->home)
			snprintf(c->not_read, sizeof(c->not_read), "%s", error);
		if (err != -EHOSTUNREACH && foreign_may_complain(c))
			log_warn("the cluster %s cannot be read: %s", c->conf.name, error);
		again(c);
		return;
	}
	began = time_mono_ns();
	for (size_t i = 0; i < page->n; i++)
		peers_put(c, &page->kvs[i]);
	if (is_too_much(c, began) || page->more)
		return;
	c->reading = NULL;
	c->was_read = true;
	missing_read(c, page->revision);
	remember(c);
	if (!c->home)
		own_read(c);
	routes_stale(c);
	if (etcd_watch_open(c->etcd, bytes_of(record_root(c->conf.name, root)), true,
			    page->revision + 1, on_news, c, &c->watch))
		again(c);
	look_later(c);
	if (c->home)
		return;
	blocks_sync(c);
	translate_want_key(c);
	cluster_apps_changed(c->a);
}

static void ask_pool(struct cluster *c);

static void read_all(struct cluster *c)
{
	char root[RECORD_KEY_MAX];
	struct etcd_range all = {.key = bytes_of(record_root(c->conf.name, root)),
				 .prefix = true,
				 .page = c->home ? FOREIGN_PAGE : 0};

	c->peers.read++;
	c->read_anew++;
	translate_read(c);
	if (etcd_range(c->etcd, &all, on_page, c, &c->reading))
		cluster_at(c, &c->read_at_ns, CLUSTER_RETRY_MS);
}

void watch_begin(struct cluster *c)
{
	if (!c->etcd || c->reading || c->watch)
		return;
	if (c->home)
		ask_pool(c);
	else
		read_all(c);
}

/* --- beside the watch --- */

void watch_look_soon(struct cluster *c)
{
	cluster_at(c, &c->look_at_ns, about(LOOK_SOON_MS));
}

static void on_look(void *arg, int err, const struct etcd_page *page, const char *error)
{
	struct cluster *c = arg;
	uint64_t began = time_mono_ns();

	(void)error; /* nothing is amiss as long as the watch is there */
	if (err) {
		c->reading = NULL;
		cluster_at(c, &c->look_at_ns, about(LOOK_RETRY_MS));
		return;
	}
	for (size_t i = 0; i < page->n; i++)
		peers_seen(c, &page->kvs[i]);
	if (is_too_much(c, began) || page->more)
		return;
	c->reading = NULL;
	missing_read(c, page->revision);
	look_later(c);
}

static void look_all(struct cluster *c)
{
	char root[RECORD_KEY_MAX];
	struct etcd_range all = {.key = bytes_of(record_root(c->conf.name, root)),
				 .prefix = true,
				 .page = c->home ? FOREIGN_PAGE : 0};

	c->peers.read++;
	c->peers.told_gone = false;
	if (etcd_range(c->etcd, &all, on_look, c, &c->reading))
		cluster_at(c, &c->look_at_ns, about(LOOK_RETRY_MS));
}

void watch_look(struct cluster *c)
{
	if (!c->etcd || !c->current || c->reading)
		cluster_at(c, &c->look_at_ns, about(LOOK_RETRY_MS));
	else if (c->home)
		ask_pool(c);
	else
		look_all(c);
}

/* --- another cluster's store --- */

static void on_pool(void *arg, int err, const struct etcd_page *page, const char *error)
{
	struct cluster *c = arg;

	c->reading = NULL;
	if (err)
		snprintf(c->not_read, sizeof(c->not_read), "%s", error);
	else
		foreign_pool_read(c, page->n ? &page->kvs[0] : NULL);
	if (err && !c->watch)
		again(c);
	else if (err)
		cluster_at(c, &c->look_at_ns, about(LOOK_RETRY_MS));
	else if (c->pool_wrong)
		again_in(c, FOREIGN_REST_MS / 3);
	else if (c->watch)
		look_all(c);
	else
		read_all(c);
}

/* Before anything else: a store without the cluster's pool, or with another one, is none of its. */
static void ask_pool(struct cluster *c)
{
	char key[RECORD_KEY_MAX];
	struct etcd_range pool = {.key = bytes_of(record_pool_key(c->conf.name, true, key))};

	if (etcd_range(c->etcd, &pool, on_pool, c, &c->reading))
		cluster_at(c, c->watch ? &c->look_at_ns : &c->read_at_ns, CLUSTER_RETRY_MS);
}
