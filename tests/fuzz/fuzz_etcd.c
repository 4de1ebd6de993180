// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Any bytes as what etcd answers: each kind of answer is refused, or is what it promises to be: all
 * lists are there, all keys have bytes, and a NUL behind them.
 */
#include "etcd/answer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int cond)
{
	if (!cond)
		abort();
}

static void check_kv(const struct etcd_kv *kv)
{
	check(kv->key.data && kv->key.len && kv->mod_revision > 0);
	check(((const char *)kv->key.data)[kv->key.len] == 0);
	check(kv->value.data && ((const char *)kv->value.data)[kv->value.len] == 0);
	check(kv->lease >= 0 && kv->version >= 0 && kv->create_revision >= 0);
}

static void check_answer(const struct answer *a)
{
	size_t in_ops = 0;

	check(strlen(a->message) < sizeof(a->message));
	for (size_t i = 0; i < a->n_kvs; i++)
		check_kv(&a->kvs[i]);
	for (size_t i = 0; i < a->n_ops; i++)
		in_ops += a->ops[i].kvs ? a->ops[i].n : 0;
	check(!a->n_ops || in_ops == a->n_kvs);
	for (size_t i = 0; i < a->n_events; i++) {
		check_kv(&a->events[i].kv);
		check(!i || a->events[i].kv.mod_revision >= a->events[i - 1].kv.mod_revision);
	}
	check(a->head.revision >= 0 && a->compacted >= 0 && a->lease >= 0 && a->ttl_s >= 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int (*const kinds[])(const char *, size_t, struct answer *) = {
		answer_range, answer_txn, answer_lease, answer_watch};
	struct answer a;

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (kinds[i]((const char *)data, size, &a) == 0)
			check_answer(&a);
		answer_free(&a);
	}
	answer_error((const char *)data, size, &a);
	check_answer(&a);
	answer_free(&a);
	return 0;
}
