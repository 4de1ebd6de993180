/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <stddef.h>
#include <sys/socket.h>

#include "net/netlink.h"
#include "net/sock_diag.h"

#define UDP_CONNECTED 1 /* TCP_ESTABLISHED: what a connected UDP socket's state is called */
#define FOUND_MAX     256
#define SOCKSTAT      "/proc/thread-self/net/sockstat"

struct diag_request {
	struct nlmsghdr nlh;
	struct inet_diag_req_v2 rq;
};

static int open_diag(void *arg)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);

	(void)arg;
	return fd < 0 ? -errno : fd;
}

static int send_request(int fd, uint16_t type, uint16_t flags, uint8_t family, uint8_t proto,
			uint32_t states, const struct inet_diag_sockid *id)
{
	struct diag_request m = {
		.nlh = {.nlmsg_len = sizeof(m), .nlmsg_type = type, .nlmsg_flags = flags},
		.rq = {.sdiag_family = family, .sdiag_protocol = proto, .idiag_states = states}};
	struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};

	if (id)
		m.rq.id = *id;
	return sendto(fd, &m, sizeof(m), 0, (struct sockaddr *)&kernel, sizeof(kernel)) < 0 ? -errno
											    : 0;
}

/* Reads one dump to its end and hands over what it holds. */
static int read_dump(int fd, void (*each)(const struct inet_diag_msg *d, void *arg), void *arg)
{
	char buf[16384] __attribute__((aligned(__alignof__(struct nlmsghdr))));

	for (;;) {
		ssize_t n = recv(fd, buf, sizeof(buf), 0);
		unsigned left;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		left = (unsigned)n;
		for (struct nlmsghdr *h = (struct nlmsghdr *)(void *)buf; NLMSG_OK(h, left);
		     h = NLMSG_NEXT(h, left)) {
			if (h->nlmsg_type == NLMSG_DONE)
				return 0;
			if (h->nlmsg_type == NLMSG_ERROR)
				return ((const struct nlmsgerr *)NLMSG_DATA(h))->error;
			each(NLMSG_DATA(h), arg);
		}
	}
}

static struct ax_addr addr_of(const struct inet_diag_msg *d, const __be32 words[4])
{
	struct ax_addr a;

	if (d->idiag_family == AF_INET)
		return addr_from_v4(words[0]);
	memcpy(&a, words, sizeof(a));
	return a;
}

/* The first sockets of a dump that are connected to an address, or that nobody has any more at one;
 * and how many there are. */
struct ends {
	const struct ax_addr *peer;
	const struct ax_addr *local;
	int n;
	struct inet_diag_msg found[FOUND_MAX];
};

static void keep_end(const struct inet_diag_msg *d, void *arg)
{
	struct ends *e = arg;
	struct ax_addr a = addr_of(d, d->id.idiag_dst);

	if (e->n < FOUND_MAX && addr_eq(&a, e->peer))
		e->found[e->n++] = *d;
}

static int read_ack(int fd)
{
	char buf[1024] __attribute__((aligned(__alignof__(struct nlmsghdr))));
	const struct nlmsghdr *h = (const struct nlmsghdr *)(const void *)buf;
	ssize_t n = recv(fd, buf, sizeof(buf), 0);

	if (n < 0)
		return -errno;
	if ((size_t)n < NLMSG_LENGTH(sizeof(struct nlmsgerr)) || h->nlmsg_type != NLMSG_ERROR)
		return -EPROTO;
	return ((const struct nlmsgerr *)NLMSG_DATA(h))->error;
}

static int end_family(int fd, uint8_t family, const struct ax_addr *peer)
{
	struct ends ends = {.peer = peer};
	int ended = 0;

	do {
		int r = send_request(fd, SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST | NLM_F_DUMP, family,
				     IPPROTO_UDP, 1 << UDP_CONNECTED, NULL);

		ends.n = 0;
		r = r ? r : read_dump(fd, keep_end, &ends);
		if (r < 0)
			return r == -ENOENT ? -EOPNOTSUPP : r;
		for (int i = 0; i < ends.n; i++) {
			r = send_request(fd, SOCK_DESTROY, NLM_F_REQUEST | NLM_F_ACK, family,
					 IPPROTO_UDP, 1 << UDP_CONNECTED, &ends.found[i].id);
			r = r ? r : read_ack(fd);
			if (r && r != -ENOENT) /* closed meanwhile */
				return r;
			ended += r == 0;
		}
	} while (ends.n == FOUND_MAX);
	return ended;
}

