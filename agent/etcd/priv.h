/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The parts of the client, from below: library (libcurl), transfer (one HTTP request, and the
 * loop), endpoint (who is asked), request (queue, attempts, errors), lease and watch; etcd.c ties
 * them.
 *
 * Nobody is called from within libcurl: a transfer that has something to say is put on a list,
 * which etcd.c goes through when libcurl has returned. So callbacks may free whatever they like.
 */
#ifndef AX_ETCD_PRIV_H
#define AX_ETCD_PRIV_H

#include <time.h>

#include "etcd/answer.h"
#include "etcd/body.h"
#include "etcd/etcd.h"
#include "etcd/library.h"
#include "etcd/look.h"

#define NS_PER_MS     1000000ull
#define NS_PER_S      1000000000ull
#define NEVER	      UINT64_MAX
#define MAX_FLYING    8 /* requests at once: connections to an endpoint, beside those of watches */
#define MAX_URGENT    4 /* of leases, beside these */
#define MAX_REQUEST   1048576 /* bytes; etcd takes 1.5 MiB of them without base64 */
#define ERROR_LEN     320
#define MAX_ENDPOINTS 64

/* --- transfer.c: one HTTP request --- */

struct etcd_transfer {
	struct etcd *e;
	CURL *easy;
	struct etcd_transfer *next_ready; /* on e->ready */
	bool is_ready;
	char *body; /* what is sent */
	size_t body_len, body_at;
	bool began; /* some of it was handed out: it may have reached the endpoint */
	bool once;  /* it is not to be handed out twice */
	bool stream;
	bool over;
	int curl;  /* when it is over: what libcurl says */
	long http; /* what the endpoint says; of a stream as soon as something came */
	char *in;  /* what came, without what the owner took from it */
	size_t in_len, in_size;
	bool too_large;
	char why[CURL_ERROR_SIZE];
	uint64_t started_ns, epoch;
	uint64_t asked_real_ns;
	const char *endpoint;
	/* There is more in `in` (only a stream's owner is told before it is over), or it is over.
	 * May free the transfer. */
	void (*on_ready)(struct etcd_transfer *t);
	void *owner;
};

struct transfer_what {
	const char *path;
	char *body; /* its owner is the transfer from now on, even if it fails */
	size_t len;
	uint64_t timeout_ms; /* of the whole; 0: none */
	bool stream, once, any_member;
	void (*on_ready)(struct etcd_transfer *t);
	void *owner;
};

/* At the endpoint whose turn it is. NULL: no memory. */
struct etcd_transfer *transfer_start(struct etcd *e, const struct transfer_what *what);
/* Whether it is over or not. NULL is fine. */
void transfer_end(struct etcd_transfer *t);
/* The owners of all that have something to say are called. */
void transfers_tell(struct etcd *e);

/* Of libcurl's handle: who is asked, how he is verified, and for how long; of e only `curl` and `o`
 * are wanted. */
void transfer_set_way(const struct etcd *e, CURL *easy, const char *url, uint64_t timeout_ms);
/* Whole seconds that the clock of who answered is ahead of this machine's at least, by the header
 * Date. False: it has none. */
bool transfer_clock(const struct etcd *e, CURL *easy, uint64_t asked_ns, int64_t *ahead_s);

int curl_open(struct etcd *e, struct error *err);
void curl_close(struct etcd *e);

/* --- endpoint.c --- */

struct endpoints {
	char *url[MAX_ENDPOINTS];
	unsigned n, turn;
	uint64_t epoch;	   /* one more with each change of turn */
	uint64_t retry_ns; /* nobody is asked before */
	bool connected;
	int64_t since_boot_s;
	uint64_t answered_ns;
	bool clock_known;
	int64_t clock_s;
	unsigned failures;
	uint64_t switches;
	struct answer_head seen;
	char error[ERROR_LEN];
	struct etcd_transfer *probe;
	void (*changed)(void *arg);
	void *arg;
	bool changed_is_due;
};

