// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/lib/checksums.h"

#include <arpa/inet.h>
#include <linux/ip.h>
#include <linux/ipv6.h>

uint64_t sum_up(const void *data, size_t len)
{
	const uint8_t *b = data;
	uint64_t sum = 0;

	for (size_t i = 0; i + 1 < len; i += 2)
		sum += (uint32_t)b[i] << 8 | b[i + 1];
	return len & 1 ? sum + ((uint32_t)b[len - 1] << 8) : sum;
}

uint16_t sum_folded(uint64_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

bool sums_to_zero(uint64_t sum)
{
	while (sum >> 16)
		sum = (sum >> 16) + (sum & 0xffff);
	return sum == 0xffff;
}

/* The transport checksum of a whole packet. */
static bool l4_sum_right(const uint8_t *l4, size_t len, uint8_t proto, const void *addrs,
			 size_t addrs_len)
{
	uint64_t pseudo = sum_up(addrs, addrs_len) + len + proto;

	if (proto == IPPROTO_UDP && !l4[6] && !l4[7])
		return addrs_len == 8; /* IPv4 may leave it out */
	if (proto == IPPROTO_ICMP)
		pseudo = 0;
	else if (proto != IPPROTO_TCP && proto != IPPROTO_UDP && proto != IPPROTO_ICMPV6)
		return true;
	return sums_to_zero(pseudo + sum_up(l4, len));
}

bool ip_sums_right(const uint8_t *ip, size_t len)
{
	const struct iphdr *v4 = (const void *)ip;
	const struct ipv6hdr *v6 = (const void *)ip;

	if (v4->version == 6)
		return l4_sum_right(ip + 40, ntohs(v6->payload_len), v6->nexthdr, &v6->saddr, 32);
	if (len < 20 || !sums_to_zero(sum_up(ip, v4->ihl * 4u)))
		return false;
	if (v4->frag_off & htons(0x3fff))
		return true;
	if (v4->protocol == IPPROTO_ICMP && (ip[20] == 3 || ip[20] == 11) &&
	    !sums_to_zero(sum_up(ip + 28, 20)))
		return false;
	return l4_sum_right(ip + v4->ihl * 4, ntohs(v4->tot_len) - v4->ihl * 4u, v4->protocol,
			    &v4->saddr, 8);
}
