// SPDX-License-Identifier: GPL-2.0-or-later
/* What a connection says of itself. */
#include <errno.h>
#include <linux/net_tstamp.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "behaviours.h"

static void keep_alive(struct run *r)
{
	int on = 1, idle = 1;

	said_result(r, "set", setsockopt(r->client, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on)));
	setsockopt(r->client, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	setsockopt(r->client, IPPROTO_TCP, TCP_KEEPINTVL, &idle, sizeof(idle));
	poll(NULL, 0, 1300); /* the kernel's clock, however slow the machine */
	put(r, r->client, 100, 0);
	said_result(r, "good", get_all(r, r->server, 100, 0));
}

static void user_time_out(struct run *r)
{
	unsigned ms = 1000;

	said_result(r, "set",
		    setsockopt(r->client, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof(ms)));
	put(r, r->client, 100, 0);
	pause_ms(100);
	said_result(r, "good", get_all(r, r->server, 100, 0));
}

static void sent_stamps(struct run *r)
{
	int flags = SOF_TIMESTAMPING_TX_SOFTWARE | SOF_TIMESTAMPING_TX_ACK |
		    SOF_TIMESTAMPING_SOFTWARE | SOF_TIMESTAMPING_OPT_ID;
	char control[512];
	struct msghdr m = {.msg_control = control, .msg_controllen = sizeof(control)};
	int n = 0;

	setsockopt(r->client, SOL_SOCKET, SO_TIMESTAMPING, &flags, sizeof(flags));
	put(r, r->client, 100, 0);
	said_result(r, "good", get_all(r, r->server, 100, 0));
	pause_ms(60);
	while (recvmsg(r->client, &m, MSG_ERRQUEUE | MSG_DONTWAIT) >= 0) {
		m.msg_controllen = sizeof(control);
		n++;
	}
	said(r, "stamps=%s", n ? "some" : "none");
}

static void buffer_sizes(struct run *r)
{
	int small = 4096;

	setsockopt(r->server, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	setsockopt(r->client, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
	for (int i = 0; i < 50; i++) {
		put(r, r->client, 1000, (uint64_t)i * 1000);
		if (get_all(r, r->server, 1000, (uint64_t)i * 1000) != 1000) {
			said(r, "bad at %d", i);
			return;
		}
	}
	said(r, "good");
}

static void meminfo_queue(struct run *r)
{
	unsigned mem[9] = {0};
	socklen_t len = sizeof(mem);

	put(r, r->client, 20000, 0);
	pause_ms(20);
	getsockopt(r->server, SOL_SOCKET, SO_MEMINFO, mem, &len);
	said(r, "charged=%d", mem[0] > 0);
}

/* What checkpointing does: the queue's sequence number and length, by TCP_REPAIR. */
static void repair(struct run *r)
{
	int on = TCP_REPAIR_ON, off = TCP_REPAIR_OFF, queue = TCP_RECV_QUEUE;
	char buf[64];

	put(r, r->client, 40, 0);
	pause_ms(20);
	said_result(r, "on", setsockopt(r->server, IPPROTO_TCP, TCP_REPAIR, &on, sizeof(on)));
	setsockopt(r->server, IPPROTO_TCP, TCP_REPAIR_QUEUE, &queue, sizeof(queue));
	said_result(r, "queue", recv(r->server, buf, sizeof(buf), MSG_PEEK | MSG_DONTWAIT));
	setsockopt(r->server, IPPROTO_TCP, TCP_REPAIR, &off, sizeof(off));
	said_result(r, "good", get_all(r, r->server, 40, 0));
}

static void incoming_cpu(struct run *r)
{
	int cpu = -1, id = 0;
	socklen_t len = sizeof(cpu);

	put(r, r->client, 100, 0);
	get_all(r, r->server, 100, 0);
	getsockopt(r->server, SOL_SOCKET, SO_INCOMING_CPU, &cpu, &len);
	len = sizeof(id);
	getsockopt(r->server, SOL_SOCKET, SO_INCOMING_NAPI_ID, &id, &len);
	said(r, "cpu=%d", cpu >= 0);
}

static void put_100000(struct run *r)
{
	put(r, r->client, 100000, 0);
}

/* A process of its own writes: how much fits into the other end's window differs between kernels.
 */
static void notsent_low_water(struct run *r)
{
	unsigned low = 16384;

	setsockopt(r->client, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &low, sizeof(low));
	later(r, 0, put_100000);
	said_result(r, "good", get_all(r, r->server, 100000, 0));
	said(r, "out=%d", !!(events_within(r->client, POLLOUT, COMES_MS) & POLLOUT));
}

const struct behaviour behaviours_option[] = {
	{"SO_KEEPALIVE", keep_alive, 0},
	{"TCP_USER_TIMEOUT", user_time_out, 0},
	{"SO_TIMESTAMPING of what is sent", sent_stamps, 0},
	{"small buffers", buffer_sizes, 0},
	{"SO_MEMINFO", meminfo_queue, 0},
	{"TCP_REPAIR", repair, 0},
	{"SO_INCOMING_CPU", incoming_cpu, 0},
	{"TCP_NOTSENT_LOWAT", notsent_low_water, 0},
	{NULL, NULL, 0},
};
