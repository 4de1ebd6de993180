/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "control/control.h"

/* --- framing --- */

int control_parse_line(const char *line, size_t len, json_t **ret, struct error *e)
{
	json_error_t je;
	json_t *j;

	if (memchr(line, 0, len))
		return error_set(e, -EBADMSG, "a control message holds a NUL byte");
	j = json_loadb(line, len, JSON_REJECT_DUPLICATES, &je);
	if (!j)
		return error_set(e, -EBADMSG, "a control message is not JSON: %s at column %d",
				 je.text, je.column);
	if (!json_is_object(j)) {
		json_decref(j);
		return error_set(e, -EBADMSG, "a control message is not a JSON object");
	}
	*ret = j;
	return 0;
}

/* --- client --- */

int control_connect(const char *socket_path, struct control_conn *ret, struct error *e)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	autoclose int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return error_set(e, -errno, "cannot make a Unix socket: %s", strerror(errno));
	if (strlen(socket_path) >= sizeof(sun.sun_path))
		return error_set(e, -ENAMETOOLONG, "the socket path %s is too long", socket_path);
	strcpy(sun.sun_path, socket_path);
	if (connect(fd, (struct sockaddr *)&sun, sizeof(sun)) < 0) {
		int r = -errno;

		if (r == -EACCES)
			return error_set(e, r,
					 "no access to the agent's socket %s: run as root or as a "
					 "member of group ax",
					 socket_path);
		return error_set(e, r,
				 "no agent answers at %s (%s): start one with 'ax agent --detach' "
				 "or 'systemctl start ax-agent'",
				 socket_path, strerror(-r));
	}
	memset(ret, 0, sizeof(*ret));
	ret->fd = take_fd(&fd);
	return 0;
}

void control_close(struct control_conn *c)
{
	close_fd(&c->fd);
	free(c->buf);
	memset(c, 0, sizeof(*c));
	c->fd = -1;
}

static int send_bytes(int sock, const char *p, size_t len, int fd)
{
	while (len) {
		union {
			char buf[CMSG_SPACE(sizeof(int))];
			struct cmsghdr align;
		} u = {.buf = {0}};
		struct iovec iov = {.iov_base = (void *)(uintptr_t)p, .iov_len = len};
		struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
		ssize_t n;

		if (fd >= 0) {
			struct cmsghdr *c = &u.align;

			m.msg_control = u.buf;
			m.msg_controllen = sizeof(u.buf);
			c->cmsg_level = SOL_SOCKET;
			c->cmsg_type = SCM_RIGHTS;
			c->cmsg_len = CMSG_LEN(sizeof(int));
			memcpy(CMSG_DATA(c), &fd, sizeof(int));
		}
		n = sendmsg(sock, &m, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		fd = -1; /* it went with the first byte */
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

int control_send(struct control_conn *c, const json_t *request, int fd, struct error *e)
{
	autofree char *text = json_dumps(request, JSON_COMPACT);
	size_t len;
	int r;

	if (!text)
		return error_set(e, -ENOMEM, "out of memory, or a text that is not UTF-8");
	len = strlen(text);
	text[len] = '\n'; /* its NUL is not sent */
	r = send_bytes(c->fd, text, len + 1, fd);
	if (r)
		return error_set(e, r, "the agent closed the connection (%s): see its log",
				 strerror(-r));
	return 0;
}

static void take_descriptor(struct msghdr *m, int *fd)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		int got;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		memcpy(&got, CMSG_DATA(c), sizeof(got));
		if (*fd >= 0)
			close(*fd);
		*fd = got;
	}
}

static int recv_more(struct control_conn *c, int *fd)
{
	union {
		char buf[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} u;
	struct msghdr m = {.msg_control = u.buf, .msg_controllen = sizeof(u.buf), .msg_iovlen = 1};
	struct iovec iov;
	ssize_t n;

	if (c->len == c->size) {
		size_t size = c->size ? c->size * 2 : 4096;
		char *more;

		more = realloc(c->buf, size);
		if (!more)
			return -ENOMEM;
		c->buf = more;
		c->size = size;
	}
	iov.iov_base = c->buf + c->len;
	iov.iov_len = c->size - c->len;
	m.msg_iov = &iov;
	do {
		n = recvmsg(c->fd, &m, MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	take_descriptor(&m, fd);
	c->len += (size_t)n;
	return n == 0 ? -ECONNRESET : 0;
}

static int too_long(struct error *e)
{
	return error_set(e, -EMSGSIZE, "an answer is longer than %u bytes: see the agent's log",
			 CONTROL_LINE_MAX);
}

int control_recv(struct control_conn *c, json_t **ret, int *fd, struct error *e)
{
	autoclose int got = -1;
	size_t scanned = 0;
	char *nl;
	int r;

	while (!(nl = c->len > scanned ? memchr(c->buf + scanned, '\n', c->len - scanned) : NULL)) {
		scanned = c->len;
		if (c->len > CONTROL_LINE_MAX)
			return too_long(e);
		r = recv_more(c, &got);
		if (r)
			return error_set(e, r,
					 "the agent went away in the middle of an answer: see its "
					 "log");
	}
	if (nl - c->buf > CONTROL_LINE_MAX)
		return too_long(e);
	r = control_parse_line(c->buf, (size_t)(nl - c->buf), ret, e);
	c->len -= (size_t)(nl + 1 - c->buf);
	memmove(c->buf, nl + 1, c->len);
	if (!r && fd)
		*fd = take_fd(&got);
	return r;
}

int control_call(struct control_conn *c, const json_t *request, int send_fd, json_t **ret,
		 int *recv_fd, struct error *e)
{
	int r = control_send(c, request, send_fd, e);

	return control_answer(c, r, ret, recv_fd, e);
}

int control_answer(struct control_conn *c, int sent, json_t **ret, int *recv_fd, struct error *e)
{
	const char *text;
	json_t *reply;
	int r = sent, code;

	if (ret)
		*ret = NULL;
	/* an agent that refuses the client says why and closes, perhaps before this was sent */
	if (!r || r == -EPIPE || r == -ECONNRESET) {
		struct error why;
		int got = control_recv(c, &reply, recv_fd, r ? &why : e);

		r = got && r ? r : got;
	}
	if (r)
		return r;
	if (json_is_true(json_object_get(reply, "ok"))) {
		if (ret)
			*ret = reply;
		else
			json_decref(reply);
		return 0;
	}
	text = json_string_value(json_object_get(reply, "error"));
	code = (int)json_integer_value(json_object_get(reply, "errno"));
	r = error_set(e, code > 0 ? -code : -EPROTO, "%s", text ? text : "the agent refused");
	if (ret)
		*ret = reply;
	else
		json_decref(reply);
	return r;
}
