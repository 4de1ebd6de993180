/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is in the registry is read once, and then told as it changes; after what cannot be told (a
 * compaction, another store) it is read again. */
#include "base/log.h"
#include "cluster/priv.h"

void watch_end(struct cluster *c)
{
	etcd_cancel(c->reading);
	etcd_watch_free(c->watch);
	c->reading = NULL;
	c->watch = NULL;
	c->current = false;
}

static void again(struct cluster *c)
{
	watch_end(c);
	cluster_at(c, &c->read_at_ns, CLUSTER_RETRY_MS / 3);
}

static void on_news(void *arg, const struct etcd_news *news)
{
	struct cluster *c = arg;

	switch (news->kind) {
	case ETCD_NEWS_EVENTS:
		for (size_t i = 0; i < news->n; i++) {
			if (news->events[i].deleted)
				peers_delete(c, &news->events[i].kv);
			else
				peers_put(c, &news->events[i].kv);
		}
		peers_settle(c);
		configs_settle(c);
		blocks_sync(c);
		break;
	case ETCD_NEWS_CURRENT:
		c->current = true;
		blocks_sync(c);
		break;
	case ETCD_NEWS_BROKEN:
		c->current = false;
		break;
	case ETCD_NEWS_GAP:
		log_info("the cluster %s is read anew: %s", c->conf.name, news->why);
		again(c);
		break;
	}
}

static void on_page(void *arg, int err, const struct etcd_page *page, const char *error)
{
	struct cluster *c = arg;
	char root[RECORD_KEY_MAX];

	if (err) {
		c->reading = NULL;
		if (err != -EHOSTUNREACH)
			log_warn("the cluster %s cannot be read: %s", c->conf.name, error);
		again(c);
		return;
	}
	for (size_t i = 0; i < page->n; i++)
		peers_put(c, &page->kvs[i]);
	if (page->more)
		return;
	c->reading = NULL;
	c->was_read = true;
	peers_read(c);
	configs_read(c);
	configs_settle(c);
	routes_stale(c);
	if (etcd_watch_open(c->etcd, bytes_of(record_root(c->conf.name, root)), true,
			    page->revision + 1, on_news, c, &c->watch))
		again(c);
	blocks_sync(c);
	translate_want_key(c);
	cluster_apps_changed(c->a);
}

void watch_begin(struct cluster *c)
{
	char root[RECORD_KEY_MAX];
	struct etcd_range all = {.key = bytes_of(record_root(c->conf.name, root)), .prefix = true};

	if (!c->etcd || c->reading || c->watch)
		return;
	c->peers.read++;
	translate_read(c);
	if (etcd_range(c->etcd, &all, on_page, c, &c->reading))
		cluster_at(c, &c->read_at_ns, CLUSTER_RETRY_MS);
}
