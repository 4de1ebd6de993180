// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * UDP and the addresses that both ends see.
 *
 *  udp serve FAMILY ADDR PORT [NAME]
 *      Answers every datagram with "NAME you=SOURCE TEXT" and prints "from=SOURCE TEXT". First of
 *      all prints "bound LOCAL".
 *  udp ask METHOD FAMILY ADDR PORT [ADDR PORT]...
 *      METHOD: connected, sendto (recvfrom), sendmsg (recvmsg), sendmmsg (recvmmsg). One socket
 *      asks every ADDR PORT; for each answer prints "from=SOURCE ANSWER". Ends with 1 when an
 *      answer is missing or its source is not the address that was asked.
 *  udp follow FAMILY ADDR PORT SECONDS
 *      A client that stays: connects one socket, asks every 50 ms, prints the server's NAME when it
 *      changes. When the socket fails it prints "error ERRNO" and makes a new one.
 *  udp send FAMILY ADDR PORT TEXT
 *      Sends one datagram, waits for nothing. Prints "sent" or "error sendto ERRNO".
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>
#include "netutil.h"

#define MAX_ASK	    16
#define MESSAGE_MAX 256

static void cmd_serve(int argc, char **argv)
{
	const char *name = argc > 5 ? argv[5] : "server";
	char text[ADDR_TEXT], in[MESSAGE_MAX], out[2 * MESSAGE_MAX];
	struct endpoint e, from;
	ssize_t n;
	int fd;

	endpoint_parse(argv[2], argv[3], argv[4], &e);
	fd = endpoint_socket(argv[2], &e, SOCK_DGRAM);
	if (bind(fd, (struct sockaddr *)&e.ss, e.len))
		fail("bind");
	local_of(fd, &e);
	printf("bound %s\n", endpoint_text(&e, text));
	fflush(stdout);
	for (;;) {
		from.len = sizeof(from.ss);
		n = recvfrom(fd, in, sizeof(in) - 1, 0, (struct sockaddr *)&from.ss, &from.len);
		if (n < 0) {
			if (errno == ECONNREFUSED)
				continue;
			fail("recvfrom");
		}
		in[n] = '\0';
		endpoint_text(&from, text);
		printf("from=%s %s\n", text, in);
		fflush(stdout);
		n = snprintf(out, sizeof(out), "%s you=%s %s", name, text, in);
		if (sendto(fd, out, (size_t)n, 0, (struct sockaddr *)&from.ss, from.len) != n)
			printf("error sendto %s\n", errno_name(errno));
	}
}

struct question {
	struct endpoint to;
	char text[32]; /* its own for each, so that answers can be told apart */
};

static void ask_connected(int fd, const struct question *q)
{
	char text[2][ADDR_TEXT];
	struct endpoint peer, local;

	if (connect(fd, (const struct sockaddr *)&q->to.ss, q->to.len))
		fail("connect");
	errno = peer_of(fd, &peer);
	if (errno)
		fail("getpeername");
	local_of(fd, &local);
	printf("peer=%s local=%s\n", endpoint_text(&peer, text[0]), endpoint_text(&local, text[1]));
	if (send(fd, q->text, strlen(q->text), 0) < 0)
		fail("send");
}

static void ask_sendto(int fd, const struct question *q)
{
	if (sendto(fd, q->text, strlen(q->text), 0, (const struct sockaddr *)&q->to.ss, q->to.len) <
	    0)
		fail("sendto");
}

static void ask_sendmsg(int fd, const struct question *q)
{
	struct iovec iov = {.iov_base = (void *)q->text, .iov_len = strlen(q->text)};
	struct msghdr msg = {
		.msg_name = (void *)&q->to.ss,
		.msg_namelen = q->to.len,
		.msg_iov = &iov,
		.msg_iovlen = 1,
	};

	if (sendmsg(fd, &msg, 0) < 0)
		fail("sendmsg");
}

static void ask_sendmmsg(int fd, const struct question *q, unsigned n)
{
	struct mmsghdr msgs[MAX_ASK] = {0};
	struct iovec iov[MAX_ASK];
	int sent;

	for (unsigned i = 0; i < n; i++) {
		iov[i].iov_base = (void *)q[i].text;
		iov[i].iov_len = strlen(q[i].text);
		msgs[i].msg_hdr.msg_name = (void *)&q[i].to.ss;
		msgs[i].msg_hdr.msg_namelen = q[i].to.len;
		msgs[i].msg_hdr.msg_iov = &iov[i];
		msgs[i].msg_hdr.msg_iovlen = 1;
	}
	sent = sendmmsg(fd, msgs, n, 0);
	if (sent < 0)
		fail("sendmmsg");
	if ((unsigned)sent != n) {
		printf("error sendmmsg sent only %d of %u\n", sent, n);
		exit(1);
	}
}

