/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The config that all nodes have besides their own: stored by whoever applies one, read by all, and
 * each says of itself which one holds there. */
#include <sys/random.h>
#include <time.h>

#include "base/log.h"
#include "base/work.h"
#include "cluster/priv.h"
#include "registry/state.h"

#define KEPT	   10 /* revisions */
#define KNOWN_MAX  64 /* whatever somebody writes */
#define AGAIN_MS   2000
#define DELETE_MAX 16

struct config_store {
	cluster_stored_fn done;
	void *arg;
	struct record_config rec;
};

/* --- what there is --- */

static struct record_config *find(const struct cluster *c, int64_t revision)
{
	for (size_t i = 0; i < c->n_configs; i++)
		if (c->configs[i].revision == revision)
			return &c->configs[i];
	return NULL;
}

static void forget(struct cluster *c, size_t i)
{
	record_config_free(&c->configs[i]);
	memmove(&c->configs[i], &c->configs[i + 1], (c->n_configs - i - 1) * sizeof(*c->configs));
	c->n_configs--;
}

/* In order; takes what rec has. */
static int add(struct cluster *c, struct record_config *rec)
{
	struct record_config *more = reallocarray(c->configs, c->n_configs + 1, sizeof(*more));
	size_t at = c->n_configs;

	if (!more)
		return -ENOMEM;
	c->configs = more;
	for (; at && more[at - 1].revision > rec->revision; at--)
		more[at] = more[at - 1];
	more[at] = *rec;
	*rec = (struct record_config){0};
	c->n_configs++;
	if (c->n_configs > KNOWN_MAX)
		forget(c, 0);
	return 0;
}

int configs_put(struct cluster *c, const struct etcd_kv *kv, struct error *e)
{
	CLEANUP(record_config_free) struct record_config rec = {0};
	char key[RECORD_KEY_MAX];
	struct record_config *old;
	int r = record_config_read(kv->value.data, kv->value.len, &rec, e);

	if (r)
		return r;
	record_config_key(c->conf.name, rec.revision, key);
	if (kv->key.len != strlen(key) || memcmp(kv->key.data, key, kv->key.len) != 0)
		return error_set(e, -EINVAL, "it speaks of something else");
	rec.read = c->read_anew;
	old = find(c, rec.revision);
	if (old)
		forget(c, (size_t)(old - c->configs));
	return add(c, &rec) ? error_set(e, -ENOMEM, "out of memory") : 0;
}

int configs_now_put(struct cluster *c, const struct etcd_kv *kv, struct error *e)
{
	int64_t now;
	int r = record_config_now_read(kv->value.data, kv->value.len, &now, e);

	if (r)
		return r;
	if (kv->mod_revision < c->config_mod && c->config_read == c->read_anew)
		return 0; /* this node has stored a newer one meanwhile */
	c->config_now = now;
	c->config_mod = kv->mod_revision;
	c->config_read = c->read_anew;
	return 0;
}

/* (which one holds is what was said last, also if nobody says it any more) */
void configs_deleted(struct cluster *c, const struct etcd_kv *kv)
{
	char key[RECORD_KEY_MAX];

	if (record_kind(c->conf.name, kv->key.data, kv->key.len) == RECORD_CONFIG_NOW) {
		c->config_mod = 0;
		return;
	}
	for (size_t i = c->n_configs; i-- > 0;) {
		record_config_key(c->conf.name, c->configs[i].revision, key);
		if (kv->key.len == strlen(key) && memcmp(kv->key.data, key, kv->key.len) == 0)
			forget(c, i);
	}
}

void configs_read(struct cluster *c)
{
	if (c->config_read != c->read_anew)
		c->config_mod = 0;
	for (size_t i = c->n_configs; i-- > 0;)
		if (c->configs[i].read != c->read_anew)
			forget(c, i);
}

/* --- what holds here --- */

static bool holds(const struct cluster *c, const struct record_config *rec)
{
	return c->config_has == rec->revision && streq(c->config_id, rec->id);
}

static void took(struct cluster *c, const struct shared_source *source)
{
	c->config_has = source->revision;
	snprintf(c->config_id, sizeof(c->config_id), "%s", source->id);
	c->config_why[0] = 0;
}

static void failed(struct cluster *c, const struct shared_source *source, const char *why)
{
	char text[sizeof(c->config_why)];

	snprintf(text, sizeof(text), "revision %lld: %.120s", (long long)source->revision, why);
	text_make_printable(text);
	if (!streq(text, c->config_why))
		log_error("the cluster %s: its config cannot be applied here, %s", c->conf.name,
			  text);
	memcpy(c->config_why, text, sizeof(text));
	memcpy(c->config_failed, source->id, sizeof(c->config_failed));
	c->config_again_ns = time_mono_ns() + AGAIN_MS * NS_PER_MS;
	cluster_at(c, &c->config_at_ns, AGAIN_MS);
}

