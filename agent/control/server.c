/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The control socket's clients: peers are checked, lines cut, answers queued. Nothing here blocks:
 * a client that does not read has its answers kept up to a bound, then it is cut off.
 */
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "control/server.h"
#include "control/group.h"
#include "base/log.h"
#include "control/control.h"

#define CLIENTS_MAX    256
#define OUT_MAX	       (64u << 20) /* queued for one client; a list of 100,000 connections fits */
#define EVENTS_MAX     (4u << 20)  /* queued events for one reader; more are lost, and counted */
#define CLIENT_FDS_MAX 4

struct chunk {
	struct chunk *next;
	size_t len, off;
	int fd; /* goes with the first byte, -1: none */
	char data[];
};

struct client {
	struct client *next;
	struct control_server *s;
	struct loop_item item;
	char *in;
	size_t in_len, in_size;
	int fds[CLIENT_FDS_MAX]; /* received, not yet taken by a request */
	size_t n_fds;
	struct chunk *out, **out_tail;
	size_t out_len;
	uint64_t events_lost;
	bool closing, busy, watches;
	unsigned uid;
	int pid;
	void *kept;
};

struct control_server {
	struct control_ops ops;
	int epoll;
	struct loop_item listen;
	struct client *clients;
};

unsigned client_uid(const struct client *c)
{
	return c->uid;
}

int client_pid(const struct client *c)
{
	return c->pid;
}

void client_keep(struct client *c, void *kept)
{
	c->kept = kept;
}

void *client_kept(const struct client *c)
{
	return c->kept;
}

struct client *client_next(const struct control_server *s, const struct client *c)
{
	return c ? c->next : s ? s->clients : NULL;
}

void client_watch(struct client *c, bool on)
{
	c->watches = on;
}

static size_t clients_count(const struct control_server *s)
{
	size_t n = 0;

	for (const struct client *c = s->clients; c; c = c->next)
		n++;
	return n;
}

static void client_free(struct client *c)
{
	struct client **p = &c->s->clients;

	while (*p && *p != c)
		p = &(*p)->next;
	if (*p)
		*p = c->next;
	loop_del(c->s->epoll, &c->item);
	close_fd(&c->item.fd);
	for (size_t i = 0; i < c->n_fds; i++)
		close(c->fds[i]);
	while (c->out) {
		struct chunk *k = c->out;

		c->out = k->next;
		close_fd(&k->fd);
		free(k);
	}
	free(c->in);
	c->s->ops.free_kept(c->kept);
	free(c);
}

static void client_close(struct client *c)
{
	if (c->busy) { /* inside its own request: its caller frees it */
		c->closing = true;
		return;
	}
	c->busy = true; /* whatever the end of a launch triggers must not answer this client */
	c->closing = true;
	c->s->ops.gone(c->s->ops.arg, c);
	client_free(c);
}

void control_server_close(struct control_server *s)
{
	while (s && s->clients)
		client_free(s->clients);
	if (s)
		close_fd(&s->listen.fd);
	free(s);
}

/* --- sending --- */

static ssize_t send_chunk(int sock, struct chunk *k)
{
	union {
		char buf[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} u = {.buf = {0}};
	struct iovec iov = {.iov_base = k->data + k->off, .iov_len = k->len - k->off};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
	ssize_t n;

	if (k->fd >= 0) {
		m.msg_control = u.buf;
		m.msg_controllen = sizeof(u.buf);
		u.align.cmsg_level = SOL_SOCKET;
		u.align.cmsg_type = SCM_RIGHTS;
		u.align.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&u.align), &k->fd, sizeof(int));
	}
	n = sendmsg(sock, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n > 0)
		close_fd(&k->fd);
	return n;
}

/* Returns false when the client is lost. */
static bool client_flush(struct client *c)
{
	while (c->out) {
		struct chunk *k = c->out;
		ssize_t n = send_chunk(c->item.fd, k);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			break;
		if (n < 0)
			return false;
		k->off += (size_t)n;
		c->out_len -= (size_t)n;
		if (k->off < k->len)
			continue;
		c->out = k->next;
		if (!c->out)
			c->out_tail = &c->out;
		close_fd(&k->fd);
		free(k);
	}
	loop_mod(c->s->epoll, &c->item, EPOLLIN | (c->out ? EPOLLOUT : 0));
	return true;
}

