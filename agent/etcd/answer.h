/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What etcd answers: outside input. A parsed answer owns all that it points to. */
#ifndef AX_ETCD_ANSWER_H
#define AX_ETCD_ANSWER_H

#include "etcd/etcd.h"

struct answer_head {
	uint64_t cluster, member; /* 0: not said */
	int64_t revision;	  /* of the store; 0: not said */
};

struct answer {
	struct answer_head head;
	struct etcd_kv *kvs; /* of a range, or of all operations of a transaction */
	size_t n_kvs;
	bool more;
	bool succeeded;
	struct etcd_op_answer *ops;
	size_t n_ops;
	int64_t lease, ttl_s; /* ttl_s 0: there is no such lease (any more) */
	/* one message of a watch */
	bool created, canceled, fragment;
	int64_t compacted; /* nothing before that revision is there any more */
	struct etcd_event *events;
	size_t n_events;
	/* what a message of a stream says instead */
	int code; /* of gRPC, 0: none */
	char message[256];
	char *bytes; /* of keys and values */
	size_t used, size;
};

/* A line of a stream has its answer in `result`, or is an error. Returns 0, -EPROTO or -ENOMEM; all
 * have to be freed with answer_free(), whatever is returned. */
int answer_range(const char *text, size_t len, struct answer *ret);
int answer_txn(const char *text, size_t len, struct answer *ret);
int answer_lease(const char *text, size_t len,
		 struct answer *ret); /* of grant, keepalive, revoke */
int answer_watch(const char *text, size_t len, struct answer *ret);
/* Of an error: code and message, which are 0 and "" if it says none. */
void answer_error(const char *text, size_t len, struct answer *ret);
void answer_free(struct answer *a);

#endif
