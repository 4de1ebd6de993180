/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The part of libmnl's interface that the agent and libnftnl use. Debian's libmnl-dev has no static
 * archive, so a fully static ax could not be linked without this. It is only linked into static
 * builds (make STATIC=1), and only where no libmnl.a is installed; everything else uses the
 * library. What a function does is libmnl's documentation's to say; the layouts and constants are
 * <linux/netlink.h>'s.
 */
#include <errno.h>
#include <libmnl/libmnl.h>
#include <stdlib.h>
#include <string.h>

/* Lengths in a message come from elsewhere, so all of this file counts in bytes from its start. */
static void *at(const void *base, size_t offset)
{
	return (char *)base + offset;
}

static int fail(int err)
{
	errno = err;
	return -1;
}

/* --- the socket --- */

struct mnl_socket {
	int fd;
	struct sockaddr_nl self;
};

struct mnl_socket *mnl_socket_open2(int bus, int flags)
{
	struct mnl_socket *nl = calloc(1, sizeof(*nl));

	if (!nl)
		return NULL;
	nl->fd = socket(AF_NETLINK, SOCK_RAW | flags, bus);
	if (nl->fd < 0) {
		int err = errno;

		free(nl);
		errno = err;
		return NULL;
	}
	return nl;
}

struct mnl_socket *mnl_socket_open(int bus)
{
	return mnl_socket_open2(bus, 0);
}

/* With port 0 the kernel chooses one, which later answers are checked against: it is asked back. */
int mnl_socket_bind(struct mnl_socket *nl, unsigned int groups, pid_t pid)
{
	struct sockaddr_nl want = {
		.nl_family = AF_NETLINK,
		.nl_groups = groups,
		.nl_pid = (uint32_t)pid,
	};
	socklen_t len = sizeof(nl->self);

	if (bind(nl->fd, (struct sockaddr *)&want, sizeof(want)) < 0 ||
	    getsockname(nl->fd, (struct sockaddr *)&nl->self, &len) < 0)
		return -1;
	if (len != sizeof(nl->self) || nl->self.nl_family != AF_NETLINK)
		return fail(EINVAL);
	return 0;
}

int mnl_socket_close(struct mnl_socket *nl)
{
	int r = close(nl->fd), err = errno;

	free(nl);
	errno = err;
	return r;
}

int mnl_socket_get_fd(const struct mnl_socket *nl)
{
	return nl->fd;
}

unsigned int mnl_socket_get_portid(const struct mnl_socket *nl)
{
	return nl->self.nl_pid;
}

int mnl_socket_setsockopt(const struct mnl_socket *nl, int type, void *buf, socklen_t len)
{
	return setsockopt(nl->fd, SOL_NETLINK, type, buf, len);
}

ssize_t mnl_socket_sendto(const struct mnl_socket *nl, const void *req, size_t siz)
{
	struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};

	return sendto(nl->fd, req, siz, 0, (struct sockaddr *)&kernel, sizeof(kernel));
}

ssize_t mnl_socket_recvfrom(const struct mnl_socket *nl, void *buf, size_t siz)
{
	struct sockaddr_nl from;
	struct iovec iov = {.iov_base = buf, .iov_len = siz};
	struct msghdr msg = {
		.msg_name = &from,
		.msg_namelen = sizeof(from),
		.msg_iov = &iov,
		.msg_iovlen = 1,
	};
	ssize_t n = recvmsg(nl->fd, &msg, 0);

	if (n < 0)
		return -1;
	if (msg.msg_flags & MSG_TRUNC)
		return fail(ENOSPC);
	if (msg.msg_namelen != sizeof(from))
		return fail(EINVAL);
	return n;
}

/* --- messages --- */

struct nlmsghdr *mnl_nlmsg_put_header(void *buf)
{
	struct nlmsghdr *nlh = buf;

	memset(nlh, 0, MNL_NLMSG_HDRLEN);
	nlh->nlmsg_len = MNL_NLMSG_HDRLEN;
	return nlh;
}

