// SPDX-License-Identifier: GPL-2.0-or-later
// beside others
// timeout: 300
/* What rules match: every field, fields together, the first of several rules; each in every way in
 * which a list can be compiled. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <bpf/bpf.h>
#include <linux/bpf.h>

#include "tests/lib/filter_judge.h"
#include "tests/lib/quick.h"

#define LIST_MAX 32768
#define PROBES	 24
#define FILLERS	 70 /* 70 values in each of three fields are too many for a table of products */

struct probe {
	const char *packet;
	bool hit;
	enum ax_reason reason;
};
struct field_row {
	const char *name, *rule; /* its conditions */
	struct probe probes[PROBES];
	uint32_t fields; /* bits by enum ax_field that the list uses then */
};

/* clang-format off */
#define YES(p)	      {(p), true, AX_REASON_NONE}
#define NO(p)	      {(p), false, AX_REASON_NONE}
#define YES_LATER(p)  {(p), true, AX_REASON_LATER_FRAGMENT}
#define NO_LATER(p)   {(p), false, AX_REASON_LATER_FRAGMENT}
#define YES_OPTIONS(p) {(p), true, AX_REASON_IP_OPTIONS}
#define F(name)	      (1u << AX_FIELD_##name)

#define SETS \
	"sets:\n" \
	"  nets: [10.1.0.0/16, 10.2.3.4, 'fd01::/32', 192.0.2.0/31]\n" \
	"  web: [80, 443, 8000-8099]\n"

