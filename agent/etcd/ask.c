// SPDX-License-Identifier: GPL-2.0-or-later
/* Ranges and transactions. */
#include "etcd/priv.h"

/* Before each page etcd 3.4 looks at all keys that are left, and the loop is held by a page while
 * it is read (27 us a key). */
#define PAGE 1000

static bool is_key(struct etcd_bytes key, bool may_be_empty)
{
	return key.len <= ETCD_MAX_KEY && (key.len || may_be_empty);
}

/* --- ranges --- */

struct range {
	struct etcd_range what; /* its key is behind it */
	unsigned limit;
	int64_t revision; /* of the first page */
	uint64_t cluster;
	uint8_t key[];
};

static bool range_again(struct etcd_request *r, const struct etcd_bytes *from)
{
	struct range *g = r->range;

	free(r->body);
	r->body = body_range(&g->what, from, g->revision, g->limit, &r->len);
	if (r->body)
		return true;
	r->page(r->arg, -ENOMEM, NULL, "out of memory");
	return false;
}

/* The next page begins behind the last key: with it and a NUL. */
static bool next_page(struct etcd_request *r, const struct answer *a)
{
	const struct etcd_bytes *last = &a->kvs[a->n_kvs - 1].key;
	struct etcd_bytes from = {last->data, last->len + 1}; /* the NUL stands there */

	return range_again(r, &from);
}

static bool give_page(struct etcd_request *r, const struct answer *a)
{
	struct range *g = r->range;
	struct etcd_page page = {.kvs = a->kvs, .n = a->n_kvs, .more = a->more};

	if (g->cluster && g->cluster != a->head.cluster) {
		r->page(r->arg, -ESTALE, NULL, "the endpoints are not of one cluster");
		return false;
	}
	g->cluster = a->head.cluster;
	if (!g->revision)
		g->revision = a->head.revision;
	page.revision = g->revision;
	r->page(r->arg, 0, &page, NULL);
	return a->more && !r->cancelled && !r->e->closed && next_page(r, a);
}

/* A smaller page may fit. After the first one the place to go on from is in the body, and stays. */
static bool range_too_large(struct etcd_request *r)
{
	struct range *g = r->range;

	if (g->limit <= 1 || g->revision != g->what.revision)
		return false;
	g->limit = g->limit > 8 ? g->limit / 8 : 1;
	return range_again(r, NULL);
}

static bool range_over(struct etcd_request *r, int err, const char *text, size_t len,
		       const char *error)
{
	struct answer a = {0};
	bool goes_on = false;

	if (!err)
		err = request_parsed(r, answer_range(text, len, &a), &a, &error);
	if (!err)
		goes_on = give_page(r, &a);
	else if (err == -EMSGSIZE && range_too_large(r))
		goes_on = true;
	else
		r->page(r->arg, err, NULL, error);
	answer_free(&a);
	return goes_on;
}

int etcd_range(struct etcd *e, const struct etcd_range *what, etcd_page_fn done, void *arg,
	       struct etcd_request **ret)
{
	struct etcd_request r = {
		.path = "/v3/kv/range",
		.any_member = what->any_member,
		.over = range_over,
		.page = done,
		.arg = arg,
	};
	struct range *g;
	int err;

	if (!is_key(what->key, what->prefix) || what->revision < 0)
		return -EINVAL;
	g = calloc(1, sizeof(*g) + what->key.len);
	if (!g)
		return -ENOMEM;
	g->what = *what;
	if (what->key.len)
		memcpy(g->key, what->key.data, what->key.len);
	g->what.key.data = g->key;
	g->limit = what->page ? what->page : PAGE;
	g->revision = what->revision;
	r.range = g;
	r.body = body_range(&g->what, NULL, g->revision, g->limit, &r.len);
	err = request_start(e, &r, ret);
	if (err)
		free(g);
	return err;
}

/* --- transactions --- */

bool request_done(struct etcd_request *r, int err, const char *text, size_t len, const char *error)
{
	struct answer a = {0};
	struct etcd_answer answer;

	if (!err)
		err = request_parsed(r, answer_txn(text, len, &a), &a, &error);
	answer = (struct etcd_answer){.revision = a.head.revision,
				      /* what ends a lease compares nothing */
				      .succeeded = a.succeeded || !starts_with(r->path, "/v3/kv/"),
				      .ops = a.ops,
				      .n_ops = a.n_ops};
	if (r->done)
		r->done(r->arg, err, err ? NULL : &answer, error);
	answer_free(&a);
	return false;
}

/* Adds up what is sent. */
static bool ops_are_right(const struct etcd_op *ops, size_t n, size_t *size)
{
	for (size_t i = 0; i < n; i++) {
		if (ops[i].kind > ETCD_GET || ops[i].lease < 0 ||
		    !is_key(ops[i].key, ops[i].kind != ETCD_PUT && ops[i].prefix))
			return false;
		*size += ops[i].key.len + (ops[i].kind == ETCD_PUT ? ops[i].value.len : 0);
	}
	return true;
}

static bool compares_are_right(const struct etcd_txn *t, size_t *size)
{
	for (size_t i = 0; i < t->n_compares; i++) {
		const struct etcd_compare *c = &t->compares[i];

		if (c->target > ETCD_VALUE || c->relation > ETCD_GREATER || c->number < 0 ||
		    !is_key(c->key, false))
			return false;
		*size += c->key.len + (c->target == ETCD_VALUE ? c->value.len : 0);
	}
	return true;
}

int etcd_txn(struct etcd *e, const struct etcd_txn *t, etcd_done_fn done, void *arg,
	     struct etcd_request **ret)
{
	struct etcd_request r = {
		.path = "/v3/kv/txn",
		.once = !t->twice,
		.over = request_done,
		.done = done,
		.arg = arg,
	};
	size_t size = 0;

	if (!compares_are_right(t, &size) || !ops_are_right(t->success, t->n_success, &size) ||
	    !ops_are_right(t->failure, t->n_failure, &size))
		return -EINVAL;
	if (size > MAX_REQUEST)
		return -EMSGSIZE;
	r.body = body_txn(t, &r.len);
	return request_start(e, &r, ret);
}

static int one_op(struct etcd *e, const struct etcd_op *op, etcd_done_fn done, void *arg,
		  struct etcd_request **ret)
{
	struct etcd_txn t = {.success = op, .n_success = 1, .twice = true};

	return etcd_txn(e, &t, done, arg, ret);
}

int etcd_put(struct etcd *e, struct etcd_bytes key, struct etcd_bytes value, int64_t lease,
	     etcd_done_fn done, void *arg, struct etcd_request **ret)
{
	struct etcd_op op = {.kind = ETCD_PUT, .key = key, .value = value, .lease = lease};

	return one_op(e, &op, done, arg, ret);
}

int etcd_delete(struct etcd *e, struct etcd_bytes key, bool prefix, etcd_done_fn done, void *arg,
		struct etcd_request **ret)
{
	struct etcd_op op = {.kind = ETCD_DELETE, .key = key, .prefix = prefix};

	return one_op(e, &op, done, arg, ret);
}