void *mnl_nlmsg_put_extra_header(struct nlmsghdr *nlh, size_t size)
{
	void *p = mnl_nlmsg_get_payload_tail(nlh);

	memset(p, 0, MNL_ALIGN(size));
	nlh->nlmsg_len += MNL_ALIGN(size);
	return p;
}

void *mnl_nlmsg_get_payload(const struct nlmsghdr *nlh)
{
	return at(nlh, MNL_NLMSG_HDRLEN);
}

size_t mnl_nlmsg_get_payload_len(const struct nlmsghdr *nlh)
{
	return nlh->nlmsg_len - MNL_NLMSG_HDRLEN;
}

void *mnl_nlmsg_get_payload_offset(const struct nlmsghdr *nlh, size_t offset)
{
	return at(nlh, MNL_NLMSG_HDRLEN + MNL_ALIGN(offset));
}

void *mnl_nlmsg_get_payload_tail(const struct nlmsghdr *nlh)
{
	return at(nlh, MNL_ALIGN(nlh->nlmsg_len));
}

bool mnl_nlmsg_ok(const struct nlmsghdr *nlh, int len)
{
	return len >= (int)sizeof(*nlh) && nlh->nlmsg_len >= sizeof(*nlh) &&
	       nlh->nlmsg_len <= (unsigned int)len;
}

struct nlmsghdr *mnl_nlmsg_next(const struct nlmsghdr *nlh, int *len)
{
	/* The padding of the last message need not be there: this may go below 0. */
	*len -= (int)MNL_ALIGN(nlh->nlmsg_len);
	return mnl_nlmsg_get_payload_tail(nlh);
}

/* --- batches --- */

struct mnl_nlmsg_batch {
	char *buf;
	size_t limit; /* the buffer has room for one more message behind it */
	size_t len;   /* of the messages that are in */
};

struct mnl_nlmsg_batch *mnl_nlmsg_batch_start(void *buf, size_t bufsiz)
{
	struct mnl_nlmsg_batch *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	b->buf = buf;
	b->limit = bufsiz;
	return b;
}

void mnl_nlmsg_batch_stop(struct mnl_nlmsg_batch *b)
{
	free(b);
}

/* A message that crosses the limit stays the current one: it is not in. */
bool mnl_nlmsg_batch_next(struct mnl_nlmsg_batch *b)
{
	const struct nlmsghdr *nlh = mnl_nlmsg_batch_current(b);

	if (b->len + nlh->nlmsg_len > b->limit)
		return false;
	b->len += nlh->nlmsg_len;
	return true;
}

size_t mnl_nlmsg_batch_size(struct mnl_nlmsg_batch *b)
{
	return b->len;
}

void *mnl_nlmsg_batch_head(struct mnl_nlmsg_batch *b)
{
	return b->buf;
}

void *mnl_nlmsg_batch_current(struct mnl_nlmsg_batch *b)
{
	return b->buf + b->len;
}

bool mnl_nlmsg_batch_is_empty(struct mnl_nlmsg_batch *b)
{
	return b->len == 0;
}

/* --- reading attributes --- */

uint16_t mnl_attr_get_type(const struct nlattr *attr)
{
	return attr->nla_type & NLA_TYPE_MASK;
}

uint16_t mnl_attr_get_payload_len(const struct nlattr *attr)
{
	return (uint16_t)(attr->nla_len - MNL_ATTR_HDRLEN);
}

void *mnl_attr_get_payload(const struct nlattr *attr)
{
	return at(attr, MNL_ATTR_HDRLEN);
}

uint8_t mnl_attr_get_u8(const struct nlattr *attr)
{
	return *(uint8_t *)mnl_attr_get_payload(attr);
}

uint16_t mnl_attr_get_u16(const struct nlattr *attr)
{
	uint16_t v;

	memcpy(&v, mnl_attr_get_payload(attr), sizeof(v));
	return v;
}