int socks_end_udp(int netns_fd, const struct ax_addr *peer)
{
	autoclose int fd = netns_fd < 0 ? open_diag(NULL) : netns_call(netns_fd, open_diag, NULL);
	int v6, v4 = 0;

	if (fd < 0)
		return fd;
	if (addr_is_v4(peer))
		v4 = end_family(fd, AF_INET, peer);
	if (v4 < 0)
		return v4;
	v6 = end_family(fd, AF_INET6, peer); /* v4-mapped peers are here too */
	return v6 < 0 ? v6 : v4 + v6;
}

/* Reads a number of a line of sockstat's: -1, it cannot be told. */
static int sockstat(const char *path, const char *line, const char *what)
{
	autofree char *text = NULL;
	const char *p = NULL;

	if (file_read(path, 4096, &text) == 0)
		p = strstr(text, line);
	p = p ? strstr(p, what) : NULL;
	return p ? atoi(p + strlen(what)) : -1;
}

/* --- who has an address --- */

/* v4-mapped sockets are found as IPv4 ones. */
static int end_conn(int fd, const struct sock_conn *conn)
{
	const struct ax_endpoint *local = &conn->local, *remote = &conn->remote;
	bool v4 = addr_is_v4(&local->addr);
	struct inet_diag_sockid id = {
		.idiag_sport = local->port_be,
		.idiag_dport = remote->port_be,
		.idiag_if = conn->ifindex,
		.idiag_cookie = {(uint32_t)conn->cookie, (uint32_t)(conn->cookie >> 32)}};
	int r;

	memcpy(id.idiag_src, v4 ? &local->addr.w[3] : local->addr.w, v4 ? 4 : 16);
	memcpy(id.idiag_dst, v4 ? &remote->addr.w[3] : remote->addr.w, v4 ? 4 : 16);
	r = send_request(fd, SOCK_DESTROY, NLM_F_REQUEST | NLM_F_ACK, v4 ? AF_INET : AF_INET6,
			 local->proto, ~0u, &id);
	return r ? r : read_ack(fd);
}

int sock_conns_add(struct sock_conns *l, const struct sock_conn *one)
{
	if (l->n == l->size) {
		size_t more = l->size ? 2 * l->size : 16;
		void *p = reallocarray(l->v, more, sizeof(*l->v));

		if (!p)
			return -ENOMEM;
		l->v = p;
		l->size = more;
	}
	l->v[l->n++] = *one;
	return 0;
}

int socks_end_conns(int netns_fd, const struct sock_conn *conns, size_t n)
{
	autoclose int fd = netns_fd < 0 ? open_diag(NULL) : netns_call(netns_fd, open_diag, NULL);
	int ended = 0;

	if (fd < 0)
		return fd;
	for (size_t i = 0; i < n; i++) {
		int r = end_conn(fd, &conns[i]);

		if (r && r != -ENOENT && r != -ESTALE) /* closed meanwhile, its ends another's */
			return ended ? ended : r;
		ended += r == 0;
	}
	return ended;
}

/* include/net/tcp_states.h; FIN-WAIT-2 has all its data acknowledged */
#define TCP_STATES_SENDING  (1 << 4 | 1 << 9 | 1 << 11) /* FIN-WAIT-1, LAST-ACK, CLOSING */
#define TCP_FIN_WAIT2_STATE 5
#define TCP_TIME_WAIT	    6
#define TCP_LISTENING	    10
#define TCP_BOUND_INACTIVE  13 /* Linux 6.8 */
#define TCP_STATES_SERVING  (1 << TCP_LISTENING)
#define TCP_STATES_BOUND    ((1 << (TCP_BOUND_INACTIVE + 1)) - 1 - (1 << TCP_TIME_WAIT))

/* struct inet_diag_hostcond, which ends with an array of no size, and its array */
struct host_condition {
	uint8_t family, prefix_len;
	int port;
	__be32 addr[4];
};
_Static_assert(offsetof(struct host_condition, addr) == sizeof(struct inet_diag_hostcond),
	       "the kernel's layout");

/* Says yes to sockets with a source address of the prefix alone. */
struct condition {
	struct nlattr attr;
	struct inet_diag_bc_op op;
	struct host_condition cond;
};

static struct condition condition_of(const struct prefix *within)
{
	struct condition c = {
		.attr = {.nla_len = sizeof(c), .nla_type = INET_DIAG_REQ_BYTECODE},
		.op = {.code = INET_DIAG_BC_S_COND, .yes = sizeof(c) - sizeof(c.attr)},
		.cond = {.family = AF_INET6, .prefix_len = (uint8_t)within->len, .port = -1}};

