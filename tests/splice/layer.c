// SPDX-License-Identifier: GPL-2.0-or-later
/* Other protocols on a connection, and the kernel's lists of connections. */
#include <errno.h>
#include <linux/mptcp.h>
#include <linux/tcp.h>
#include <linux/tls.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "behaviours.h"

#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP 262
#endif
#ifndef SOL_MPTCP
#define SOL_MPTCP 284
#endif
#ifndef SOL_TLS
#define SOL_TLS 282
#endif

static bool keyed(struct run *r, int fd, const char *what, int direction)
{
	struct tls12_crypto_info_aes_gcm_128 keys = {
		.info = {.version = TLS_1_2_VERSION, .cipher_type = TLS_CIPHER_AES_GCM_128},
		.iv = "iv",
		.key = "a key",
		.salt = "abc",
	};
	int e = setsockopt(fd, IPPROTO_TCP, TCP_ULP, "tls", sizeof("tls"));

	if (e < 0) {
		said_result(r, "ulp", e);
		return false;
	}
	e = setsockopt(fd, SOL_TLS, direction, &keys, sizeof(keys));
	said_result(r, what, e);
	return e == 0;
}

static void transport_tls(struct run *r)
{
	if (!keyed(r, r->client, "tx", TLS_TX) || !keyed(r, r->server, "rx", TLS_RX))
		return;
	put(r, r->client, 1000, 0);
	said_result(r, "good", get_all(r, r->server, 1000, 0));
}

static void said_fallback(struct run *r, int fd)
{
	struct mptcp_info i = {0};
	socklen_t len = sizeof(i);

	if (getsockopt(fd, SOL_MPTCP, MPTCP_INFO, &i, &len) < 0)
		said_result(r, "info", -1);
	else
		said(r, "fallback=%d", !!(i.mptcpi_flags & MPTCP_INFO_FLAG_FALLBACK));
}

static void multipath(struct run *r)
{
	int listener = socket(r->family, SOCK_STREAM, IPPROTO_MPTCP), client, server;
	struct sockaddr_in6 a = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	struct sockaddr_in *a4 = (void *)&a;
	socklen_t len = sizeof(a);

	if (listener < 0) {
		said_result(r, "socket", -1);
		return;
	}
	if (r->family == AF_INET) {
		memset(&a, 0, sizeof(a));
		a4->sin_family = AF_INET;
		a4->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		len = sizeof(*a4);
	}
	if (bind(listener, (struct sockaddr *)&a, len) < 0 || listen(listener, 1) < 0 ||
	    getsockname(listener, (struct sockaddr *)&a, &len) < 0)
		return;
	client = socket(r->family, SOCK_STREAM, IPPROTO_MPTCP);
	said_result(r, "connect", connect(client, (struct sockaddr *)&a, len));
	server = accept(listener, NULL, NULL);
	put(r, client, 1000, 0);
	said_result(r, "good", get_all(r, server, 1000, 0));
	put(r, server, 100, 0);
	said_result(r, "back", get_all(r, client, 100, 0));
	said_fallback(r, client);
}

/* The queues that /proc/net/tcp has of the server's socket, which is what ss and netstat show. */
static bool queues(struct run *r, unsigned *sent, unsigned *received)
{
	struct sockaddr_in6 own = {0}, peer = {0};
	socklen_t len = sizeof(own);
	unsigned local, remote;
	char line[512];
	bool found = false;
	FILE *f = fopen(r->family == AF_INET ? "/proc/net/tcp" : "/proc/net/tcp6", "re");

	if (!f)
		return false;
	getsockname(r->server, (struct sockaddr *)&own, &len);
	len = sizeof(peer);
	getpeername(r->server, (struct sockaddr *)&peer, &len);
	while (!found && fgets(line, sizeof(line), f))
		found = sscanf(line, "%*u: %*[0-9A-F]:%X %*[0-9A-F]:%X %*X %X:%X", &local, &remote,
			       sent, received) == 4 &&
			local == ntohs(own.sin6_port) && remote == ntohs(peer.sin6_port);
	fclose(f);
	return found;
}

static void listed(struct run *r)
{
	unsigned sent = 0, received = 0;

	put(r, r->client, 1000, 0);
	pause_ms(20);
	if (queues(r, &sent, &received))
		said(r, "Recv-Q=%u Send-Q=%u", received, sent);
	else
		said(r, "not listed");
}

const struct behaviour behaviours_layer[] = {
	{"kTLS", transport_tls, 0},
	{"MPTCP", multipath, ALONE},
	{"queues in /proc/net/tcp", listed, 0},
	{NULL, NULL, 0},
};