uint32_t mnl_attr_get_u32(const struct nlattr *attr)
{
	uint32_t v;

	memcpy(&v, mnl_attr_get_payload(attr), sizeof(v));
	return v;
}

/* Attributes are aligned to 4 bytes only. */
uint64_t mnl_attr_get_u64(const struct nlattr *attr)
{
	uint64_t v;

	memcpy(&v, mnl_attr_get_payload(attr), sizeof(v));
	return v;
}

const char *mnl_attr_get_str(const struct nlattr *attr)
{
	return mnl_attr_get_payload(attr);
}

int mnl_attr_type_valid(const struct nlattr *attr, uint16_t maxtype)
{
	return mnl_attr_get_type(attr) > maxtype ? fail(EOPNOTSUPP) : 1;
}

int mnl_attr_validate(const struct nlattr *attr, enum mnl_attr_data_type type)
{
	static const uint8_t exact[MNL_TYPE_MAX] = {
		[MNL_TYPE_U8] = 1,  [MNL_TYPE_U16] = 2,	  [MNL_TYPE_U32] = 4,
		[MNL_TYPE_U64] = 8, [MNL_TYPE_MSECS] = 8,
	};
	const char *p = mnl_attr_get_payload(attr);
	uint16_t len = mnl_attr_get_payload_len(attr);

	if ((unsigned int)type >= MNL_TYPE_MAX)
		return fail(EINVAL);
	if (exact[type] && len != exact[type])
		return fail(ERANGE);
	switch (type) {
	case MNL_TYPE_FLAG:
		return len ? fail(ERANGE) : 0;
	case MNL_TYPE_STRING:
		return len ? 0 : fail(ERANGE);
	case MNL_TYPE_NUL_STRING:
		if (!len)
			return fail(ERANGE);
		return p[len - 1] ? fail(EINVAL) : 0;
	case MNL_TYPE_NESTED: /* may be empty */
		return len && len < MNL_ATTR_HDRLEN ? fail(ERANGE) : 0;
	default:
		return 0;
	}
}

bool mnl_attr_ok(const struct nlattr *attr, int len)
{
	return len >= (int)sizeof(*attr) && attr->nla_len >= sizeof(*attr) && attr->nla_len <= len;
}

struct nlattr *mnl_attr_next(const struct nlattr *attr)
{
	return at(attr, MNL_ALIGN(attr->nla_len));
}

/* Until the callback does not answer MNL_CB_OK, or no whole attribute is left before `end`. */
static int parse(const struct nlattr *attr, const char *end, mnl_attr_cb_t cb, void *data)
{
	int r = MNL_CB_OK;

	for (; r > MNL_CB_STOP && mnl_attr_ok(attr, (int)(end - (const char *)attr));
	     attr = mnl_attr_next(attr))
		r = cb(attr, data);
	return r;
}

int mnl_attr_parse(const struct nlmsghdr *nlh, unsigned int offset, mnl_attr_cb_t cb, void *data)
{
	return parse(mnl_nlmsg_get_payload_offset(nlh, offset), mnl_nlmsg_get_payload_tail(nlh), cb,
		     data);
}

int mnl_attr_parse_nested(const struct nlattr *attr, mnl_attr_cb_t cb, void *data)
{
	const char *p = mnl_attr_get_payload(attr);

	return parse((const void *)p, p + mnl_attr_get_payload_len(attr), cb, data);
}

/* --- writing attributes --- */

void mnl_attr_put(struct nlmsghdr *nlh, uint16_t type, size_t len, const void *data)
{
	struct nlattr *attr = mnl_nlmsg_get_payload_tail(nlh);
	size_t total = MNL_ATTR_HDRLEN + len;

	attr->nla_type = type;
	attr->nla_len = (uint16_t)total;
	if (len)
		memcpy(mnl_attr_get_payload(attr), data, len);
	/* the padding goes to the kernel: nothing of ours may be in it */
	memset(at(attr, total), 0, MNL_ALIGN(total) - total);
	nlh->nlmsg_len += MNL_ALIGN(total);
}