static int client_queue(struct client *c, const json_t *j, int fd)
{
	size_t len = json_dumpb(j, NULL, 0, JSON_COMPACT);
	struct chunk *k = len ? malloc(sizeof(*k) + len + 1) : NULL;

	if (!k)
		return -ENOMEM;
	json_dumpb(j, k->data, len, JSON_COMPACT);
	k->data[len] = '\n';
	k->next = NULL;
	k->len = len + 1;
	k->off = 0;
	k->fd = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 3);
	*c->out_tail = k;
	c->out_tail = &k->next;
	c->out_len += k->len;
	return 0;
}

void client_reply(struct client *c, json_t *reply, int fd)
{
	int r = reply ? 0 : -ENOMEM;

	if (c->closing) {
		json_decref(reply);
		return;
	}
	if (!r)
		r = client_queue(c, reply, fd);
	json_decref(reply);
	if (r || c->out_len > OUT_MAX || !client_flush(c))
		client_close(c);
}

void client_error(struct client *c, int code, const char *text)
{
	client_reply(
		c,
		json_pack("{sb si ss}", "ok", 0, "errno", code < 0 ? -code : code, "error", text),
		-1);
}

void client_ok(struct client *c)
{
	client_reply(c, json_pack("{sb}", "ok", 1), -1);
}

size_t clients_watching(const struct control_server *s)
{
	size_t n = 0;

	for (const struct client *c = s ? s->clients : NULL; c; c = c->next)
		n += c->watches && !c->closing;
	return n;
}

/* Queued here and sent when the socket takes it: sending might close the client, and its end
 * may bring about events in turn. */
void clients_event(struct control_server *s, json_t *event)
{
	for (struct client *c = s ? s->clients : NULL; c; c = c->next) {
		if (!c->watches || c->closing)
			continue;
		if (c->out_len > EVENTS_MAX) {
			c->events_lost++;
			continue;
		}
		if (c->events_lost) {
			json_t *lost = json_pack("{ss sO sI}", "event", "lost", "time",
						 json_object_get(event, "time"), "count",
						 (json_int_t)c->events_lost);

			c->events_lost = 0;
			client_queue(c, lost, -1);
			json_decref(lost);
		}
		client_queue(c, event, -1);
		loop_mod(s->epoll, &c->item, EPOLLIN | EPOLLOUT);
	}
}

/* --- receiving --- */

static void take_fds(struct client *c, struct msghdr *m)
{
	for (struct cmsghdr *h = CMSG_FIRSTHDR(m); h; h = CMSG_NXTHDR(m, h)) {
		int *fds = (int *)(void *)CMSG_DATA(h);
		size_t n;

		if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS)
			continue;
		n = (h->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < n; i++) {
			if (c->n_fds < CLIENT_FDS_MAX)
				c->fds[c->n_fds++] = fds[i];
			else
				close(fds[i]);
		}
	}
}

static int take_fd_of_request(struct client *c)
{
	int fd = -1;

	if (c->n_fds) {
		fd = c->fds[0];
		c->n_fds--;
		memmove(c->fds, c->fds + 1, c->n_fds * sizeof(c->fds[0]));
	}
	return fd;
}

static void client_line(struct client *c, const char *line, size_t len)
{
	struct error e;
	json_t *j;
	int r = control_parse_line(line, len, &j, &e);
	autoclose int fd = -1;
	const char *op;

	if (r) {
		client_error(c, r, e.text);
		c->closing = true; /* nothing after it can be trusted to be framed */
		return;
	}
	op = json_string_value(json_object_get(j, "op"));
	if (op && streq(op, "attach"))
		fd = take_fd_of_request(c);
	c->s->ops.request(c->s->ops.arg, c, j, fd);
	json_decref(j);
}

