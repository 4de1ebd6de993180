/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A client of etcd's v3 JSON gateway in the agent's loop: ranges, transactions, leases that keep
 * themselves alive, watches that go on by themselves after whatever happens to a member.
 *
 * One endpoint at a time is asked. When it does not answer, has no leader, or its certificate is
 * wrong, the next one is, and after a round through all of them there is a pause that grows (with
 * jitter, up to 5 s). Watches and leases go on for ever; a request is tried again until its time is
 * over, but one that writes only as long as none of its bytes have left (see `twice`).
 *
 * Keys and values are bytes with a length. What is handed in is copied; what a callback is given is
 * lent until it returns, and text always ends with a NUL. Revisions, versions and ids of leases are
 * etcd's, in host byte order. Callbacks come from etcd_on_socket() and etcd_on_timer(), never from
 * within another call, and may call anything here, etcd_close() included. After a cancel, a free or
 * etcd_close() nothing of what it ended is called.
 *
 * Errors, as callbacks get them (with one sentence):
 *   -EHOSTUNREACH  no endpoint could do it in time: nothing was written
 *   -ETIMEDOUT     it was sent and no answer came: whether it was done is not known
 *   -ESTALE        the revision has been compacted: read anew
 *   -ENOENT        there is no such lease
 *   -ENOSPC        etcd's disk quota is exceeded: it takes deletes only, until somebody helps it
 *   -EACCES        etcd wants a user, or another
 *   -EMSGSIZE      the request or the answer is too large
 *   -EINVAL        etcd says that the request is wrong
 *   -EPROTO        the answer cannot be understood
 */
#ifndef AX_ETCD_ETCD_H
#define AX_ETCD_ETCD_H

#include "base/loop.h"
#include "base/util.h"

struct etcd;	     /* one cluster */
struct etcd_request; /* gone when its (last) callback returns */
struct etcd_lease;
struct etcd_watch;

#define ETCD_MAX_KEY 4096 /* bytes; a longer one is -EINVAL */

struct etcd_bytes {
	const void *data; /* may hold any byte; never NULL in what callbacks get */
	size_t len;
};

struct etcd_kv {
	struct etcd_bytes key, value; /* value: empty with keys_only, and of a delete */
	int64_t create_revision, mod_revision, version;
	int64_t lease; /* 0: none */
};

/* --- the client --- */

struct etcd_options {
	const char *const *endpoints; /* https://ADDRESS:PORT or http://...: what it says holds */
	size_t n_endpoints;	      /* 1 to 64 */
	const char *ca; /* file of certificates; NULL: the system's. Https is always verified */
	const char *cert, *key; /* files; NULL: the client has none */
	unsigned connect_ms;	/* for a connection with its handshake; 0: 2,000 */
	unsigned attempt_ms;	/* for one endpoint to answer a request; 0: 5,000 */
	unsigned request_ms;	/* for a request with all its attempts; 0: 15,000 */
	unsigned probe_ms; /* an endpoint that said nothing for so long is asked something; 0: 5,000
			    */
	size_t max_answer; /* bytes of one answer, or of one message of a watch; 0: 8 MiB */
	size_t max_waiting; /* requests that may wait at once; 0: 4,096 */
};

/* Copies the options, and begins to look for an endpoint. -ENOTSUP: there is no libcurl; -EINVAL;
 * a file of a certificate that is not there is an error too. Wants LOOP_ETCD and LOOP_ETCD_TIMER
 * of the loop behind `epoll`. */
int etcd_open(int epoll, const struct etcd_options *o, struct etcd **ret, struct error *e);
/* Memory and connections; leases stay until their time is over. NULL is fine. */
void etcd_close(struct etcd *e);

/* For the loop: LOOP_ETCD and LOOP_ETCD_TIMER. */
void etcd_on_socket(struct loop_item *item, uint32_t events);
void etcd_on_timer(struct loop_item *item);

