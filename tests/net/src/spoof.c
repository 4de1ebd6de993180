// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * spoof SOURCE DESTINATION PORT TEXT
 *
 * Sends one UDP datagram through a raw socket with a source address of our choice (both IPv4 or
 * both IPv6). Prints "sent" or "error WHAT ERRNO".
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <netinet/udp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "netutil.h"

static uint32_t sum16(uint32_t sum, const void *data, size_t len)
{
	const uint8_t *p = data;

	for (size_t i = 0; i < len; i++)
		sum += i & 1 ? p[i] : (uint32_t)p[i] << 8;
	return sum;
}

static uint16_t fold(uint32_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return htons((uint16_t)~sum);
}

/* Appends the UDP header and text at `at`, with the checksum over the pseudo header as well. */
static size_t put_udp(uint8_t *at, uint32_t pseudo, const char *port, const char *text)
{
	struct udphdr udp = {0};
	size_t len = sizeof(udp) + strlen(text);

	udp.source = htons(40000);
	udp.dest = htons((uint16_t)atoi(port));
	udp.len = htons((uint16_t)len);
	memcpy(at, &udp, sizeof(udp));
	memcpy(at + sizeof(udp), text, len - sizeof(udp));
	udp.check = fold(sum16(pseudo + IPPROTO_UDP + (uint32_t)len, at, len));
	memcpy(at, &udp, sizeof(udp));
	return len;
}

static size_t build4(uint8_t *packet, char **argv, struct sockaddr_in *to)
{
	struct iphdr ip = {.version = 4, .ihl = 5, .ttl = 64, .protocol = IPPROTO_UDP};
	size_t len;

	if (inet_pton(AF_INET, argv[1], &ip.saddr) != 1 ||
	    inet_pton(AF_INET, argv[2], &ip.daddr) != 1)
		return 0;
	len = sizeof(ip) + put_udp(packet + sizeof(ip), sum16(0, &ip.saddr, 8), argv[3], argv[4]);
	ip.tot_len = htons((uint16_t)len);
	memcpy(packet, &ip, sizeof(ip));
	*to = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = ip.daddr};
	return len;
}

static size_t build6(uint8_t *packet, char **argv, struct sockaddr_in6 *to)
{
	struct ip6_hdr ip = {0};
	size_t len;

	ip.ip6_vfc = 6 << 4;
	ip.ip6_nxt = IPPROTO_UDP;
	ip.ip6_hlim = 64;
	if (inet_pton(AF_INET6, argv[1], &ip.ip6_src) != 1 ||
	    inet_pton(AF_INET6, argv[2], &ip.ip6_dst) != 1)
		return 0;
	len = put_udp(packet + sizeof(ip), sum16(0, &ip.ip6_src, 32), argv[3], argv[4]);
	ip.ip6_plen = htons((uint16_t)len);
	memcpy(packet, &ip, sizeof(ip));
	*to = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_addr = ip.ip6_dst};
	return sizeof(ip) + len;
}

int main(int argc, char **argv)
{
	struct sockaddr_storage to = {0};
	uint8_t packet[512] = {0};
	socklen_t to_len;
	size_t len;
	int fd;

	if (argc != 5 || strlen(argv[4]) > 256) {
		fprintf(stderr, "usage: spoof SOURCE DESTINATION PORT TEXT\n");
		return 2;
	}
	if (strchr(argv[1], ':')) {
		len = build6(packet, argv, (struct sockaddr_in6 *)&to);
		to_len = sizeof(struct sockaddr_in6);
		fd = socket(AF_INET6, SOCK_RAW, IPPROTO_RAW);
	} else {
		len = build4(packet, argv, (struct sockaddr_in *)&to);
		to_len = sizeof(struct sockaddr_in);
		fd = socket(AF_INET, SOCK_RAW, IPPROTO_RAW);
	}
	if (fd < 0)
		fail("socket");
	if (len == 0) {
		fprintf(stderr, "spoof: not two addresses of one family\n");
		return 2;
	}
	if (sendto(fd, packet, len, 0, (struct sockaddr *)&to, to_len) < 0)
		fail("sendto");
	printf("sent\n");
	return 0;
}