static const struct field_row rows[] = {
	{"src, an address", "src: 10.0.0.1", {
		YES("udp 10.0.0.1:1 > 10.0.0.2:2"), YES("icmp 10.0.0.1 > 10.0.0.2"),
		YES("tcp 10.0.0.1:1 > 10.0.0.1:2"), NO("udp 10.0.0.0:1 > 10.0.0.1:2"),
		NO("udp 10.0.0.2:1 > 10.0.0.1:2"), NO("udp [::a00:1]:1 > [fd00::1]:2"),
		NO("arp 10.0.0.1 > 10.0.0.2"),
		YES_LATER("udp 10.0.0.1 > 10.0.0.2 frag later data 'xxxxxxxx'")}, F(SRC)},
	{"src, a prefix", "src: 10.128.0.0/9", {
		YES("udp 10.128.0.0:1 > 1.2.3.4:2"), YES("udp 10.255.255.255:1 > 1.2.3.4:2"),
		YES("vlan 3 udp 10.200.1.1:1 > 1.2.3.4:2"), NO("udp 10.127.255.255:1 > 1.2.3.4:2"),
		NO("udp 11.0.0.0:1 > 10.128.0.0:2")}, F(SRC)},
	{"src, prefixes that are not whole bytes", "src: [10.0.0.2/31, 10.0.1.16/28]", {
		YES("udp 10.0.0.2:1 > 1.2.3.4:2"), YES("udp 10.0.0.3:1 > 1.2.3.4:2"),
		YES("udp 10.0.1.16:1 > 1.2.3.4:2"), YES("udp 10.0.1.31:1 > 1.2.3.4:2"),
		NO("udp 10.0.0.1:1 > 1.2.3.4:2"), NO("udp 10.0.0.4:1 > 1.2.3.4:2"),
		NO("udp 10.0.1.15:1 > 1.2.3.4:2"), NO("udp 10.0.1.32:1 > 1.2.3.4:2")}, F(SRC)},
	{"src, all of IPv4", "src: 0.0.0.0/0", {
		YES("udp 0.0.0.0:1 > 1.2.3.4:2"), YES("udp 255.255.255.255:1 > 1.2.3.4:2"),
		NO("udp [fd00::1]:1 > [fd00::2]:2"), NO("arp 10.0.0.1 > 10.0.0.2"),
		NO("udp [::]:1 > [fd00::2]:2")}, F(SRC)},
	{"src, all of IPv6", "src: '::/0'", {
		YES("udp [fd00::1]:1 > [fd00::2]:2"), YES("udp [::]:1 > [fd00::2]:2"),
		YES("udp [ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:1 > [fd00::2]:2"),
		NO("udp 10.0.0.1:1 > 1.2.3.4:2"), NO("arp 10.0.0.1 > 10.0.0.2")}, F(SRC)},
	{"src, both families", "src: [10.0.0.0/8, 'fd00::/8']", {
		YES("udp 10.9.9.9:1 > 1.2.3.4:2"), YES("udp [fdff::1]:1 > [2001:db8::2]:2"),
		NO("udp 1.2.3.4:1 > 10.9.9.9:2"), NO("udp [fe00::]:1 > [fd00::2]:2")}, F(SRC)},
	{"dst, IPv6 prefixes", "dst: ['fd00:0:0:1::/64', 'fd00:0:0:2:8000::/65', 'fd00::ff:0/127']", {
		YES("udp [fd00::9]:1 > [fd00:0:0:1::]:2"),
		YES("udp [fd00::9]:1 > [fd00:0:0:1:ffff:ffff:ffff:ffff]:2"),
		YES("udp [fd00::9]:1 > [fd00:0:0:2:8000::]:2"),
		YES("udp [fd00::9]:1 > [fd00:0:0:2:ffff::1]:2"),
		YES("udp [fd00::9]:1 > [fd00::ff:0]:2"), YES("udp [fd00::9]:1 > [fd00::ff:1]:2"),
		NO("udp [fd00::9]:1 > [fd00:0:0:2:7fff:ffff:ffff:ffff]:2"),
		NO("udp [fd00::9]:1 > [fd00:0:0:3::]:2"), NO("udp [fd00::9]:1 > [fd00::ff:2]:2"),
		NO("udp [fd00::9]:1 > [fd00::fe:ffff]:2"), NO("udp [fd00:0:0:1::]:1 > [fd00::9]:2"),
		NO("udp 10.0.0.1:1 > 10.0.0.2:2")}, F(DST)},
	{"dst, a set", "dst: '@nets'", {
		YES("udp 1.1.1.1:1 > 10.1.255.1:2"), YES("udp 1.1.1.1:1 > 10.2.3.4:2"),
		YES("udp [fd00::1]:1 > [fd01::9]:2"), YES("udp 1.1.1.1:1 > 192.0.2.1:2"),
		NO("udp 1.1.1.1:1 > 10.2.3.5:2"), NO("udp 1.1.1.1:1 > 192.0.2.2:2"),
		NO("udp [fd00::1]:1 > [fd01:1::9]:2"), NO("udp 10.1.2.3:1 > 1.1.1.1:2")}, F(DST)},
	{"dst, a set and more", "dst: ['@nets', 172.31.0.0/16]", {
		YES("udp 1.1.1.1:1 > 10.2.3.4:2"), YES("udp 1.1.1.1:1 > 172.31.3.4:2"),
		NO("udp 1.1.1.1:1 > 172.30.3.4:2")}, F(DST)},
	{"proto, a name", "proto: tcp", {
		YES("tcp 10.0.0.1:1 > 10.0.0.2:2"), YES("tcp [fd00::1]:1 > [fd00::2]:2 flags none"),
		YES_LATER("tcp 10.0.0.1 > 10.0.0.2 frag later data 'x'"),
		YES("tcp [fd00::1]:1 > [fd00::2]:2 | 20=3c 54+0600000000000000 len"),
		NO("udp 10.0.0.1:1 > 10.0.0.2:2"), NO("icmp 10.0.0.1 > 10.0.0.2"),
		NO("arp 10.0.0.1 > 10.0.0.2"), NO("6 10.0.0.1:1 > 10.0.0.2:2 | 12=88cc")}, F(PROTO)},
	{"proto, many", "proto: [gre, 132, 200-255]", {
		YES("gre 10.0.0.1 > 10.0.0.2"), YES("132 10.0.0.1 > 10.0.0.2"),
		YES("200 fd00::1 > fd00::2"), YES("255 10.0.0.1 > 10.0.0.2"),
		NO("199 10.0.0.1 > 10.0.0.2"), NO("46 10.0.0.1 > 10.0.0.2"),
		NO("48 fd00::1 > fd00::2"), NO("arp 10.0.0.1 > 10.0.0.2")}, F(PROTO)},
	{"proto 0", "proto: 0", {
		YES("0 10.0.0.1 > 10.0.0.2"), NO("1 10.0.0.1 > 10.0.0.2"),
		NO("arp 10.0.0.1 > 10.0.0.2")}, F(PROTO)},
	{"sport", "sport: [0, 53, 1024-2047, 65535]", {
		YES("udp 10.0.0.1:53 > 10.0.0.2:1"), YES("tcp 10.0.0.1:1024 > 10.0.0.2:1"),
		YES("tcp [fd00::1]:2047 > [fd00::2]:1"), YES("udp 10.0.0.1:65535 > 10.0.0.2:1"),
		YES("udp 10.0.0.1:1 > 10.0.0.2:1 | 34=0000"), NO("udp 10.0.0.1:1 > 10.0.0.2:53"),
		NO("tcp 10.0.0.1:2048 > 10.0.0.2:1"), NO("tcp 10.0.0.1:1023 > 10.0.0.2:1"),
		NO("icmp 10.0.0.1 > 10.0.0.2"), NO("132 10.0.0.1 > 10.0.0.2 data hex:00350035"),
		NO_LATER("udp 10.0.0.1 > 10.0.0.2 frag later data hex:00350035")}, F(SPORT)},
	{"dport, a set", "dport: ['@web', 22]", {
		YES("tcp 10.0.0.1:1 > 10.0.0.2:80"), YES("udp [fd00::1]:1 > [fd00::2]:443"),
		YES("tcp 10.0.0.1:1 > 10.0.0.2:8000"), YES("tcp 10.0.0.1:1 > 10.0.0.2:8099"),
		YES("tcp 10.0.0.1:1 > 10.0.0.2:22"), NO("tcp 10.0.0.1:1 > 10.0.0.2:8100"),
		NO("tcp 10.0.0.1:80 > 10.0.0.2:7999"), NO("arp 10.0.0.1 > 10.0.0.2")}, F(DPORT)},
	{"dport of one protocol", "proto: udp\n    dport: 53", {
		YES("udp 10.0.0.1:1 > 10.0.0.2:53"), NO("tcp 10.0.0.1:1 > 10.0.0.2:53"),
		NO("udp 10.0.0.1:53 > 10.0.0.2:1")}, F(PROTO) | F(DPORT)},
	{"flags syn, not ack", "flags: [syn, '!ack']", {
		YES("tcp 10.0.0.1:1 > 10.0.0.2:2 flags syn"),
		YES("tcp [fd00::1]:1 > [fd00::2]:2 flags syn,ece,cwr,fin"),
		NO("tcp 10.0.0.1:1 > 10.0.0.2:2 flags syn,ack"),
		NO("tcp 10.0.0.1:1 > 10.0.0.2:2 flags none"), NO("tcp 10.0.0.1:1 > 10.0.0.2:2 flags rst"),
		NO("udp 10.0.0.1:1 > 10.0.0.2:2"),
		NO_LATER("tcp 10.0.0.1 > 10.0.0.2 frag later data 'xxxxxxxxxxxxxxxxxxxx'")},
		F(TCP_FLAGS)},
	{"flags that must not be there", "flags: ['!syn', '!fin', '!rst', '!psh', '!ack', '!urg']", {
		YES("tcp 10.0.0.1:1 > 10.0.0.2:2 flags none"),
		YES("tcp 10.0.0.1:1 > 10.0.0.2:2 flags cwr"),
		NO("tcp 10.0.0.1:1 > 10.0.0.2:2 flags urg"), NO("tcp 10.0.0.1:1 > 10.0.0.2:2 flags fin"),
		NO("udp 10.0.0.1:1 > 10.0.0.2:2"), NO("icmp 10.0.0.1 > 10.0.0.2")}, F(TCP_FLAGS)},
	{"flags, all that there are", "flags: [fin, syn, rst, psh, ack, urg, ece, cwr]", {
		YES("tcp 10.0.0.1:1 > 10.0.0.2:2 | 47=ff"), NO("tcp 10.0.0.1:1 > 10.0.0.2:2 | 47=7f"),
		NO("tcp 10.0.0.1:1 > 10.0.0.2:2 | 47=fe")}, F(TCP_FLAGS)},
	{"icmp, types and codes", "icmp: [echo-request, 3/4, 11]", {
		YES("icmp 10.0.0.1 > 10.0.0.2"), YES("icmp 10.0.0.1 > 10.0.0.2 type 8/9"),
		YES("icmp 10.0.0.1 > 10.0.0.2 type 3/4"), YES("icmp 10.0.0.1 > 10.0.0.2 type 11/255"),
		YES("icmp 10.0.0.1 > 10.0.0.2 frag first"), NO("icmp 10.0.0.1 > 10.0.0.2 type 3/3"),
		NO("icmp 10.0.0.1 > 10.0.0.2 type 0"), NO("icmp6 fd00::1 > fd00::2 type 3/4"),
		NO("icmp6 fd00::1 > fd00::2 type 11"), NO("udp 10.0.0.1:1 > 10.0.0.2:2 | 34=0800"),
		NO_LATER("icmp 10.0.0.1 > 10.0.0.2 frag later data hex:0800000000000000"),
		NO("arp 10.0.0.1 > 10.0.0.2")}, F(ICMP)},
	{"icmp6", "icmp6: [echo-request, 1/4, 200]", {
		YES("icmp6 fd00::1 > fd00::2"), YES("icmp6 fd00::1 > fd00::2 type 1/4"),
		YES("icmp6 fd00::1 > fd00::2 type 200/7"),
		YES("icmp6 fd00::1 > fd00::2 | 20=3c 54+3a00000000000000 len"),
		NO("icmp6 fd00::1 > fd00::2 type 1/3"), NO("icmp6 fd00::1 > fd00::2 type 129"),
		NO("icmp 10.0.0.1 > 10.0.0.2 type 128"), NO("icmp 10.0.0.1 > 10.0.0.2 type 200")},
		F(ICMP)},
	{"icmp and icmp6", "icmp: echo-reply\n    icmp6: echo-reply", {
		YES("icmp 10.0.0.1 > 10.0.0.2 type 0"), YES("icmp6 fd00::1 > fd00::2 type 129"),
		NO("icmp 10.0.0.1 > 10.0.0.2 type 129"), NO("icmp6 fd00::1 > fd00::2 type 0"),
		NO("udp 10.0.0.1:1 > 10.0.0.2:2")}, F(ICMP)},
	{"vlan", "vlan: [0, 100, 200-299, 4095]", {
		YES("vlan 100 udp 10.0.0.1:1 > 10.0.0.2:2"), YES("vlan 100:88a8 arp 10.0.0.1 > 10.0.0.2"),
		YES("vlan 200:9100 udp [fd00::1]:1 > [fd00::2]:2"),
		YES("vlan 299 vlan 5 udp 10.0.0.1:1 > 10.0.0.2:2"),
		YES("vlan 100 udp 10.0.0.1:1 > 10.0.0.2:2 | 14=f064"),
		YES("vlan 0 udp 10.0.0.1:1 > 10.0.0.2:2"),
		YES("vlan 1 udp 10.0.0.1:1 > 10.0.0.2:2 | 14=0fff"),
		NO("vlan 5 vlan 100 udp 10.0.0.1:1 > 10.0.0.2:2"),
		NO("vlan 300 udp 10.0.0.1:1 > 10.0.0.2:2"), NO("vlan 101 udp 10.0.0.1:1 > 10.0.0.2:2"),
		NO("udp 10.0.0.1:1 > 10.0.0.2:2"), NO("arp 10.0.0.1 > 10.0.0.2")}, F(VLAN)},
	{"vlan none", "vlan: none", {
		YES("udp 10.0.0.1:1 > 10.0.0.2:2"), YES("arp 10.0.0.1 > 10.0.0.2"),
		YES("udp [fd00::1]:1 > [fd00::2]:2 | 12=88cc"), NO("vlan 0 udp 10.0.0.1:1 > 10.0.0.2:2"),
		NO("vlan 5:88a8 vlan 6 udp 10.0.0.1:1 > 10.0.0.2:2")}, F(VLAN)},
	{"fragment none", "fragment: none", {
		YES("udp 10.0.0.1:1 > 10.0.0.2:2"), YES("udp [fd00::1]:1 > [fd00::2]:2"),
		YES("udp [fd00::1]:1 > [fd00::2]:2 | 20=2c 54+1100000000000001 len"),
		YES_OPTIONS("udp 10.0.0.1:1 > 10.0.0.2:2 | 14=46 34+01010101 len"),
		NO("udp 10.0.0.1:1 > 10.0.0.2:2 frag first"), NO("arp 10.0.0.1 > 10.0.0.2"),
		NO_LATER("udp 10.0.0.1 > 10.0.0.2 frag later data 'x'")}, F(FRAGMENT)},
	{"fragment first", "fragment: first", {
		YES("udp 10.0.0.1:1 > 10.0.0.2:2 frag first"),
		YES("udp [fd00::1]:1 > [fd00::2]:2 frag first"), NO("udp 10.0.0.1:1 > 10.0.0.2:2"),
		NO("arp 10.0.0.1 > 10.0.0.2"),
		NO_LATER("udp fd00::1 > fd00::2 frag later data 'x'")}, F(FRAGMENT)},
	{"fragments", "fragment: [first, later]", {
		YES("udp 10.0.0.1:1 > 10.0.0.2:2 frag first"),
		YES_LATER("udp 10.0.0.1 > 10.0.0.2 frag later=8 data 'x'"),
		YES_LATER("udp fd00::1 > fd00::2 frag later=65528"),
		YES_LATER("udp 10.0.0.1 > 10.0.0.2 frag later data 'x' | 20=2001"),
		NO("udp 10.0.0.1:1 > 10.0.0.2:2"), NO("arp 10.0.0.1 > 10.0.0.2")}, F(FRAGMENT)},
	{"length", "length: [0-60, 100, 1500-]", {
		YES("udp 10.0.0.1:1 > 10.0.0.2:2"), YES("udp 10.0.0.1:1 > 10.0.0.2:2 len 18"),
		YES("udp 10.0.0.1:1 > 10.0.0.2:2 len 58"), YES("udp 10.0.0.1:1 > 10.0.0.2:2 | pad58"),
		YES("udp 10.0.0.1:1 > 10.0.0.2:2 len 1458"), YES("arp 10.0.0.1 > 10.0.0.2"),
		YES("udp 10.0.0.1:1 > 10.0.0.2:2 len 3000"), YES("udp 10.0.0.1:1 > 10.0.0.2:2 len 9000"),
		NO("udp 10.0.0.1:1 > 10.0.0.2:2 len 19"), NO("udp 10.0.0.1:1 > 10.0.0.2:2 len 57"),
		NO("udp 10.0.0.1:1 > 10.0.0.2:2 len 59"), NO("udp 10.0.0.1:1 > 10.0.0.2:2 len 1457"),
		NO("arp 10.0.0.1 > 10.0.0.2 | pad19")}, F(LENGTH)},
	{"length, of what no IP header measures", "length: 4000-", {
		YES("arp 10.0.0.1 > 10.0.0.2 | pad4500"),
		YES("udp 10.0.0.1:1 > 10.0.0.2:2 len 9 | pad4500"),
		YES("vlan 5 udp [fd00::1]:1 > [fd00::2]:2 | pad4500"),
		NO("arp 10.0.0.1 > 10.0.0.2 | pad2000"),
		NO("udp 10.0.0.1:1 > 10.0.0.2:2 | pad2000")}, F(LENGTH)},
	{"mac", "mac: ['02:00:00:00:00:07', '52:54:00:ab:cd:ef']", {
		YES("udp 10.0.0.1:1 > 10.0.0.2:2 mac 02:00:00:00:00:07 > 02:00:00:00:00:02"),
		YES("vlan 5 arp 10.0.0.1 > 10.0.0.2 | 6=525400abcdef"),
		NO("udp 10.0.0.1:1 > 10.0.0.2:2"),
		NO("udp 10.0.0.1:1 > 10.0.0.2:2 mac 02:00:00:00:00:08 > 02:00:00:00:00:07"),
		NO("udp 10.0.0.1:1 > 10.0.0.2:2 mac 02:00:00:00:00:06 > 02:00:00:00:00:07"),
		NO("udp 10.0.0.1:1 > 10.0.0.2:2 | 6=525400abcdee"),
		NO("udp 10.0.0.1:1 > 10.0.0.2:2 | 6=ffffffffffff")}, F(MAC)},
	{"ttl", "ttl: [1-5, 64]", {
		YES("udp 10.0.0.1:1 > 10.0.0.2:2"), YES("udp [fd00::1]:1 > [fd00::2]:2 ttl 5"),
		NO("udp 10.0.0.1:1 > 10.0.0.2:2 ttl 6"), NO("arp 10.0.0.1 > 10.0.0.2")}, F(TTL)},
	{"dscp", "dscp: [ef, 10-12, 0]", {
		YES("udp 10.0.0.1:1 > 10.0.0.2:2 dscp ef"), YES("udp 10.0.0.1:1 > 10.0.0.2:2 ecn ce"),
		YES("udp [fd00::1]:1 > [fd00::2]:2 dscp af12 ecn ect1"),
		YES("udp [fd00::1]:1 > [fd00::2]:2 dscp ef ecn ce"),
		YES_LATER("udp [fd00::1] > [fd00::2] frag later dscp 11 data 'xxxxxxxx'"),
		NO("udp 10.0.0.1:1 > 10.0.0.2:2 dscp 47"), NO("udp 10.0.0.1:1 > 10.0.0.2:2 dscp 1"),
		NO("udp [fd00::1]:1 > [fd00::2]:2 dscp 14"),
		NO("udp [fd00::1]:1 > [fd00::2]:2 dscp 45 ecn ce"),
		NO("arp 10.0.0.1 > 10.0.0.2")}, F(DSCP)},
	{"ecn", "ecn: [ce, ect1]", {
		YES("udp 10.0.0.1:1 > 10.0.0.2:2 ecn ce"), YES("udp 10.0.0.1:1 > 10.0.0.2:2 ecn ect1 dscp ef"),
		YES("udp [fd00::1]:1 > [fd00::2]:2 ecn ce dscp 63"),
		NO("udp 10.0.0.1:1 > 10.0.0.2:2"), NO("udp 10.0.0.1:1 > 10.0.0.2:2 ecn ect0 dscp 7"),
		NO("udp [fd00::1]:1 > [fd00::2]:2 dscp 63"),
		NO("udp [fd00::1]:1 > [fd00::2]:2 ecn ect0"), NO("arp 10.0.0.1 > 10.0.0.2")}, F(ECN)},
	{"a client and a server", "src: 10.0.0.0/8\n    dst: 192.0.2.1\n    proto: tcp\n"
	 "    sport: 1024-65535\n    dport: 443\n    flags: syn", {
		YES("tcp 10.0.0.1:1024 > 192.0.2.1:443"), NO("tcp 11.0.0.1:1024 > 192.0.2.1:443"),
		NO("tcp 10.0.0.1:1024 > 192.0.2.2:443"), NO("udp 10.0.0.1:1024 > 192.0.2.1:443"),
		NO("tcp 10.0.0.1:1023 > 192.0.2.1:443"), NO("tcp 10.0.0.1:1024 > 192.0.2.1:442"),
		NO("tcp 10.0.0.1:1024 > 192.0.2.1:443 flags ack"),
		NO("tcp 192.0.2.1:443 > 10.0.0.1:1024")},
		F(SRC) | F(DST) | F(PROTO) | F(SPORT) | F(DPORT) | F(TCP_FLAGS)},
	{"fields of the frame", "mac: '02:00:00:00:00:01'\n    vlan: 7\n    length: 60-\n"
	 "    fragment: none", {
		YES("vlan 7 udp 10.0.0.1:1 > 10.0.0.2:2 len 14"),
		NO("vlan 7 udp 10.0.0.1:1 > 10.0.0.2:2 len 13"),
		NO("vlan 8 udp 10.0.0.1:1 > 10.0.0.2:2 len 14"),
		NO("udp 10.0.0.1:1 > 10.0.0.2:2 len 18"),
		NO("vlan 7 udp 10.0.0.1:1 > 10.0.0.2:2 len 14 frag first"),
		NO("vlan 7 udp 10.0.0.1:1 > 10.0.0.2:2 len 14 mac 02:00:00:00:00:03 > 02:00:00:00:00:02"),
		NO("vlan 7 arp 10.0.0.1 > 10.0.0.2 | pad20")},
		F(MAC) | F(VLAN) | F(LENGTH) | F(FRAGMENT)},
	{"all of IPv6, and ICMP", "src: 'fd00::/16'\n    dst: 'fd00::2'\n    icmp6: echo-request", {
		YES("icmp6 fd00::1 > fd00::2"), NO("icmp6 fd00::1 > fd00::3"),
		NO("icmp6 fd01::1 > fd00::2"), NO("icmp6 fd00::1 > fd00::2 type 129"),
		NO("icmp 10.0.0.1 > 10.0.0.2")}, F(SRC) | F(DST) | F(ICMP)},
};
/* clang-format on */