struct etcd_state {
	const char *endpoint;	  /* the one that is asked; lives as long as the client */
	bool connected;		  /* it has answered since it is */
	int64_t since_boot_s;	  /* since when connected, or not (time_boot_s()) */
	uint64_t cluster, member; /* etcd's ids, 0: not known yet */
	int64_t revision;	  /* the highest that was seen */
	unsigned failures;	  /* since the last answer */
	uint64_t switches;	  /* how often another endpoint was taken */
	size_t waiting;		  /* requests without an answer */
	const char *error;	  /* the last failure, "" if there was none; until the next call */
	bool clock_known;	  /* the endpoint's answers had its time */
	int64_t clock_s;	  /* whole seconds that its clock is ahead of this machine's at
				     least; changes of one second are not told */
};
struct etcd_state etcd_state(const struct etcd *e);

/* Called when `connected` or `clock_s` changes; at most one, NULL: nobody. */
void etcd_on_change(struct etcd *e, void (*changed)(void *arg), void *arg);

/* --- requests: 0, or -ENOMEM, -EBUSY (too many wait), -EINVAL, -EMSGSIZE (over 1 MiB), and then
 * the callback never comes. *ret (NULL: not wanted) is for etcd_cancel(). Several are done at the
 * same time, in no order: who wants one waits for the first one's answer. --- */

/* What was sent may be done all the same. NULL is fine. */
void etcd_cancel(struct etcd_request *r);

struct etcd_range {
	struct etcd_bytes key;
	bool prefix; /* all keys that begin with it (an empty one: all keys) */
	bool keys_only;
	bool any_member;  /* what the endpoint has, which may be old; needs no majority */
	int64_t revision; /* 0: the newest */
	unsigned page;	  /* keys at a time, 0: 500 */
};

struct etcd_page {
	int64_t revision; /* of the whole range: all pages are as it was then */
	const struct etcd_kv *kvs;
	size_t n;
	bool more; /* another page comes */
};

/* Keys in ascending order, a page for each callback, until one has an error (page NULL) or no more.
 * At least one page comes, an empty one if there is no such key. */
typedef void (*etcd_page_fn)(void *arg, int err, const struct etcd_page *page, const char *error);
int etcd_range(struct etcd *e, const struct etcd_range *what, etcd_page_fn done, void *arg,
	       struct etcd_request **ret);

enum etcd_target {
	ETCD_VERSION, /* 0: there is no such key */
	ETCD_CREATE_REVISION,
	ETCD_MOD_REVISION,
	ETCD_LEASE,
	ETCD_VALUE,
};
enum etcd_relation { ETCD_EQUAL, ETCD_NOT_EQUAL, ETCD_LESS, ETCD_GREATER };

struct etcd_compare {
	struct etcd_bytes key;
	enum etcd_target target;
	enum etcd_relation relation;
	int64_t number;		 /* all but ETCD_VALUE */
	struct etcd_bytes value; /* ETCD_VALUE */
};

enum etcd_op_kind { ETCD_PUT, ETCD_DELETE, ETCD_GET };
struct etcd_op {
	enum etcd_op_kind kind;
	struct etcd_bytes key;
	bool prefix;		 /* ETCD_DELETE, ETCD_GET */
	struct etcd_bytes value; /* ETCD_PUT */
	int64_t lease;		 /* ETCD_PUT; 0: none */
};

struct etcd_txn {
	const struct etcd_compare *compares; /* all must hold; none: they do */
	size_t n_compares;
	const struct etcd_op *success; /* done if they do */
	size_t n_success;
	const struct etcd_op *failure; /* done if not */
	size_t n_failure;
	/* It may be done twice without harm (another endpoint may be asked although one was sent
	 * it): then only -EHOSTUNREACH says that no answer came. */
	bool twice;
};

struct etcd_op_answer {
	const struct etcd_kv *kvs; /* ETCD_GET */
	size_t n;		   /* how many; of ETCD_DELETE: how many were deleted */
};