/* Between two slices of it others come in: what the cluster has may be another afterwards. */
static void apply(void *arg)
{
	struct agent *a = arg;
	struct cluster *c = a->cluster;
	const struct record_config *want = find(c, c->config_now);
	autofree char *text = want ? strdup(want->text) : NULL;
	struct shared_source source = {.text = text, .revision = c->config_now};
	const int64_t had = c->config_has;
	char why[sizeof(c->config_why)];
	struct error e = {0};

	memcpy(why, c->config_why, sizeof(why));
	if (text) {
		snprintf(source.id, sizeof(source.id), "%s", want->id);
		snprintf(source.cluster, sizeof(source.cluster), "%s", c->conf.name);
		if (a->hooks.shared_config(a, &source, &e)) {
			failed(c, &source, e.text);
		} else {
			took(c, &source);
			log_info("the cluster %s: revision %lld of its config holds", c->conf.name,
				 (long long)source.revision);
		}
	}
	c->config_applying = false;
	/* (each try that fails would be news for all nodes) */
	if (c->config_has != had || !streq(c->config_why, why))
		node_write(c);
	configs_settle(c);
}

void configs_settle(struct cluster *c)
{
	const struct record_config *want = find(c, c->config_now);

	if (!want || c->config_applying)
		return;
	if (holds(c, want)) {
		if (c->config_why[0]) { /* of one that was taken back */
			c->config_why[0] = 0;
			node_write(c);
		}
		return;
	}
	if (streq(want->id, c->config_failed) && time_mono_ns() < c->config_again_ns)
		return;
	c->config_applying = !work_start(c->a->work, 0, apply, c->a);
	if (!c->config_applying)
		cluster_at(c, &c->config_at_ns, CLUSTER_RETRY_MS);
}

void cluster_config_holds(struct agent *a, const struct shared_source *source)
{
	if (a->cluster && source)
		took(a->cluster, source);
}

void configs_free(struct cluster *c)
{
	while (c->n_configs)
		forget(c, c->n_configs - 1);
	free(c->configs);
	c->configs = NULL;
}

/* --- storing one --- */

static void end(struct cluster *c, int err, int64_t revision, const char *why)
{
	struct config_store *s = c->storing;

	c->storing = NULL;
	if (s->done)
		s->done(s->arg, err, revision, why);
	record_config_free(&s->rec);
	free(s);
}

void configs_stop(struct cluster *c, bool tell)
{
	if (!c->storing)
		return;
	if (!tell)
		c->storing->done = NULL;
	end(c, -EHOSTUNREACH, 0,
	    "the way to etcd is another now: whether it was stored says 'ax config history "
	    "--cluster'");
}

/* The next one may come before the watch tells of this; it may have told of a later one. */
static void stored(struct cluster *c, int64_t revision, int64_t mod)
{
	if (mod > c->config_mod) {
		c->config_now = revision;
		c->config_mod = mod;
	}
	end(c, 0, revision, NULL);
}

/* Its place was taken, by somebody else or by this one, whose answer did not come. */
static void place_is_taken(struct cluster *c, const struct etcd_answer *answer)
{
	const struct etcd_op_answer *got = answer->n_ops ? &answer->ops[0] : NULL;
	CLEANUP(record_config_free) struct record_config rec = {0};
	struct error e = {0};
	char text[320];

	if (!got || !got->n) {
		end(c, -EAGAIN, 0,
		    "another config came in between, or this node's lease has ended: nothing was "
		    "stored, see 'ax config history --cluster', and apply it again");
		return;
	}
	if (record_config_read(got->kvs[0].value.data, got->kvs[0].value.len, &rec, &e) == 0 &&
	    streq(rec.id, c->storing->rec.id)) {
		stored(c, rec.revision, got->kvs[0].mod_revision);
		return;
	}
	snprintf(
		text, sizeof(text),
		"somebody else has applied a config as revision %lld at the same time, on the node "
		"%s: nothing was stored, see 'ax config history --cluster', and apply it again",
		(long long)c->storing->rec.revision, rec.node[0] ? rec.node : "?");
	end(c, -EAGAIN, 0, text);
}

static void on_stored(void *arg, int err, const struct etcd_answer *answer, const char *error)
{
	struct cluster *c = arg;
	char text[320];

	if (err) {
		snprintf(text, sizeof(text),
			 "etcd has not answered (%.150s): whether it was stored says 'ax config "
			 "history --cluster'",
			 error);
		end(c, err, 0, text);
	} else if (answer->succeeded) {
		stored(c, c->storing->rec.revision, answer->revision);
	} else {
		place_is_taken(c, answer);
	}
}

/* All that is older than the last ten. */
static size_t delete_old(const struct cluster *c, int64_t revision, char (*keys)[RECORD_KEY_MAX],
			 struct etcd_op *ops)
{
	size_t n = 0;

	for (size_t i = 0; i < c->n_configs && n < DELETE_MAX; i++) {
		if (c->configs[i].revision > revision - KEPT)
			break;
		record_config_key(c->conf.name, c->configs[i].revision, keys[n]);
		ops[n] = (struct etcd_op){.kind = ETCD_DELETE, .key = bytes_of(keys[n])};
		n++;
	}
	return n;
}