/* Rules behind the one that is tested, which match none of the packets. */
static size_t put_fillers(char *list, size_t n, size_t size, int fillers)
{
	for (int i = 0; i < fillers; i++) {
		n += (size_t)snprintf(list + n, size - n,
				      "  - {src: 172.16.%d.1, action: drop}\n"
				      "  - {dst: 172.17.%d.1, action: drop}\n"
				      "  - {sport: %d, action: drop}\n",
				      i, i, 60000 + 3 * i);
		assert_true(n < size);
	}
	return n;
}

static void load_row(const struct field_row *row, int fillers)
{
	autofree char *list = malloc(LIST_MAX);
	int n;

	assert_non_null(list);
	n = snprintf(list, LIST_MAX, SETS "rules:\n  - name: a\n    action: drop\n    %s\n",
		     row->rule);
	put_fillers(list, (size_t)n, LIST_MAX, fillers);
	filter_load(list);
}

static struct xdp_status get_status(void)
{
	struct xdp_status s;
	struct error e = {0};

	if (xdp_status(filter.x, &s, &e) < 0)
		fail_msg("%s", e.text);
	return s;
}

static void check_probes(const struct field_row *row)
{
	size_t hits = 0, misses = 0;

	for (const struct probe *p = row->probes; p < row->probes + PROBES && p->packet; p++) {
		struct expect x = {.reason = p->reason};

		x.rule = p->hit ? "a" : "default";
		x.verdict = p->hit ? AX_VERDICT_DROP : AX_VERDICT_PASS;
		x.action = p->hit ? XDP_DROP : XDP_PASS;
		judge(p->packet, &x);
		p->hit ? hits++ : misses++;
	}
	assert_true(hits && misses);
}