void mnl_attr_put_u8(struct nlmsghdr *nlh, uint16_t type, uint8_t data)
{
	mnl_attr_put(nlh, type, sizeof(data), &data);
}

void mnl_attr_put_u16(struct nlmsghdr *nlh, uint16_t type, uint16_t data)
{
	mnl_attr_put(nlh, type, sizeof(data), &data);
}

void mnl_attr_put_u32(struct nlmsghdr *nlh, uint16_t type, uint32_t data)
{
	mnl_attr_put(nlh, type, sizeof(data), &data);
}

void mnl_attr_put_u64(struct nlmsghdr *nlh, uint16_t type, uint64_t data)
{
	mnl_attr_put(nlh, type, sizeof(data), &data);
}

void mnl_attr_put_str(struct nlmsghdr *nlh, uint16_t type, const char *data)
{
	mnl_attr_put(nlh, type, strlen(data), data);
}

void mnl_attr_put_strz(struct nlmsghdr *nlh, uint16_t type, const char *data)
{
	mnl_attr_put(nlh, type, strlen(data) + 1, data);
}

/* The length of a nest is known at its end only. */
struct nlattr *mnl_attr_nest_start(struct nlmsghdr *nlh, uint16_t type)
{
	struct nlattr *start = mnl_nlmsg_get_payload_tail(nlh);

	mnl_attr_put(nlh, NLA_F_NESTED | type, 0, NULL);
	return start;
}

void mnl_attr_nest_end(struct nlmsghdr *nlh, struct nlattr *start)
{
	start->nla_len = (uint16_t)((char *)mnl_nlmsg_get_payload_tail(nlh) - (char *)start);
}

/* --- answers --- */

/* NLMSG_ERROR and NLMSG_DONE end a run, the rest of the kernel's own messages says nothing. */
static int control_message(const struct nlmsghdr *nlh)
{
	const struct nlmsgerr *e = mnl_nlmsg_get_payload(nlh);

	if (nlh->nlmsg_type == NLMSG_DONE)
		return MNL_CB_STOP;
	if (nlh->nlmsg_type != NLMSG_ERROR)
		return MNL_CB_OK;
	if (mnl_nlmsg_get_payload_len(nlh) < sizeof(*e))
		return fail(EBADMSG);
	/* the kernel has it negative; some of its subsystems once had it positive */
	errno = e->error < 0 ? -e->error : e->error;
	return e->error ? MNL_CB_ERROR : MNL_CB_STOP;
}

/* 0 stands for "any", on either side: what the kernel sends by itself has no number. */
static bool matches(unsigned int got, unsigned int want)
{
	return !got || !want || got == want;
}

static int one_message(const struct nlmsghdr *nlh, mnl_cb_t cb_data, void *data)
{
	if (nlh->nlmsg_type < NLMSG_MIN_TYPE)
		return control_message(nlh);
	return cb_data ? cb_data(nlh, data) : MNL_CB_OK;
}

int mnl_cb_run(const void *buf, size_t numbytes, unsigned int seq, unsigned int portid,
	       mnl_cb_t cb_data, void *data)
{
	const struct nlmsghdr *nlh = buf;
	int len = (int)numbytes, r = MNL_CB_OK;

	for (; r > MNL_CB_STOP && mnl_nlmsg_ok(nlh, len); nlh = mnl_nlmsg_next(nlh, &len)) {
		if (!matches(nlh->nlmsg_pid, portid))
			return fail(ESRCH);
		if (!matches(nlh->nlmsg_seq, seq))
			return fail(EPROTO);
		/* what a dump says is not all true if the table changed under it */
		if (nlh->nlmsg_flags & NLM_F_DUMP_INTR)
			return fail(EINTR);
		r = one_message(nlh, cb_data, data);
	}
	return r;
}
