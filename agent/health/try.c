/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <arpa/inet.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "health/try.h"
#include "base/address.h"
#include "base/loop.h"
#include "config/config.h"
#include "health/answer.h"
#include "machine/cgroup.h"

enum try_outcome try_failed(struct health_try *t, const char *what, int error)
{
	snprintf(t->why, sizeof(t->why), "%s%s%s", what, error ? ": " : "",
		 error ? strerror(error) : "");
	return TRY_BAD;
}

/* What the command has started, wherever it went: to a session of its own, too. Whoever made the
 * cgroup removes it when they are gone. */
static void kill_rest(struct health_try *t)
{
	if (t->cgroup)
		cgroup_signal(t->cgroup, SIGKILL);
	free(t->cgroup);
	t->cgroup = NULL;
}

void try_end(struct health_try *t, int epoll)
{
	if (t->item.fd >= 0)
		loop_del(epoll, &t->item);
	close_fd(&t->item.fd);
	/* (before it leads its group there is nobody else; whoever reaps strangers reaps it) */
	if (t->pid > 0 && kill(-t->pid, SIGKILL))
		kill(t->pid, SIGKILL);
	t->pid = 0;
	kill_rest(t);
	free(t->request);
	t->request = NULL;
	t->sent = t->got = 0;
}

/* --- commands --- */

enum try_outcome try_watch(struct health_try *t, int epoll, const struct health_command *c)
{
	t->pid = c->pid;
	t->item.fd = c->output;
	t->cgroup = c->cgroup;
	if (loop_add(epoll, &t->item, EPOLLIN))
		try_end(t, epoll);
	return TRY_GOES_ON;
}

/* The beginning is for the reason, the rest is dropped. Says whether there may be more. */
static bool read_output(struct health_try *t)
{
	char buf[4096];
	ssize_t n = read(t->item.fd, buf, sizeof(buf));
	size_t room = sizeof(t->answer) - t->got, take = n > 0 ? (size_t)n : 0;

	take = take < room ? take : room;
	memcpy(t->answer + t->got, buf, take);
	t->got += take;
	return n > 0 || (n < 0 && errno == EAGAIN);
}

/* The first line, as it may stand in tables and events. */
static void first_line(const struct health_try *t, char buf[HEALTH_ANSWER_MAX + 1])
{
	size_t n = 0;

	for (; n < t->got && t->answer[n] != '\n'; n++)
		buf[n] = (char)(t->answer[n] >= ' ' && t->answer[n] <= '~' ? t->answer[n] : '?');
	buf[n] = 0;
}

enum try_outcome try_ended(struct health_try *t, int status)
{
	char line[HEALTH_ANSWER_MAX + 1], what[96];

	/* what it has started ends with it: nobody would, and there is a next one soon (its number
	 * was free for an instant only, and is the group's as long as there is one) */
	kill(-t->pid, SIGKILL);
	t->pid = 0;
	kill_rest(t);
	if (WIFEXITED(status) && !WEXITSTATUS(status))
		return TRY_GOOD;
	if (t->item.fd >= 0)
		read_output(t);
	first_line(t, line);
	if (WIFEXITED(status))
		snprintf(what, sizeof(what), "exit status %d%s%s", WEXITSTATUS(status),
			 line[0] ? ": " : "", line);
	else
		snprintf(what, sizeof(what), "ended by signal %d", WTERMSIG(status));
	return try_failed(t, what, 0);
}

static enum try_outcome on_output(struct health_try *t, int epoll)
{
	if (read_output(t))
		return TRY_GOES_ON;
	loop_del(epoll, &t->item);
	close_fd(&t->item.fd);
	return TRY_GOES_ON;
}

/* --- sockets --- */

enum try_outcome try_start(struct health_try *t, int epoll, int fd, const struct ax_addr *addr,
			   uint16_t port, const struct service_check *c, const char *name)
{
	struct sockaddr_storage ss;
	socklen_t len = addr_to_sockaddr(addr, htons(port), &ss);

	t->item.fd = fd;
	if (c->type == CHECK_HTTP) {
		t->request = health_http_request(c, name);
		if (!t->request) {
			try_end(t, epoll);
			return TRY_GOES_ON;
		}
	}
	if (connect(fd, (struct sockaddr *)&ss, len) < 0 && errno != EINPROGRESS)
		return try_failed(t, "connect", errno);
	if (loop_add(epoll, &t->item, EPOLLOUT))
		try_end(t, epoll);
	return TRY_GOES_ON;
}

static enum try_outcome send_request(struct health_try *t, int epoll)
{
	size_t left = strlen(t->request) - t->sent;
	ssize_t n = send(t->item.fd, t->request + t->sent, left, MSG_NOSIGNAL);

	if (n < 0 && errno != EAGAIN)
		return try_failed(t, "send", errno);
	t->sent += n > 0 ? (size_t)n : 0;
	if (t->sent == strlen(t->request))
		loop_mod(epoll, &t->item, EPOLLIN);
	return TRY_GOES_ON;
}

static enum try_outcome read_answer(struct health_try *t, const struct service_check *c)
{
	/* with room for the rest of a short answer: closing what has unread data resets it */
	char buf[4096];
	ssize_t n = recv(t->item.fd, buf, sizeof(buf), 0);
	char what[32];
	size_t take;
	int status;

	if (n < 0)
		return errno == EAGAIN ? TRY_GOES_ON : try_failed(t, "receive", errno);
	take = (size_t)n < HEALTH_ANSWER_MAX - t->got ? (size_t)n : HEALTH_ANSWER_MAX - t->got;
	memcpy(t->answer + t->got, buf, take);
	t->got += take;
	status = health_http_status(t->answer, t->got);
	if (!status && n > 0)
		return TRY_GOES_ON;
	if (status <= 0)
		return try_failed(t, status ? "the answer is not HTTP" : "closed without an answer",
				  0);
	if (health_status_good(status, c))
		return TRY_GOOD;
	snprintf(what, sizeof(what), "status %d", status);
	return try_failed(t, what, 0);
}

enum try_outcome try_on_socket(struct health_try *t, int epoll, const struct service_check *c)
{
	int error = 0;
	socklen_t len = sizeof(error);

	if (c->type == CHECK_EXEC)
		return on_output(t, epoll);
	if (t->request && t->sent == strlen(t->request))
		return read_answer(t, c);
	if (getsockopt(t->item.fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
		error = errno;
	if (error)
		return try_failed(t, "connect", error);
	return t->request ? send_request(t, epoll) : TRY_GOOD;
}