static void test_row(void **state)
{
	static const int fillers[] = {0, 1, FILLERS};
	const struct field_row *row = *state;
	bool alone = !(row->fields & (row->fields - 1));

	for (size_t i = 0; i < ARRAY_SIZE(fillers); i++) {
		uint32_t more = fillers[i] ? F(SRC) | F(DST) | F(SPORT) : 0;
		struct xdp_status s;

		load_row(row, fillers[i]);
		s = get_status();
		assert_int_equal(s.fields, row->fields | more);
		assert_int_equal(s.match, fillers[i] == FILLERS ? AX_MATCH_BITMAP
					  : alone && !i		? AX_MATCH_SINGLE
								: AX_MATCH_PRODUCT);
		xdp_status_free(&s);
		check_probes(row);
	}
}

/* --- several rules --- */

#define UDP_TO(port) "udp 10.0.0.1:1 > 10.0.0.2:" #port

static void without_conditions(void **state)
{
	struct xdp_status s;

	(void)state;
	filter_load("default: drop\n");
	s = get_status();
	assert_int_equal(s.match, AX_MATCH_NONE);
	assert_int_equal(s.fields, 0);
	xdp_status_free(&s);
	judge(UDP_TO(53), &(struct expect)BY_DROP("default"));
	filter_load(
		"default: drop\nrules: [{name: all, action: pass}, {name: never, dport: 1, action: "
		"drop}]\n");
	s = get_status();
	assert_int_equal(s.match, AX_MATCH_NONE);
	xdp_status_free(&s);
	judge(UDP_TO(1), &(struct expect)BY_PASS("all"));
	judge("arp 10.0.0.1 > 10.0.0.2", &(struct expect)BY_PASS("all"));
}