static int client_read(struct client *c)
{
	union {
		char buf[CMSG_SPACE(sizeof(int) * CLIENT_FDS_MAX)];
		struct cmsghdr align;
	} u;
	struct msghdr m = {.msg_control = u.buf, .msg_controllen = sizeof(u.buf), .msg_iovlen = 1};
	struct iovec iov;
	ssize_t n;

	if (c->in_size - c->in_len < 4096) {
		size_t size = c->in_size ? c->in_size * 2 : 8192;
		char *more = size > 2 * (size_t)CONTROL_LINE_MAX ? NULL : realloc(c->in, size);

		if (!more)
			return -EMSGSIZE;
		c->in = more;
		c->in_size = size;
	}
	iov.iov_base = c->in + c->in_len;
	iov.iov_len = c->in_size - c->in_len;
	m.msg_iov = &iov;
	n = recvmsg(c->item.fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 1 : -errno;
	take_fds(c, &m);
	c->in_len += (size_t)n;
	return n ? 0 : -ECONNRESET;
}

void control_on_client(struct loop_item *item, uint32_t events)
{
	struct client *c = LOOP_OWNER(item, struct client, item);
	size_t done = 0;
	char *nl;

	if ((events & EPOLLOUT) && !client_flush(c)) {
		client_close(c);
		return;
	}
	if (!(events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
		return;
	if (client_read(c) < 0) {
		client_close(c);
		return;
	}
	c->busy = true;
	while (!c->closing && (nl = memchr(c->in + done, '\n', c->in_len - done))) {
		size_t len = (size_t)(nl - c->in) - done;

		client_line(c, c->in + done, len);
		done += len + 1;
	}
	c->busy = false;
	if (c->closing) {
		client_close(c);
		return;
	}
	c->in_len -= done;
	memmove(c->in, c->in + done, c->in_len);
	/* an idle client (ax events) keeps no buffer of its largest request */
	if (!c->in_len && c->in_size > 8192) {
		free(c->in);
		c->in = NULL;
		c->in_size = 0;
	}
}

/* --- accepting --- */

/* Root, or a member of group ax. The mode of the socket says the same; this holds also where a
 * directory or a mount made it reachable to others. */
static bool peer_allowed(const struct ucred *peer, int fd)
{
	gid_t groups[256], ax;
	socklen_t len = sizeof(groups);

	if (peer->uid == 0)
		return true;
	if (group_id(AX_GROUP, &ax))
		return false;
	if (peer->gid == ax)
		return true;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &len) < 0)
		return false;
	for (size_t i = 0; i < len / sizeof(groups[0]); i++)
		if (groups[i] == ax)
			return true;
	return false;
}

static void refuse(int fd, const char *line)
{
	send(fd, line, strlen(line), MSG_NOSIGNAL | MSG_DONTWAIT);
}

void control_on_listen(struct control_server *s)
{
	autoclose int fd = accept4(s->listen.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct ucred peer;
	socklen_t len = sizeof(peer);
	struct client *c;

	if (fd < 0 || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
		return;
	if (!peer_allowed(&peer, fd)) {
		refuse(fd, "{\"ok\":false,\"errno\":13,\"error\":\"only root and members of group "
			   "ax may talk to the agent\"}\n");
		log_warn("refused process %d of uid %u at the control socket", peer.pid, peer.uid);
		return;
	}
	if (clients_count(s) >= CLIENTS_MAX) {
		refuse(fd, "{\"ok\":false,\"errno\":11,\"error\":\"the agent has too many "
			   "clients: try again later\"}\n");
		return;
	}
	c = calloc(1, sizeof(*c));
	if (!c)
		return;
	c->s = s;
	c->item = (struct loop_item){.kind = LOOP_CONTROL_CLIENT, .fd = fd};
	c->out_tail = &c->out;
	c->uid = peer.uid;
	c->pid = peer.pid;
	if (loop_add(s->epoll, &c->item, EPOLLIN)) {
		free(c);
		return;
	}
	take_fd(&fd);
	c->next = s->clients;
	s->clients = c;
}

static int open_socket(const char *path, int *ret, struct error *e)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	autoclose int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	gid_t ax;

	if (strlen(path) >= sizeof(sun.sun_path))
		return error_set(e, -ENAMETOOLONG, "the socket path %s is too long", path);
	strcpy(sun.sun_path, path);
	/* the lock says that no other agent of this instance runs: what is there is a leftover */
	unlink(path);
	if (fd < 0 || bind(fd, (struct sockaddr *)&sun, sizeof(sun)) < 0 || chmod(path, 0660) < 0 ||
	    (!group_id(AX_GROUP, &ax) && chown(path, 0, ax) < 0) || listen(fd, 128) < 0)
		return error_set(e, -errno, "cannot listen on %s: %s", path, strerror(errno));
	*ret = take_fd(&fd);
	return 0;
}

int control_listen(int epoll, const char *path, const struct control_ops *ops,
		   struct control_server **ret, struct error *e)
{
	struct control_server *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return error_set(e, -ENOMEM, "out of memory");
	s->ops = *ops;
	s->epoll = epoll;
	s->listen = (struct loop_item){.kind = LOOP_CONTROL_LISTEN, .fd = -1};
	*ret = s;
	r = open_socket(path, &s->listen.fd, e);
	return r ? r : loop_add(epoll, &s->listen, EPOLLIN);
}
