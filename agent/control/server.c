/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The control socket's clients: peers are checked, lines cut, answers queued. Nothing here blocks.
 *
 * Members of group ax cannot keep root, nor each other, from the agent: root has places and memory
 * of its own, a user of the group not all of the group's. One request of the group is answered in a
 * turn of the loop, of one user after the other, and nobody's next one before the last one's answer
 * was taken, so that a client that does not read has one answer kept.
 */
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "control/server_priv.h"
#include "base/log.h"
#include "base/work.h"
#include "control/control.h"
#include "control/foreign_fd.h"

#define ROOT_PLACES    256
#define GROUP_PLACES   128
#define USER_PLACES    64 /* of the group's */
#define GROUP_LINE_MAX (1u << 20)
#define PARSE_AT_ONCE  (64u << 10) /* a longer request is read by a thread */
#define MEMORY_MAX     REPLY_MAX  /* root's clients, and as much the group's: 100,000 connections */
#define FLUSH_AT_ONCE  (1u << 20) /* a client that reads as fast as we write gets the rest later */
#define EVENTS_MAX     (4u << 20) /* queued events for one reader; more are lost, and counted */

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

void client_watch(struct client *c, unsigned kinds)
{
	c->watches = kinds;
}

/* --- shares --- */

#define ANYBODY UINT32_MAX /* of those who share: root alone, or the group */

static bool shares(const struct client *c, bool root, unsigned uid)
{
	return (c->uid == 0) == root && (uid == ANYBODY || c->uid == uid);
}

static size_t places_of(const struct control_server *s, bool root, unsigned uid)
{
	size_t n = 0;

	for (const struct client *c = s->clients; c; c = c->next)
		n += shares(c, root, uid);
	return n;
}

bool server_has_place(const struct control_server *s, unsigned uid)
{
	if (uid == 0)
		return places_of(s, true, ANYBODY) < ROOT_PLACES;
	return foreign_fds_of(uid) <= FOREIGN_FDS_WAITING &&
	       places_of(s, false, ANYBODY) < GROUP_PLACES &&
	       places_of(s, false, uid) < USER_PLACES;
}

static size_t held_by(const struct client *c)
{
	return c->in_size + c->out_len + (c->parse ? c->parse->len : 0);
}

static size_t memory_of(const struct control_server *s, bool root, unsigned uid)
{
	size_t n = 0;

	for (const struct client *c = s->clients; c; c = c->next)
		n += shares(c, root, uid) && !c->closing ? held_by(c) : 0;
	return n;
}

/* The client that holds most, of the user who does. */
static struct client *greediest(struct control_server *s, bool root)
{
	struct client *most = NULL;
	size_t of_user = 0;

	for (struct client *c = s->clients; c; c = c->next) {
		size_t of_this =
			c->closing || !shares(c, root, ANYBODY) ? 0 : memory_of(s, root, c->uid);

		if (!of_this || of_this < of_user)
			continue;
		if (of_this > of_user || held_by(c) > held_by(most))
			most = c;
		of_user = of_this;
	}
	return most;
}

/* --- turns --- */

static void wait_for_turn(struct client *c)
{
	struct control_server *s = c->s;

	if (c->waiting)
		return;
	if (!s->waiting)
		eventfd_write(s->turn.fd, 1);
	c->waiting = true;
	c->next_waiting = NULL;
	*s->waiting_tail = c;
	s->waiting_tail = &c->next_waiting;
}

static void stop_waiting(struct client *c)
{
	struct control_server *s = c->s;
	struct client **p = &s->waiting;
	eventfd_t n;

	if (!c->waiting)
		return;
	c->waiting = false;
	while (*p != c)
		p = &(*p)->next_waiting;
	*p = c->next_waiting;
	if (!*p)
		s->waiting_tail = p;
	if (!s->waiting)
		eventfd_read(s->turn.fd, &n);
}

/* Root's first; then the first that is not of the user whose turn was the last one. */
static struct client *whose_turn(const struct control_server *s)
{
	struct client *other = NULL;

	for (struct client *c = s->waiting; c; c = c->next_waiting) {
		if (c->uid == 0)
			return c;
		if (!other && c->uid != s->served)
			other = c;
	}
	return other ? other : s->waiting;
}

static void chunk_free(struct chunk *k)
{
	close_fd(&k->fd);
	reply_free(&k->data);
	free(k);
}