/* The same list three times: as it is, and with fillers between the rules, so that what matches
 * first is far apart. */
static void the_first_match_wins(void **state)
{
	static const char *const rules[] = {
		"  - {name: one, src: 10.1.2.3, action: drop}\n",
		"  - {name: two, src: 10.1.0.0/16, dport: 80, action: pass}\n",
		"  - {name: three, src: 10.1.0.0/16, action: drop}\n",
		"  - {name: four, dport: 0-1000, action: pass}\n",
		"  - {name: five, dport: 80, action: drop}\n", /* never */
		"  - {name: six, proto: udp, action: drop}\n",
	};
	static const int fillers[] = {0, 1, 25};
	static const struct {
		const char *packet;
		struct expect x;
	} packets[] = {
		{"tcp 10.1.2.3:1 > 9.9.9.9:80", BY_DROP("one")},
		{"tcp 10.1.2.4:1 > 9.9.9.9:80", BY_PASS("two")},
		{"tcp 10.1.2.4:1 > 9.9.9.9:81", BY_DROP("three")},
		{"icmp 10.1.2.4 > 9.9.9.9", BY_DROP("three")},
		{"tcp 10.2.2.4:1 > 9.9.9.9:80", BY_PASS("four")},
		{"udp 10.2.2.4:1 > 9.9.9.9:1000", BY_PASS("four")},
		{"udp 10.2.2.4:1 > 9.9.9.9:1001", BY_DROP("six")},
		{"udp [fd00::1]:1 > [fd00::2]:1001", BY_DROP("six")},
		{"tcp 10.2.2.4:1 > 9.9.9.9:1001", BY_PASS("default")},
		{"arp 10.1.2.3 > 9.9.9.9", BY_PASS("default")},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(fillers); i++) {
		autofree char *list = malloc(LIST_MAX);
		size_t n;

		assert_non_null(list);
		n = (size_t)snprintf(list, LIST_MAX, "rules:\n");
		for (size_t j = 0; j < ARRAY_SIZE(rules); j++) {
			n += (size_t)snprintf(list + n, LIST_MAX - n, "%s", rules[j]);
			n = put_fillers(list, n, LIST_MAX, fillers[i]);
		}
		filter_load(list);
		for (size_t j = 0; j < ARRAY_SIZE(packets); j++)
			judge(packets[j].packet, &packets[j].x);
	}
}