/* Receives one answer by the call that belongs to the method. */
static ssize_t receive(int fd, const char *method, char *buf, struct endpoint *from)
{
	struct iovec iov = {.iov_base = buf, .iov_len = MESSAGE_MAX - 1};
	struct mmsghdr m = {.msg_hdr = {
				    .msg_name = &from->ss,
				    .msg_namelen = sizeof(from->ss),
				    .msg_iov = &iov,
				    .msg_iovlen = 1,
			    }};
	ssize_t n;

	memset(&from->ss, 0, sizeof(from->ss));
	if (wait_fd(fd, POLLIN, TIMEOUT_MS)) {
		errno = ETIMEDOUT;
		fail("receive");
	}
	from->len = sizeof(from->ss);
	if (strcmp(method, "sendmmsg") == 0) {
		n = recvmmsg(fd, &m, 1, MSG_DONTWAIT, NULL) == 1 ? (ssize_t)m.msg_len : -1;
		from->len = m.msg_hdr.msg_namelen;
	} else if (strcmp(method, "sendmsg") == 0) {
		n = recvmsg(fd, &m.msg_hdr, 0);
		from->len = m.msg_hdr.msg_namelen;
	} else {
		n = recvfrom(fd, buf, MESSAGE_MAX - 1, 0, (struct sockaddr *)&from->ss, &from->len);
	}
	if (n < 0)
		fail("receive");
	buf[n] = '\0';
	return n;
}

/* The answer ends with the question's text. Returns 0 when its source is who was asked. */
static int check_answer(const struct question *q, unsigned n, const char *answer,
			const struct endpoint *from)
{
	const char *text = strrchr(answer, ' ');

	for (unsigned i = 0; text && i < n; i++)
		if (strcmp(text + 1, q[i].text) == 0)
			return endpoint_eq(from, &q[i].to) ? 0 : 1;
	return 1;
}

static int cmd_ask(int argc, char **argv)
{
	char text[ADDR_TEXT], answer[MESSAGE_MAX];
	const char *method = argv[2], *family = argv[3];
	struct question q[MAX_ASK] = {0};
	struct endpoint from;
	unsigned n = 0;
	int fd, bad = 0;

	for (int i = 4; i + 1 < argc && n < MAX_ASK; i += 2, n++) {
		endpoint_parse(family, argv[i], argv[i + 1], &q[n].to);
		snprintf(q[n].text, sizeof(q[n].text), "question-%u", n);
	}
	fd = endpoint_socket(family, &q[0].to, SOCK_DGRAM);
	if (strcmp(method, "sendmmsg") == 0)
		ask_sendmmsg(fd, q, n);
	for (unsigned i = 0; i < n; i++) {
		if (strcmp(method, "connected") == 0)
			ask_connected(fd, &q[i]);
		else if (strcmp(method, "sendto") == 0)
			ask_sendto(fd, &q[i]);
		else if (strcmp(method, "sendmsg") == 0)
			ask_sendmsg(fd, &q[i]);
		receive(fd, method, answer, &from);
		printf("from=%s %s\n", endpoint_text(&from, text), answer);
		bad |= check_answer(q, n, answer, &from);
	}
	return bad;
}

static int follow_socket(const char *family, const struct endpoint *to)
{
	int fd = endpoint_socket(family, to, SOCK_DGRAM);

	if (connect(fd, (const struct sockaddr *)&to->ss, to->len) == 0)
		return fd;
	printf("error %s\n", errno_name(errno));
	fflush(stdout);
	close(fd);
	usleep(50000);
	return -1;
}

static int cmd_follow(char **argv)
{
	char last[MESSAGE_MAX] = "", answer[MESSAGE_MAX];
	int rounds = atoi(argv[5]) * 20, fd = -1;
	struct endpoint to;
	ssize_t n;

	endpoint_parse(argv[2], argv[3], argv[4], &to);
	for (; rounds > 0; rounds--) {
		if (fd < 0)
			fd = follow_socket(argv[2], &to);
		if (fd < 0)
			continue;
		n = send(fd, "question", 8, 0);
		if (n > 0) {
			usleep(50000);
			n = recv(fd, answer, sizeof(answer) - 1, MSG_DONTWAIT);
		}
		if (n < 0 && errno != EAGAIN) {
			printf("error %s\n", errno_name(errno));
			close(fd);
			fd = -1;
		} else if (n > 0) {
			answer[n] = '\0';
			*strchrnul(answer, ' ') = '\0';
			if (strcmp(answer, last) != 0)
				printf("%s\n", answer);
			strcpy(last, answer);
		}
		fflush(stdout);
	}
	return 0;
}

static int cmd_send(char **argv)
{
	struct endpoint e;
	int fd;

	endpoint_parse(argv[2], argv[3], argv[4], &e);
	fd = endpoint_socket(argv[2], &e, SOCK_DGRAM);
	if (sendto(fd, argv[5], strlen(argv[5]), 0, (struct sockaddr *)&e.ss, e.len) < 0)
		fail("sendto");
	printf("sent\n");
	return 0;
}

int main(int argc, char **argv)
{
	if (argc >= 5 && strcmp(argv[1], "serve") == 0)
		cmd_serve(argc, argv);
	if (argc >= 6 && strcmp(argv[1], "ask") == 0)
		return cmd_ask(argc, argv);
	if (argc == 6 && strcmp(argv[1], "follow") == 0)
		return cmd_follow(argv);
	if (argc == 6 && strcmp(argv[1], "send") == 0)
		return cmd_send(argv);
	fprintf(stderr, "usage: udp serve|ask|follow|send ...\n");
	return 2;
}