void socket_close(int fd, unsigned uid)
{
	if (uid == 0) {
		close_fd(&fd);
		return;
	}
	shutdown(fd, SHUT_RDWR);
	foreign_fd_close(fd, uid);
}

static void client_free(struct client *c)
{
	struct client **p = &c->s->clients;

	while (*p && *p != c)
		p = &(*p)->next;
	if (*p)
		*p = c->next;
	stop_waiting(c);
	loop_del(c->s->epoll, &c->item);
	socket_close(take_fd(&c->item.fd), c->uid);
	for (size_t i = 0; i < c->n_fds; i++)
		close(c->fds[i]);
	while (c->out) {
		struct chunk *k = c->out;

		c->out = k->next;
		chunk_free(k);
	}
	if (c->parse) {
		c->parse->c = NULL;
		if (!c->parse->begun)
			free(take_ptr(&c->parse->line));
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
	if (s) {
		close_fd(&s->listen.fd);
		close_fd(&s->turn.fd);
		close_fd(&s->rest.fd);
		close_fd(&s->spare);
	}
	free(s);
}

/* One bound for all who share: who holds most gives. Whoever calls this may lose its own client. */
static void keep_bound(struct control_server *s, bool root)
{
	while (memory_of(s, root, ANYBODY) > MEMORY_MAX) {
		struct client *c = greediest(s, root);

		log_warn("process %d of uid %u is cut off: too much waits to be read by it", c->pid,
			 c->uid);
		client_close(c);
	}
}

/* --- sending --- */

/* Nothing more is read while there is something to do, or to be taken. */
static void client_arm(struct client *c)
{
	loop_mod(c->s->epoll, &c->item,
		 (c->line || c->out ? 0 : EPOLLIN) | (c->out ? EPOLLOUT : 0));
}

static ssize_t send_chunk(int sock, struct chunk *k)
{
	union {
		char buf[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} u = {.buf = {0}};
	struct iovec iov = {.iov_base = k->data.text + k->off, .iov_len = k->data.len - k->off};
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
	size_t sent = 0;

	while (c->out && sent < FLUSH_AT_ONCE) {
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
		sent += (size_t)n;
		if (k->off < k->data.len)
			continue;
		c->out = k->next;
		if (!c->out)
			c->out_tail = &c->out;
		chunk_free(k);
	}
	client_arm(c);
	return true;
}

/* Takes the text. */
static int client_queue(struct client *c, struct reply *text, int fd)
{
	struct chunk *k = malloc(sizeof(*k));

	if (!k) {
		reply_free(text);
		return -ENOMEM;
	}
	*k = (struct chunk){.data = *text, .fd = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 3)};
	*c->out_tail = k;
	c->out_tail = &k->next;
	c->out_len += k->data.len;
	return 0;
}

/* Its next request may come. (While it is in a request's hands, that one's end says so.) */
static void let_go(struct client *c)
{
	bool was = c->held;

	c->held = false;
	if (!was || c->busy || c->out)
		return;
	if (c->line)
		wait_for_turn(c);
	client_arm(c);
}

void client_hold(struct client *c)
{
	c->held = true;
}

/* r: what became of the text. */
static void send_reply(struct client *c, int r, struct reply *text, int fd)
{
	if (c->closing) {
		if (!r)
			reply_free(text);
		return;
	}
	if (r == -EMSGSIZE) {
		client_error(c, r, "the answer is longer than the agent keeps for one client");
		return;
	}
	if (!r)
		r = client_queue(c, text, fd);
	if (r || !client_flush(c)) {
		client_close(c);
		return;
	}
	let_go(c);
	keep_bound(c->s, c->uid == 0);
}

void client_reply_made(struct client *c, struct reply *reply)
{
	send_reply(c, 0, reply, -1);
}

void client_reply(struct client *c, json_t *j, int fd)
{
	struct reply text;

	if (!c->closing)
		send_reply(c, j ? reply_make(j, &text) : -ENOMEM, &text, fd);
	json_decref(j);
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

size_t clients_watching(const struct control_server *s, unsigned kind)
{
	size_t n = 0;

	for (const struct client *c = s ? s->clients : NULL; c; c = c->next)
		n += (c->watches & kind) && !c->closing;
	return n;
}

static void queue_event(struct client *c, const json_t *event)
{
	struct reply text;

	if (!reply_make(event, &text))
		client_queue(c, &text, -1);
}

void client_event(struct client *c, const json_t *event)
{
	if (c->closing)
		return;
	if (c->out_len > EVENTS_MAX) {
		c->events_lost++;
		return;
	}
	queue_event(c, event);
	client_arm(c);
}

/* Queued here and sent when the socket takes it: sending might close the client, and its end
 * may bring about events in turn. */
void clients_event(struct control_server *s, unsigned kind, json_t *event)
{
	bool group_full = s && memory_of(s, false, ANYBODY) > MEMORY_MAX - EVENTS_MAX;

	for (struct client *c = s ? s->clients : NULL; c; c = c->next) {
		if (!(c->watches & kind) || c->closing)
			continue;
		if (c->out_len > EVENTS_MAX || (c->out && c->uid && group_full)) {
			c->events_lost++;
			continue;
		}
		if (c->events_lost) {
			json_t *lost = json_pack("{ss sO sI}", "event", "lost", "time",
						 json_object_get(event, "time"), "count",
						 (json_int_t)c->events_lost);

			c->events_lost = 0;
			queue_event(c, lost);
			json_decref(lost);
		}
		queue_event(c, event);
		client_arm(c);
	}
}

/* --- receiving --- */

/* 0, or -EPROTO: there are some that no request has. */
static int take_fds(struct client *c, struct msghdr *m)
{
	int r = 0;

	for (struct cmsghdr *h = CMSG_FIRSTHDR(m); h; h = CMSG_NXTHDR(m, h)) {
		int *fds = (int *)(void *)CMSG_DATA(h);
		size_t n;

		if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS)
			continue;
		n = (h->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < n; i++) {
			if (c->n_fds < CLIENT_FDS_MAX && fd_is_harmless(fds[i])) {
				c->fds[c->n_fds++] = fds[i];
				continue;
			}
			foreign_fd_close(fds[i], c->uid);
			r = -EPROTO;
		}
	}
	return r;
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

/* What a line says, or the error that it is none; takes the reference. */
static void client_request(struct client *c, int r, json_t *j, const struct error *e)
{
	autoclose int fd = -1;
	const char *op;

	if (r) {
		client_error(c, r, e->text);
		c->closing = true; /* nothing after it can be trusted to be framed */
		return;
	}
	op = json_string_value(json_object_get(j, "op"));
	if (op && (streq(op, "attach") || json_is_true(json_object_get(j, "sealed"))))
		fd = take_fd_of_request(c);
	c->s->ops.request(c->s->ops.arg, c, j, fd);
	json_decref(j);
}

static void client_line(struct client *c, const char *line, size_t len)
{
	struct error e;
	json_t *j = NULL;
	int r = control_parse_line(line, len, &j, &e);

	client_request(c, r, j, &e);
}

size_t client_line_max(const struct client *c)
{
	return c->uid == 0 ? CONTROL_LINE_MAX : GROUP_LINE_MAX;
}

static void find_line(struct client *c, size_t from)
{
	const char *nl = c->in ? memchr(c->in + from, '\n', c->in_len - from) : NULL;

	c->line = nl ? (size_t)(nl - (c->in + c->in_at)) + 1 : 0;
}

/* Space behind what was read. A line that is too long makes space itself, and is lost. */
static int make_space(struct client *c)
{
	size_t size = c->in_size ? c->in_size * 2 : 8192;
	char *more;

	c->in_len -= c->in_at;
	if (c->in_at)
		memmove(c->in, c->in + c->in_at, c->in_len);
	c->in_at = 0;
	if (c->in_len >= client_line_max(c)) {
		c->too_long = true;
		c->in_len = 0;
	}
	if (c->in_size - c->in_len >= 4096)
		return 0;
	if (size > client_line_max(c) + 8192)
		size = client_line_max(c) + 8192;
	more = realloc(c->in, size);
	if (!more)
		return -ENOMEM;
	c->in = more;
	c->in_size = size;
	keep_bound(c->s, c->uid == 0);
	return 0;
}

/* What was read of a line that is too long. */
static void skip_line(struct client *c)
{
	find_line(c, 0);
	c->in_at = c->line ? c->line : c->in_len;
	if (!c->line)
		return;
	c->too_long = false;
	find_line(c, c->in_at);
	client_error(c, -EMSGSIZE,
		     c->uid == 0 ? "a request of more than 8 MiB is too long for the agent"
				 : "a request of more than 1 MiB is root's: use sudo");
}

static int client_read(struct client *c)
{
	union {
		char buf[CMSG_SPACE(sizeof(int) * FOREIGN_FDS_MAX)]; /* the kernel drops none */
		struct cmsghdr align;
	} u;
	struct msghdr m = {.msg_control = u.buf, .msg_controllen = sizeof(u.buf), .msg_iovlen = 1};
	struct iovec iov;
	int r = make_space(c);
	size_t from;
	ssize_t n;

	if (c->uid && foreign_fds_of(c->uid) > FOREIGN_FDS_WAITING)
		return -EBUSY;
	if (r)
		return r;
	from = c->in_len;
	iov.iov_base = c->in + c->in_len;
	iov.iov_len = c->in_size - c->in_len;
	m.msg_iov = &iov;
	n = recvmsg(c->item.fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 1 : -errno;
	r = take_fds(c, &m);
	if (r)
		return r;
	c->in_len += (size_t)n;
	if (c->too_long)
		skip_line(c);
	else
		find_line(c, from);
	return n ? 0 : -ECONNRESET;
}

/* What comes next for a client that is in nobody's hands any more. */
static void client_settle(struct client *c)
{
	c->busy = false;
	if (c->closing) {
		client_close(c);
		return;
	}
	/* an idle client (ax events) keeps no buffer of its largest request */
	if (c->in_at == c->in_len && c->in_size > 8192) {
		free(c->in);
		c->in = NULL;
		c->in_at = c->in_len = c->in_size = 0;
	}
	if (c->line && !c->out && !c->held)
		wait_for_turn(c);
	client_arm(c);
}

static void parse_text(void *arg)
{
	struct parse *p = arg;

	p->r = control_parse_line(p->line, p->len, &p->j, &p->e);
}

/* A work. */
static void parse(void *arg)
{
	struct parse *p = arg;
	struct client *c;

	p->begun = true;
	if (p->c)
		work_offload(p->work, parse_text, p);
	c = p->c;
	if (c) {
		c->parse = NULL;
		c->held = false;
		c->busy = true;
		client_request(c, p->r, p->j, &p->e);
		client_settle(c);
	} else {
		json_decref(p->j);
	}
	free(p->line);
	free(p);
}

/* The line as a thread gets it; NULL: it is read at once. */
static struct parse *parse_later(struct client *c, const char *line, size_t len)
{
	struct parse *p = c->s->ops.work && len > PARSE_AT_ONCE ? calloc(1, sizeof(*p)) : NULL;

	if (!p)
		return NULL;
	*p = (struct parse){.c = c, .work = c->s->ops.work, .len = len, .line = malloc(len)};
	if (!p->line) {
		free(p);
		return NULL;
	}
	memcpy(p->line, line, len);
	c->parse = p;
	c->held = true;
	return p;
}

static void client_turn(struct client *c)
{
	const char *line = c->in + c->in_at;
	struct parse *later = NULL;
	size_t len = c->line;

	stop_waiting(c);
	c->busy = true;
	/* answers to others may have come in between, and wait to be taken */
	if (!c->out && !c->held) {
		later = parse_later(c, line, len - 1);
		if (!later)
			client_line(c, line, len - 1);
		c->in_at += len;
		find_line(c, c->in_at);
	}
	client_settle(c);
	if (later && work_start(later->work, c->uid, parse, later)) {
		free(later->line);
		free(later);
		c->parse = NULL;
		client_close(c);
	}
}

void control_on_turn(struct control_server *s)
{
	struct client *c = whose_turn(s);

	if (!c)
		return;
	s->served = c->uid;
	client_turn(c);
}

void control_on_client(struct loop_item *item, uint32_t events)
{
	struct client *c = LOOP_OWNER(item, struct client, item);

	c->busy = true;
	if ((events & EPOLLOUT) && !client_flush(c))
		c->closing = true;
	if (c->held && (events & (EPOLLHUP | EPOLLERR))) /* nobody is there for the answer */
		c->closing = true;
	if (!c->closing && !c->held && !c->line && !c->out &&
	    (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) && client_read(c) < 0)
		c->closing = true;
	if (!c->closing && c->uid == 0 && c->line && !c->out && !c->held)
		client_turn(c);
	else
		client_settle(c);
}