static int send_config(struct cluster *c, const struct record_config *rec)
{
	char key[RECORD_KEY_MAX], now[RECORD_KEY_MAX], node[RECORD_KEY_MAX];
	char old[DELETE_MAX][RECORD_KEY_MAX];
	autofree char *text = record_config_text(rec);
	autofree char *pointer = record_config_now_text(rec->revision);
	const struct etcd_compare compares[] = {
		{.key = bytes_of(record_config_now_key(c->conf.name, now)),
		 .target = ETCD_MOD_REVISION,
		 .number = c->config_mod},
		{.key = bytes_of(record_config_key(c->conf.name, rec->revision, key)),
		 .target = ETCD_VERSION},
		{.key = bytes_of(record_node_key(c->conf.name, c->node, node)),
		 .target = ETCD_LEASE,
		 .number = c->lease_id},
	};
	struct etcd_op ops[2 + DELETE_MAX] = {
		{.kind = ETCD_PUT, .key = bytes_of(now), .value = bytes_of(pointer ? pointer : "")},
		{.kind = ETCD_PUT, .key = bytes_of(key), .value = bytes_of(text ? text : "")},
	};
	const struct etcd_op get = {.kind = ETCD_GET, .key = bytes_of(key)};
	const struct etcd_txn t = {.compares = compares,
				   .n_compares = ARRAY_SIZE(compares),
				   .success = ops,
				   .n_success = 2 + delete_old(c, rec->revision, old, ops + 2),
				   .failure = &get,
				   .n_failure = 1,
				   .twice = true}; /* (what is found is one's own then) */

	return text && pointer ? etcd_txn(c->etcd, &t, on_stored, c, NULL) : -ENOMEM;
}

static int64_t next_revision(const struct cluster *c)
{
	int64_t last = c->config_now > c->config_has ? c->config_now : c->config_has;

	if (c->n_configs && c->configs[c->n_configs - 1].revision > last)
		last = c->configs[c->n_configs - 1].revision;
	return last + 1;
}

static int fill(const struct cluster *c, const char *text, int64_t of, struct record_config *rec)
{
	unsigned char random[RECORD_ID_LEN / 2];

	if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return -errno;
	for (size_t i = 0; i < sizeof(random); i++)
		snprintf(rec->id + 2 * i, 3, "%02x", random[i]);
	snprintf(rec->node, sizeof(rec->node), "%s", c->node);
	rec->revision = next_revision(c);
	rec->at = time(NULL);
	rec->of = of;
	rec->text = strdup(text);
	return rec->text ? 0 : -ENOMEM;
}

static int may_store(const struct cluster *c, struct error *e)
{
	if (!c)
		return error_set(e, -ENOENT,
				 "this node is in no cluster: see CLUSTER in ax.yaml(5)");
	if (c->storing)
		return error_set(e, -EBUSY, "this node is applying one to the cluster already");
	if (!c->registered || !c->current)
		return error_set(
			e, -EHOSTUNREACH,
			"this node is not connected to the cluster %s: nothing was stored, "
			"see 'ax status'",
			c->conf.name);
	return 0;
}

int cluster_config_store(struct agent *a, const char *text, int64_t of, cluster_stored_fn done,
			 void *arg, struct error *e)
{
	struct cluster *c = a->cluster;
	struct config_store *s;
	int r = may_store(c, e);

	if (r)
		return r;
	s = calloc(1, sizeof(*s));
	r = s ? fill(c, text, of, &s->rec) : -ENOMEM;
	r = r ? r : send_config(c, &s->rec);
	if (r) {
		if (s)
			record_config_free(&s->rec);
		free(s);
		return error_set(e, r, "it cannot be stored: %s", strerror(-r));
	}
	s->done = done;
	s->arg = arg;
	c->storing = s;
	return 0;
}

/* --- what was stored --- */

const char *cluster_config_text(const struct agent *a, int64_t *revision, struct error *e)
{
	const struct cluster *c = a->cluster;
	const struct record_config *rec = NULL;

	if (!c) {
		may_store(c, e);
		return NULL;
	}
	for (size_t i = 0; !*revision && i < c->n_configs; i++)
		if (c->configs[i].revision < c->config_now)
			rec = &c->configs[i];
	if (*revision)
		rec = find(c, *revision);
	if (rec) {
		*revision = rec->revision;
		return rec->text;
	}
	error_set(e, -ENOENT, "there is no %s revision: see 'ax config history --cluster'",
		  *revision ? "such" : "earlier");
	return NULL;
}

json_t *cluster_config_history(const struct agent *a)
{
	const struct cluster *c = a->cluster;
	json_t *list = json_array();

	for (size_t i = c ? c->n_configs : 0; i-- > 0;) {
		const struct record_config *rec = &c->configs[i];
		json_t *one = json_pack("{sI sI ss sb sb}", "revision", (json_int_t)rec->revision,
					"at", (json_int_t)rec->at, "node", rec->node, "current",
					rec->revision == c->config_now, "holds", holds(c, rec));

		if (one && rec->of)
			json_object_set_new(one, "of", json_integer((json_int_t)rec->of));
		json_array_append_new(list, one);
	}
	return list;
}