/* Of the million instructions that the verifier follows, compilers differ in how many they need. */
#define VERIFIED_MAX 300000

static void assert_verified(const char *list)
{
	struct bpf_prog_info info = {0};
	uint32_t len = sizeof(info);

	filter_load(list);
	assert_int_equal(bpf_obj_get_info_by_fd(filter.g.prog, &info, &len), 0);
	print_message("the verifier followed %u instructions\n", info.verified_insns);
	if (info.verified_insns > VERIFIED_MAX)
		fail_msg("the verifier followed %u instructions, more than %u", info.verified_insns,
			 VERIFIED_MAX);
}

static void the_verifier_is_far_from_its_limit(void **state)
{
	char *list = malloc(LIST_MAX), *p;

	(void)state;
	assert_non_null(list);
	p = stpcpy(list, "rules:\n");
	for (int i = 0; i < 250; i++) /* both in buckets of many steps, with IPv6 besides */
		p += sprintf(p,
			     " - {src: [10.0.%d.0/25, 'fd00:%x::/32'], dst: [10.1.%d.0/25, "
			     "'fd01:%x::/32'], action: drop}\n",
			     i, i + 1, i, i + 1);
	assert_verified(list);
	free(list);
	assert_verified("rules: [{src: 10.0.0.1, dst: 10.0.0.2, sport: 1-5, dport: 80, proto: tcp, "
			"flags: syn, length: 0-100, ttl: 1-5, dscp: ef, ecn: ce, time: mon, vlan: "
			"1, fragment: none, "
			"mac: '02:00:00:00:00:01', action: drop}]\n");
}

