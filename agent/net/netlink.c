/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The rtnetlink socket: requests, their answers, and dumps. */
#include "net/netlink_request.h"

#include <sys/socket.h>

#define DUMP_ATTEMPTS 10
/* The kernel never makes an answer of a dump larger than 32 KiB. */
#define RECV_SIZE (32 * 1024)

struct nl {
	struct mnl_socket *s;
	uint32_t seq;
	char buf[RECV_SIZE] __attribute__((aligned(NLMSG_ALIGNTO)));
};

static int open_family(int family, struct nl **ret)
{
	autofree struct nl *nl = calloc(1, sizeof(*nl));
	int one = 1;

	if (!nl)
		return -ENOMEM;
	nl->s = mnl_socket_open2(family, SOCK_CLOEXEC);
	if (!nl->s)
		return -errno;
	if (mnl_socket_bind(nl->s, 0, MNL_SOCKET_AUTOPID) < 0) {
		int err = -errno;

		mnl_socket_close(nl->s);
		return err;
	}
	/* Errors need not carry the request back, and dumps are to honour their filters (4.20).
	 * Where the kernel knows neither, the answers are only longer. */
	(void)mnl_socket_setsockopt(nl->s, NETLINK_CAP_ACK, &one, sizeof(one));
	(void)mnl_socket_setsockopt(nl->s, NETLINK_GET_STRICT_CHK, &one, sizeof(one));
	*ret = take_ptr(&nl);
	return 0;
}

int nl_open(struct nl **ret)
{
	return open_family(NETLINK_ROUTE, ret);
}

int nl_open_generic(struct nl **ret)
{
	return open_family(NETLINK_GENERIC, ret);
}

void nl_close(struct nl *nl)
{
	mnl_socket_close(nl->s);
	free(nl);
}

int nl_family_error(int err, bool v6)
{
	return v6 && err == -EOPNOTSUPP ? -EAFNOSUPPORT : err;
}

void nl_request_init(struct nl_request *rq, struct nl *nl)
{
	rq->nl = nl;
	rq->first_seq = nl->seq + 1;
	rq->n = 0;
	rq->len = 0;
	rq->last = NULL;
}

struct nlmsghdr *nl_request_add(struct nl_request *rq, uint16_t type, uint16_t flags)
{
	struct nlmsghdr *nlh;

	if (rq->last)
		rq->len += NLMSG_ALIGN(rq->last->nlmsg_len);
	nlh = mnl_nlmsg_put_header(rq->buf + rq->len);
	nlh->nlmsg_type = type;
	nlh->nlmsg_flags = NLM_F_REQUEST | flags;
	nlh->nlmsg_seq = ++rq->nl->seq;
	rq->last = nlh;
	rq->n++;
	return nlh;
}

static int send_all(struct nl *nl, const void *buf, size_t len)
{
	while (mnl_socket_sendto(nl->s, buf, len) < 0)
		if (errno != EINTR)
			return -errno;
	return 0;
}

static ssize_t recv_some(struct nl *nl)
{
	for (;;) {
		ssize_t n = mnl_socket_recvfrom(nl->s, nl->buf, sizeof(nl->buf));

		if (n >= 0)
			return n;
		if (errno != EINTR)
			return -errno;
	}
}

static int message_error(const struct nlmsghdr *nlh)
{
	const struct nlmsgerr *e = mnl_nlmsg_get_payload(nlh);

	if (mnl_nlmsg_get_payload_len(nlh) < sizeof(e->error))
		return -EPROTO;
	return e->error;
}

/* Where the results of a request's messages go. */
struct results {
	int *errs; /* may be NULL */
	unsigned first_failed;
	int first_error;
};

static void note_result(struct results *res, unsigned i, int err)
{
	if (res->errs)
		res->errs[i] = err;
	if (err && i < res->first_failed) {
		res->first_failed = i;
		res->first_error = err;
	}
}

/* Reads until the last message, which alone asked for it, has been acknowledged. */
static int request_answers(struct nl_request *rq, struct results *res, nl_on_data *on_data,
			   void *arg)
{
	for (;;) {
		ssize_t n = recv_some(rq->nl);
		int len = (int)n;

		if (n < 0)
			return (int)n;
		for (struct nlmsghdr *nlh = (void *)rq->nl->buf; mnl_nlmsg_ok(nlh, len);
		     nlh = mnl_nlmsg_next(nlh, &len)) {
			/* Unsigned, so that what an earlier request left behind is far away too. */
			uint32_t i = nlh->nlmsg_seq - rq->first_seq;

			if (i >= rq->n)
				continue;
			if (nlh->nlmsg_type == NLMSG_ERROR)
				note_result(res, i, message_error(nlh));
			else if (on_data)
				on_data(arg, nlh);
			if (nlh->nlmsg_type == NLMSG_ERROR && i == rq->n - 1)
				return 0;
		}
	}
}

int nl_request_send(struct nl_request *rq, int *errs, nl_on_data *on_data, void *arg)
{
	struct results res = {.errs = errs, .first_failed = rq->n};
	int r;

	if (!rq->n)
		return 0;
	if (errs)
		memset(errs, 0, rq->n * sizeof(*errs));
	rq->last->nlmsg_flags |= NLM_F_ACK;
	r = send_all(rq->nl, rq->buf, rq->len + rq->last->nlmsg_len);
	if (!r)
		r = request_answers(rq, &res, on_data, arg);
	if (!r)
		return res.first_error;
	/* The socket failed: how the messages ended is not known. */
	for (unsigned i = 0; errs && i < rq->n; i++)
		errs[i] = r;
	return r;
}

/* One run of a dump. Returns 1 when the kernel says that it is not consistent. */
static int dump_once(struct nl *nl, const struct nl_dump *d)
{
	char buf[NL_MESSAGE_SIZE] __attribute__((aligned(NLMSG_ALIGNTO)));
	struct nlmsghdr *rq = mnl_nlmsg_put_header(buf);
	bool interrupted = false;
	int err = 0, r;

	rq->nlmsg_type = d->type;
	rq->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
	rq->nlmsg_seq = ++nl->seq;
	d->put(rq, d->arg);
	r = send_all(nl, rq, rq->nlmsg_len);
	if (r)
		return r;
	for (;;) {
		ssize_t n = recv_some(nl);
		int len = (int)n;

		if (n < 0)
			return (int)n;
		for (struct nlmsghdr *nlh = (void *)nl->buf; mnl_nlmsg_ok(nlh, len);
		     nlh = mnl_nlmsg_next(nlh, &len)) {
			if (nlh->nlmsg_seq != rq->nlmsg_seq)
				continue;
			interrupted |= nlh->nlmsg_flags & NLM_F_DUMP_INTR;
			if (nlh->nlmsg_type == NLMSG_DONE || nlh->nlmsg_type == NLMSG_ERROR) {
				r = message_error(nlh);
				return err ? err : r ? r : interrupted;
			}
			/* After an error the rest is still to be read off the socket. */
			if (!err)
				err = d->on_entry(d->arg, nlh);
		}
	}
}

int nl_dump_run(struct nl *nl, const struct nl_dump *d)
{
	for (int i = 0; i < DUMP_ATTEMPTS; i++) {
		int r = dump_once(nl, d);

		if (r <= 0)
			return r;
		d->restart(d->arg);
	}
	return -EAGAIN;
}