struct etcd_answer {
	int64_t revision;		  /* after it */
	bool succeeded;			  /* the compares held; true for what has none */
	const struct etcd_op_answer *ops; /* in the order of those that were done */
	size_t n_ops;
};

/* answer is NULL with an error. etcd does at most 128 ops in one transaction, by its default. */
typedef void (*etcd_done_fn)(void *arg, int err, const struct etcd_answer *answer,
			     const char *error);
int etcd_txn(struct etcd *e, const struct etcd_txn *t, etcd_done_fn done, void *arg,
	     struct etcd_request **ret);
/* One op without a compare, which may be done twice: a put, or a delete. */
int etcd_put(struct etcd *e, struct etcd_bytes key, struct etcd_bytes value, int64_t lease,
	     etcd_done_fn done, void *arg, struct etcd_request **ret);
int etcd_delete(struct etcd *e, struct etcd_bytes key, bool prefix, etcd_done_fn done, void *arg,
		struct etcd_request **ret);

/* --- leases --- */

enum etcd_lease_event {
	ETCD_LEASE_HELD, /* granted: `id` is new (put again what is under it), or, after LATE, the
			    same */
	ETCD_LEASE_LATE, /* no answer for a whole ttl: others may see it ended. Goes on trying */
	ETCD_LEASE_LOST, /* etcd says that it ended, and deleted what was under it; a new one is
			    asked for, so HELD follows */
};
typedef void (*etcd_lease_fn)(void *arg, enum etcd_lease_event event, int64_t id, const char *why);

/* Granted when an endpoint can, and kept alive from then on, every third of ttl_s (2 to 86,400,
 * else -EINVAL). id: one that an earlier agent had, which is kept if it is still there (HELD
 * follows, or LOST and HELD); 0: a new one. */
int etcd_lease_open(struct etcd *e, unsigned ttl_s, int64_t id, etcd_lease_fn event, void *arg,
		    struct etcd_lease **ret);
int64_t etcd_lease_id(const struct etcd_lease *l); /* 0: none is held */
/* No longer kept alive: it ends with its time. NULL is fine. */
void etcd_lease_free(struct etcd_lease *l);
/* Frees it, and has etcd end it at once with all keys under it. done may be NULL. 0: done will be
 * called (-ENOENT: it was gone); otherwise it is freed all the same: -ENOENT: none was held. */
int etcd_lease_revoke(struct etcd_lease *l, etcd_done_fn done, void *arg);

/* --- watches --- */

struct etcd_event {
	bool deleted; /* kv has the key and mod_revision (of the deletion) alone */
	struct etcd_kv kv;
};

enum etcd_news_kind {
	ETCD_NEWS_EVENTS,  /* in the order of their revisions. After a reconnect those of one
			      revision may come twice */
	ETCD_NEWS_CURRENT, /* connected, and from now on what happens comes at once (what happened
			      meanwhile may still be on its way) */
	ETCD_NEWS_BROKEN,  /* not connected; it is being tried again, and nothing will be missed */
	ETCD_NEWS_GAP,	   /* nothing more comes: what happened cannot be told (compacted, or it is
			      another store than before). Free it, read anew, watch from there */
};

struct etcd_news {
	enum etcd_news_kind kind;
	int64_t revision; /* EVENTS: of the last one; GAP: 0, or the first that is still there */
	const struct etcd_event *events;
	size_t n;
	const char *why; /* BROKEN, GAP: a sentence */
};
typedef void (*etcd_watch_fn)(void *arg, const struct etcd_news *news);

/* Of a key, or of all that begin with it, from that revision on (that of a page + 1). */
int etcd_watch_open(struct etcd *e, struct etcd_bytes key, bool prefix, int64_t revision,
		    etcd_watch_fn news, void *arg, struct etcd_watch **ret);
void etcd_watch_free(struct etcd_watch *w);

#endif