/* Rules 64, 128, 4096 and so on apart: bits in other words, and words of another summary. */
static void far_rules_match(void **state)
{
	const size_t n = 5000, size = n * 80;
	autofree char *list = malloc(size);
	size_t at;
	char packet[100], name[20];

	(void)state;
	assert_non_null(list);
	at = (size_t)snprintf(list, size, "rules:\n");
	for (size_t i = 0; i < n; i++)
		at += (size_t)snprintf(
			list + at, size - at,
			"- {name: r%zu, src: 10.%zu.%zu.0/24, dport: %zu, action: %s}\n", i,
			i / 256, i % 256, i % 1000 + 1, i % 2 ? "pass" : "drop");
	assert_true(at < size);
	filter_load_afresh(list);
	for (size_t i = 0; i < n; i += i < 130 ? 21 : quick_or(1999, 397)) {
		struct expect drop = BY_DROP(name), pass = BY_PASS(name);

		snprintf(name, sizeof(name), "r%zu", i);
		snprintf(packet, sizeof(packet), "udp 10.%zu.%zu.9:7 > 9.9.9.9:%zu", i / 256,
			 i % 256, i % 1000 + 1);
		judge(packet, i % 2 ? &pass : &drop);
		snprintf(packet, sizeof(packet), "udp 10.%zu.%zu.9:7 > 9.9.9.9:%zu", i / 256,
			 i % 256, i % 1000 + 2);
		judge(packet, &(struct expect)BY_PASS("default"));
	}
}