/* The endpoint of that epoch did not do what one that is well does. */
void endpoint_failed(struct etcd *e, uint64_t epoch, const char *why);
/* It answered; head may be NULL. */
void endpoint_answered(struct etcd *e, uint64_t epoch, const struct answer_head *head);
/* It said in an answer that its clock is ahead by so much. */
void endpoint_clock(struct etcd *e, uint64_t epoch, int64_t ahead_s);
/* Asks it something when it is due. Returns when it is again. */
uint64_t endpoint_tick(struct etcd *e, uint64_t now);
/* What a transfer says that is no answer of etcd, as a sentence. True: there is none, the endpoint
 * answered. */
bool endpoint_did_answer(const struct etcd_transfer *t, char why[ERROR_LEN]);
/* A pause after that many failures, with jitter. */
uint64_t pause_ns(unsigned failures);

/* --- request.c --- */

struct requests {
	struct etcd_request *first, **end; /* waiting, in the order in which they are to be sent */
	struct etcd_request *flying;
	size_t n, n_flying;
};

/* What is said of a request that is over: 0 with an answer's text. Returns true if it goes on, with
 * another body. */
typedef bool (*request_fn)(struct etcd_request *r, int err, const char *text, size_t len,
			   const char *error);

struct etcd_request {
	struct etcd *e;
	struct etcd_request *next, **link; /* NULL: on no list */
	const char *path;
	char *body;
	size_t len;
	bool once, urgent, any_member;
	bool calling, cancelled;
	bool short_of_time; /* the attempt under way has less time than attempt_ms */
	unsigned attempts;
	uint64_t deadline_ns, next_ns;
	uint64_t started_ns, epoch; /* of the attempt that was answered */
	uint64_t attempt_ms;
	struct etcd_transfer *transfer;
	char why[ERROR_LEN]; /* the last attempt failed */
	request_fn over;
	void *arg;
	union {
		etcd_page_fn page;
		etcd_done_fn done;
	};
	void *range; /* of etcd_range() */
};

/* Body: its owner is the request, even if it fails. */
int request_start(struct etcd *e, const struct etcd_request *model, struct etcd_request **ret);
/* Sends what may be sent now. */
void requests_pump(struct etcd *e);
/* Time-outs. Returns when it is to be called again. */
uint64_t requests_tick(struct etcd *e, uint64_t now);
void requests_close(struct etcd *e);
/* An answer's text was parsed, or could not be (err). Returns err, with a sentence. */
int request_parsed(struct etcd_request *r, int err, const struct answer *a, const char **error);
/* A model's `over` for what etcd_done_fn is told of. */
bool request_done(struct etcd_request *r, int err, const char *text, size_t len, const char *error);

/* --- lease.c, watch.c --- */

uint64_t etcd_leases_tick(struct etcd *e, uint64_t now);
void etcd_leases_close(struct etcd *e);
uint64_t etcd_watches_tick(struct etcd *e, uint64_t now);
void etcd_watches_close(struct etcd *e);

/* --- etcd.c --- */

struct etcd {
	int epoll;
	struct loop_item timer;
	const struct curl_library *curl;
	CURLM *multi;
	struct curl_slist *headers, *headers_any;
	struct etcd_options o; /* strings are copies */
	struct etcd_socket *sockets;
	struct etcd_transfer *ready, **ready_end;
	uint64_t curl_ns, tick_ns; /* when libcurl, and when we, are to be called; NEVER: not */
	uint64_t armed_ns;
	struct endpoints at;
	struct requests requests;
	struct etcd_lease *leases;
	struct etcd_watch *watches;
	bool inside, closed;
};

/* For the state: something did not work, though the endpoint is well. */
void etcd_note(struct etcd *e, const char *why);
/* The parts' ticks are wanted then, or earlier. */
void etcd_want_tick(struct etcd *e, uint64_t at_ns);
/* After libcurl was called: whoever has to be told is, what may be sent is. May free the client. */
void etcd_turn(struct etcd *e);

#endif
