// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * sniff DEVICE
 *
 * What IP packets pass a device with Ethernet, each kind once, as it comes: "SOURCE DESTINATION udp
 * PORT" with the destination's port, or with "ip PROTOCOL". Says "listening" first; ends when it is
 * ended.
 */
#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define KINDS_MAX 4096

static char seen[KINDS_MAX][128];

static void say(const char *line)
{
	for (size_t i = 0; i < KINDS_MAX; i++) {
		if (!strcmp(seen[i], line))
			return;
		if (!seen[i][0]) {
			strcpy(seen[i], line);
			puts(line);
			return;
		}
	}
}

static void tell(int family, const void *from, const void *to, int proto, const unsigned char *l4,
		 size_t len)
{
	char line[128], a[INET6_ADDRSTRLEN], b[INET6_ADDRSTRLEN];

	inet_ntop(family, from, a, sizeof(a));
	inet_ntop(family, to, b, sizeof(b));
	if (proto == IPPROTO_UDP && len >= 4)
		snprintf(line, sizeof(line), "%s %s udp %d", a, b, l4[2] << 8 | l4[3]);
	else
		snprintf(line, sizeof(line), "%s %s ip %d", a, b, proto);
	say(line);
}

/* A packet from its IP header on. */
static void look(const unsigned char *p, size_t len)
{
	struct iphdr ip4;
	struct ip6_hdr ip6;

	if (len >= sizeof(ip4) && p[0] >> 4 == 4) {
		size_t at = (size_t)(p[0] & 15) * 4;

		memcpy(&ip4, p, sizeof(ip4));
		if (ip4.frag_off & htons(0x1fff) || at > len)
			at = len;
		tell(AF_INET, &ip4.saddr, &ip4.daddr, ip4.protocol, p + at, len - at);
	} else if (len >= sizeof(ip6) && p[0] >> 4 == 6) {
		memcpy(&ip6, p, sizeof(ip6));
		tell(AF_INET6, &ip6.ip6_src, &ip6.ip6_dst, ip6.ip6_nxt, p + sizeof(ip6),
		     len - sizeof(ip6));
	}
}

int main(int argc, char **argv)
{
	struct sockaddr_ll at = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL)};
	int fd = socket(AF_PACKET, SOCK_DGRAM, htons(ETH_P_ALL));
	static unsigned char buf[65536];

	setvbuf(stdout, NULL, _IOLBF, 0);
	at.sll_ifindex = argc == 2 ? (int)if_nametoindex(argv[1]) : 0;
	if (fd < 0 || !at.sll_ifindex || bind(fd, (struct sockaddr *)&at, sizeof(at))) {
		perror("sniff");
		return 1;
	}
	puts("listening");
	for (;;) {
		ssize_t n = recv(fd, buf, sizeof(buf), 0);

		if (n > 0)
			look(buf, (size_t)n);
	}
}