int main(void)
{
	static struct CMUnitTest tests[2 * ARRAY_SIZE(rows) + 7];
	size_t n = 0;

	for (; n < ARRAY_SIZE(rows); n++)
		tests[n] = (struct CMUnitTest){.name = rows[n].name,
					       .test_func = test_row,
					       .initial_state = (void *)(uintptr_t)&rows[n]};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i += quick_or(4, 1)) {
		tests[n] = tests[i];
		tests[n].setup_func = filter_to_egress;
		tests[n].teardown_func = filter_to_ingress;
		n += !(rows[i].fields & F(STATE));
	}
	tests[n++] = (struct CMUnitTest)cmocka_unit_test_setup_teardown(
		the_first_match_wins, filter_to_egress, filter_to_ingress);
	tests[n++] = (struct CMUnitTest)cmocka_unit_test_setup_teardown(
		far_rules_match, filter_to_egress, filter_to_ingress);
	tests[n++] = (struct CMUnitTest)cmocka_unit_test_setup_teardown(
		the_verifier_is_far_from_its_limit, filter_to_egress, filter_to_ingress);
	tests[n++] = (struct CMUnitTest)cmocka_unit_test(without_conditions);
	tests[n++] = (struct CMUnitTest)cmocka_unit_test(the_first_match_wins);
	tests[n++] = (struct CMUnitTest)cmocka_unit_test(far_rules_match);
	tests[n++] = (struct CMUnitTest)cmocka_unit_test(the_verifier_is_far_from_its_limit);
	return _cmocka_run_group_tests("rules", tests, n, filter_setup, filter_teardown);
}