	c.op.no = (uint16_t)(c.op.yes + sizeof(uint32_t)); /* beyond the end: no */
	memcpy(c.cond.addr, &within->addr, sizeof(c.cond.addr));
	if (addr_is_v4(&within->addr)) { /* v4-mapped sockets are found by that, too */
		c.cond.family = AF_INET;
		c.cond.prefix_len = (uint8_t)(within->len - 96);
		c.cond.addr[0] = within->addr.w[3];
	}
	return c;
}

static int send_whole(int fd, const void *message, size_t size)
{
	struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};

	return sendto(fd, message, size, 0, (struct sockaddr *)&kernel, sizeof(kernel)) < 0 ? -errno
											    : 0;
}

static int ask_bound(int fd, uint8_t family, uint8_t proto, uint32_t states,
		     const struct prefix *within)
{
	struct {
		struct diag_request rq;
		struct condition c;
	} m = {.rq = {.nlh = {.nlmsg_len = sizeof(m),
			      .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			      .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
		      .rq = {.sdiag_family = family,
			     .sdiag_protocol = proto,
			     .idiag_states = states}},
	       .c = condition_of(within)};

	return send_whole(fd, &m, sizeof(m));
}

/* The older form, which asks for both families: the kernel walks its tables, which are megabytes
 * however few sockets there are, once for that. */
static int ask_bound_tcp(int fd, uint32_t states, const struct prefix *within)
{
	struct {
		struct nlmsghdr nlh;
		struct inet_diag_req rq;
		struct condition c;
	} m = {.nlh = {.nlmsg_len = sizeof(m),
		       .nlmsg_type = TCPDIAG_GETSOCK,
		       .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
	       .rq = {.idiag_family = AF_INET, .idiag_states = states},
	       .c = condition_of(within)};

	return send_whole(fd, &m, sizeof(m));
}

/* --- who uses a port --- */

#define TCP_STATES_OPEN (1 << 1 | 1 << 8) /* ESTABLISHED, CLOSE-WAIT */

struct open_at {
	const struct ax_addr *local;
	int found;
};

static void find_open(const struct inet_diag_msg *d, void *arg)
{
	struct open_at *o = arg;
	struct ax_addr a = addr_of(d, d->id.idiag_src);

	o->found |= addr_is_zero(o->local) || addr_eq(&a, o->local);
}

int socks_open_at(const struct ax_addr *local, uint16_t port)
{
	static const uint8_t families[] = {AF_INET6, AF_INET}; /* v4-mapped ones are the former */
	const struct inet_diag_sockid id = {.idiag_sport = htons(port)};
	struct open_at o = {.local = local};
	autoclose int fd = open_diag(NULL);
	int r = fd < 0 ? fd : 0;

	for (size_t i = 0; !r && !o.found && i < ARRAY_SIZE(families); i++) {
		r = send_request(fd, SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST | NLM_F_DUMP, families[i],
				 IPPROTO_TCP, TCP_STATES_OPEN, &id);
		r = r ? r : read_dump(fd, find_open, &o);
	}
	return r ? r : o.found;
}

/* --- what is left of those who are gone --- */

#define TCP_STATES_ORPHANS (TCP_STATES_SENDING | 1 << TCP_FIN_WAIT2_STATE | 1 << TCP_TIME_WAIT)

static void keep_orphan(const struct inet_diag_msg *d, void *arg)
{
	struct ends *e = arg;
	struct ax_addr a = addr_of(d, d->id.idiag_src);

	if (e->n < FOUND_MAX && !d->idiag_inode && addr_eq(&a, e->local))
		e->found[e->n++] = *d;
}

static int end_found(int fd, const struct ends *ends)
{
	int ended = 0;

	for (int i = 0; i < ends->n; i++) {
		int r = send_request(fd, SOCK_DESTROY, NLM_F_REQUEST | NLM_F_ACK,
				     ends->found[i].idiag_family, IPPROTO_TCP, ~0u,
				     &ends->found[i].id);

		r = r ? r : read_ack(fd);
		ended += r == 0; /* else it has come to its end, or the kernel does not do it */
	}
	return ended;
}

static int find_orphans(int fd, struct ends *ends)
{
	struct prefix one = {.addr = *ends->local, .len = 128};
	int r;

	ends->n = 0;
	r = addr_is_v4(ends->local)
		    ? ask_bound_tcp(fd, TCP_STATES_ORPHANS, &one)
		    : ask_bound(fd, AF_INET6, IPPROTO_TCP, TCP_STATES_ORPHANS, &one);
	return r ? r : read_dump(fd, keep_orphan, ends);
}

int socks_end_orphans(const struct ax_addr *local)
{
	struct ends ends = {.local = local};
	int n, r, ended = 0;
	autoclose int fd = -1;

	if (sockstat(SOCKSTAT, "TCP: ", " orphan ") == 0 &&
	    sockstat(SOCKSTAT, "TCP: ", " tw ") == 0)
		return 0;
	fd = open_diag(NULL);
	if (fd < 0)
		return fd;
	do {
		r = find_orphans(fd, &ends);
		if (r < 0)
			return r;
		n = end_found(fd, &ends);
		ended += n;
	} while (n && ends.n == FOUND_MAX);
	return ended || !ends.n ? ended : -EOPNOTSUPP;
}

/* One question, and who hears of each socket. */
struct asked {
	int fd;
	uint8_t proto;
	uint32_t states;
	struct prefix within;
	bool (*each)(const struct sock_found *found, void *arg); /* false: enough */
	void *arg;
	bool orphans; /* those too that no program has any more: they have no inode */
	bool enough;
};

static void tell(const struct inet_diag_msg *d, void *arg)
{
	struct asked *q = arg;
	struct sock_found found = {.proto = q->proto,
				   .port = ntohs(d->id.idiag_sport),
				   .uid = d->idiag_uid,
				   .addr = addr_of(d, d->id.idiag_src)};

	if (!q->enough && (d->idiag_inode || q->orphans) &&
	    prefix_contains(&q->within, &found.addr))
		q->enough = !q->each(&found, q->arg);
}

static int ask_families(struct asked *q)
{
	static const uint8_t families[] = {AF_INET6, AF_INET};
	int r = 0;

	for (int i = 0; !r && !q->enough && i < (addr_is_v4(&q->within.addr) ? 2 : 1); i++) {
		r = ask_bound(q->fd, families[i], q->proto, q->states, &q->within);
		r = r ? r : read_dump(q->fd, tell, q);
	}
	return r;
}

static int ask_tcp(struct asked *q, uint32_t states)
{
	int r = -EOPNOTSUPP;

	q->proto = IPPROTO_TCP;
	q->states = states;
	if (addr_is_v4(&q->within.addr)) {
		r = ask_bound_tcp(q->fd, states, &q->within);
		r = r ? r : read_dump(q->fd, tell, q);
	}
	return r < 0 ? ask_families(q) : r;
}

int socks_bound(const struct prefix *within, enum sock_question what,
		bool (*each)(const struct sock_found *found, void *arg), void *arg)
{
	autoclose int fd = open_diag(NULL);
	struct asked q = {.fd = fd, .within = *within, .each = each, .arg = arg};
	int r;

	if (fd < 0)
		return fd;
	r = ask_tcp(&q, what == SOCKS_SERVING ? TCP_STATES_SERVING : TCP_STATES_BOUND);
	q.proto = IPPROTO_UDP;
	q.states = ~0u;
	return r || q.enough ? r : ask_families(&q);
}

int socks_tcp_count(void)
{
	autofree char *text = NULL;
	const char *p = NULL;
	int alloc, waiting;

	if (file_read(SOCKSTAT, 4096, &text) == 0)
		p = strstr(text, "TCP: ");
	return p && sscanf(p, "TCP: inuse %*d orphan %*d tw %d alloc %d", &waiting, &alloc) == 2
		       ? waiting + alloc
		       : -1;
}

/* --- who still sends from one --- */

/*
 * Whether any socket of the machine has outlived its owner. (The kernel's count is of all
 * namespaces.) Mostly none has, and asking costs a fraction of a walk.
 */
static bool any_orphan(void)
{
	return sockstat(SOCKSTAT, "TCP: ", " orphan ") != 0;
}

/* Whether the network namespace that it is called in has any TCP socket that is not in TIME-WAIT.
 */
static int any_here(void *arg)
{
	(void)arg;
	return sockstat(SOCKSTAT, "TCP: ", " inuse ") != 0 ||
	       sockstat(SOCKSTAT "6", "TCP6: ", " inuse ") > 0;
}

static bool count(const struct sock_found *found, void *arg)
{
	(void)found;
	++*(int *)arg;
	return true;
}

int socks_sending(int netns_fd, const struct ax_addr *local)
{
	autoclose int fd = -1;
	int n = 0, r;
	struct asked q = {
		.within = {.addr = *local, .len = 128}, .each = count, .arg = &n, .orphans = true};

	if (addr_is_zero(local) || !any_orphan())
		return 0;
	if (netns_fd >= 0 && netns_call(netns_fd, any_here, NULL) == 0)
		return 0;
	fd = netns_fd < 0 ? open_diag(NULL) : netns_call(netns_fd, open_diag, NULL);
	if (fd < 0)
		return fd;
	q.fd = fd;
	r = ask_tcp(&q, TCP_STATES_SENDING);
	return r < 0 ? r : n;
}
