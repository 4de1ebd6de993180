/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <arpa/inet.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "net/resend.h"
#include "net/netlink.h"

struct resend {
	union {
		uint8_t bytes[RESEND_MAX];
		struct iphdr v4;
		struct ip6_hdr v6;
		uint16_t words[RESEND_MAX / 2];
	} p;
	size_t len, header; /* of it, and of its IP header */
	struct ax_addr from, to;
	int fd;
};

static bool read_v4(struct resend *s)
{
	s->header = (size_t)s->p.v4.ihl * 4;
	s->from = addr_from_v4(s->p.v4.saddr);
	s->to = addr_from_v4(s->p.v4.daddr);
	return s->header >= sizeof(s->p.v4) && s->p.v4.protocol == IPPROTO_TCP &&
	       ntohs(s->p.v4.tot_len) == s->len;
}

static bool read_v6(struct resend *s)
{
	s->header = sizeof(s->p.v6);
	memcpy(&s->from, &s->p.v6.ip6_src, sizeof(s->from));
	memcpy(&s->to, &s->p.v6.ip6_dst, sizeof(s->to));
	return s->p.v6.ip6_nxt == IPPROTO_TCP && ntohs(s->p.v6.ip6_plen) + s->header == s->len;
}

/* NULL: it is no SYN without data. */
static struct tcphdr *read_packet(struct resend *s)
{
	uint8_t version = s->p.bytes[0] >> 4;
	struct tcphdr *th;

	if (s->len < sizeof(s->p.v4) + sizeof(*th))
		return NULL;
	if (version == 4 ? !read_v4(s) : version != 6 || !read_v6(s))
		return NULL;
	if (s->header + sizeof(*th) > s->len || s->header % 4)
		return NULL;
	th = (struct tcphdr *)(void *)(s->p.bytes + s->header);
	return th->syn && !th->ack && s->header + th->doff * 4u == s->len ? th : NULL;
}

/* RFC 1071 */
static uint64_t sum_words(const void *data, size_t len, uint64_t sum)
{
	const uint8_t *p = data;

	for (size_t i = 0; i + 1 < len; i += 2) {
		uint16_t w;

		memcpy(&w, p + i, sizeof(w));
		sum += w;
	}
	return sum;
}

static void set_checksum(struct resend *s, struct tcphdr *th)
{
	bool v4 = addr_is_v4(&s->to);
	uint16_t tcp_len = (uint16_t)(s->len - s->header);
	uint64_t sum = (uint64_t)htons(tcp_len) + htons(IPPROTO_TCP);

	/* the pseudo header */
	sum = sum_words(&s->from.w[v4 ? 3 : 0], v4 ? 4 : 16, sum);
	sum = sum_words(&s->to.w[v4 ? 3 : 0], v4 ? 4 : 16, sum);
	th->check = 0;
	sum = sum_words(th, tcp_len, sum);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	th->check = (uint16_t)~sum;
}

/* (a raw socket of this protocol takes whole packets, header included) */
static int open_raw(void *arg)
{
	const struct resend *s = arg;
	int fd = socket(addr_is_v4(&s->to) ? AF_INET : AF_INET6,
			SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_RAW);

	return fd < 0 ? -errno : fd;
}

int resend_syn(int netns_fd, const void *packet, size_t len, const struct ax_addr *from,
	       const struct ax_addr *to)
{
	struct resend s = {.len = len};
	struct sockaddr_storage ss;
	autoclose int fd = -1;
	struct tcphdr *th;
	socklen_t ss_len;

	if (len > sizeof(s.p.bytes))
		return -EINVAL;
	memcpy(s.p.bytes, packet, len);
	th = read_packet(&s);
	if (!th || !addr_eq(&s.from, from) || !addr_eq(&s.to, to))
		return -EINVAL;
	set_checksum(&s, th);
	fd = netns_fd < 0 ? open_raw(&s) : netns_call(netns_fd, open_raw, &s);
	if (fd < 0)
		return fd;
	ss_len = addr_to_sockaddr(&s.to, 0, &ss);
	return sendto(fd, s.p.bytes, len, 0, (struct sockaddr *)&ss, ss_len) < 0 ? -errno : 0;
}
