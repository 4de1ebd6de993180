/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The control socket itself: who may come in. */
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/un.h>

#include "control/server_priv.h"
#include "control/group.h"
#include "base/log.h"
#include "control/control.h"

/* Descriptors that clients leave to the agent, for what it opens while it does what they ask. */
#define AGENT_FILES 32
#define REST_MS	    100 /* until the next try to accept, when even the spare descriptor is gone */

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

#define NO_DESCRIPTORS                                                                         \
	"{\"ok\":false,\"errno\":24,\"error\":\"the agent has no descriptors left: try again " \
	"later, or raise its limit (LimitNOFILE=)\"}\n"

static void refuse(int fd, const char *line)
{
	send(fd, line, strlen(line), MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void add_client(struct control_server *s, int *fd, const struct ucred *peer)
{
	struct client *c = calloc(1, sizeof(*c));
	const int on = 1;

	if (!c)
		return;
	/* descriptors that come with urgent data would be dropped here, and at once */
	setsockopt(*fd, SOL_SOCKET, SO_OOBINLINE, &on, sizeof(on));
	c->s = s;
	c->item = (struct loop_item){.kind = LOOP_CONTROL_CLIENT, .fd = *fd};
	c->out_tail = &c->out;
	c->uid = peer->uid;
	c->pid = peer->pid;
	if (loop_add(s->epoll, &c->item, EPOLLIN)) {
		free(c);
		return;
	}
	take_fd(fd);
	c->next = s->clients;
	s->clients = c;
}

static void close_accepted(int *fd)
{
	struct ucred peer = {0};
	socklen_t len = sizeof(peer);

	if (*fd < 0)
		return;
	getsockopt(*fd, SOL_SOCKET, SO_PEERCRED, &peer, &len);
	socket_close(*fd, peer.uid);
}

static int open_spare(void)
{
	return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/* There is no descriptor for who wants in: they are told by giving up the spare one for a moment.
 * Without that they would wait, and the loop be woken for them for ever. */
static void turn_away(struct control_server *s)
{
	struct itimerspec rest = {.it_value.tv_nsec = REST_MS * 1000000L};
	int fd;

	close_fd(&s->spare);
	fd = accept4(s->listen.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd >= 0)
		refuse(fd, NO_DESCRIPTORS);
	else if (errno != EAGAIN && !loop_mod(s->epoll, &s->listen, 0))
		timerfd_settime(s->rest.fd, 0, &rest, NULL);
	close_accepted(&fd);
	s->spare = open_spare();
}

void control_on_rest(struct control_server *s)
{
	uint64_t n;

	if (read(s->rest.fd, &n, sizeof(n)) == sizeof(n))
		loop_mod(s->epoll, &s->listen, EPOLLIN);
}

void control_on_listen(struct control_server *s)
{
	CLEANUP(close_accepted)
	int fd = accept4(s->listen.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (fd < 0 && errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
		turn_away(s);
	if (fd < 0 || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
		return;
	if (!peer_allowed(&peer, fd)) {
		refuse(fd, "{\"ok\":false,\"errno\":13,\"error\":\"only root and members of group "
			   "ax may talk to the agent\"}\n");
		log_warn("refused process %d of uid %u at the control socket", peer.pid, peer.uid);
		return;
	}
	if (!fd_leaves(fd, AGENT_FILES))
		refuse(fd, NO_DESCRIPTORS);
	else if (server_has_place(s, peer.uid))
		add_client(s, &fd, &peer);
	else
		refuse(fd, "{\"ok\":false,\"errno\":11,\"error\":\"the agent has too many "
			   "clients: try again later\"}\n");
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
	s->waiting_tail = &s->waiting;
	s->listen = (struct loop_item){.kind = LOOP_CONTROL_LISTEN, .fd = -1};
	s->turn = (struct loop_item){.kind = LOOP_CONTROL_TURN,
				     .fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
	s->rest = (struct loop_item){
		.kind = LOOP_CONTROL_REST,
		.fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)};
	s->spare = open_spare();
	*ret = s;
	r = open_socket(path, &s->listen.fd, e);
	if (r)
		return r;
	if (loop_add(epoll, &s->turn, EPOLLIN) || loop_add(epoll, &s->rest, EPOLLIN) ||
	    loop_add(epoll, &s->listen, EPOLLIN))
		return error_set(e, -errno, "cannot listen on %s: %s", path, strerror(errno));
	return 0;
}
