// SPDX-License-Identifier: GPL-2.0-or-later
/* Rules: what each key takes, what it refuses with which sentence, and the canonical line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "rules/list.h"

#define WORDS_MAX 64

/* The words of a line, in a copy that the caller frees. */
static size_t split(const char *line, const char **words, char **copy)
{
	char *rest = *copy = strdup(line), *word;
	size_t n = 0;

	assert_non_null(rest);
	while ((word = strsep(&rest, " ")))
		if (*word)
			words[n++] = word;
	return n;
}

static int try_parse(const char *line, struct rule *r, struct error *e)
{
	const char *words[WORDS_MAX];
	autofree char *copy = NULL;
	size_t n = split(line, words, &copy);

	*e = (struct error){0};
	return rule_parse(words, n, r, e);
}

static struct rule parse(const char *line)
{
	struct rule r;
	struct error e;

	if (try_parse(line, &r, &e) < 0)
		fail_msg("%s: %s", line, e.text);
	return r;
}

static void assert_line(const char *line, const char *canonical)
{
	struct rule r = parse(line), again, copy;
	autofree char *text = rule_format(&r), *second = NULL;

	assert_string_equal(text, canonical);
	again = parse(text);
	second = rule_format(&again);
	assert_string_equal(second, canonical);
	assert_true(rule_eq(&r, &again));
	assert_int_equal(rule_copy(&r, &copy), 0);
	assert_true(rule_eq(&copy, &again));
	rule_free(&copy);
	rule_free(&again);
	rule_free(&r);
}

static const struct {
	const char *line, *canonical;
} canonical_forms[] = {
	/* NULL: refused */
	{"action pass", "action pass"},
	{"action drop", "action drop"},
	{"action reflect", "action reflect"},
	{"action redirect eth1", "action redirect eth1"},
	{"action redirect cpu", "action redirect cpu"},
	{"action cpu 3", "action cpu 3"},
	{"action balance web", "action balance web"},
	{"dport 22 action pass name ssh", "name ssh dport 22 action pass"},
	{"name A.b_c-d:9 action pass", "name A.b_c-d:9 action pass"},
	{"src 10.0.0.0/8,fd00::/8,@blocked,192.0.2.1 action drop",
	 "src 10.0.0.0/8,fd00::/8,192.0.2.1/32,@blocked action drop"},
	{"dst 2001:db8::1,@a,@b action drop", "dst 2001:db8::1/128,@a,@b action drop"},
	{"src 0.0.0.0/0 action drop", "src 0.0.0.0/0 action drop"},
	{"dst ::/0 action drop", "dst ::/0 action drop"},
	{"proto tcp action drop", "proto tcp action drop"},
	{"proto udp,tcp action drop", "proto tcp,udp action drop"},
	{"proto 6,200-202,1 action drop", "proto icmp,tcp,200-202 action drop"},
	{"proto 0-255 action drop", "proto 0-255 action drop"},
	{"proto esp,ah,icmpv6 action drop", "proto esp,ah,icmp6 action drop"},
	{"dport 8000-8099,22,@web action drop", "dport 22,8000-8099,@web action drop"},
	{"dport 5,1-3,2-4 action drop", "dport 1-5 action drop"},
	{"sport 0,65535 action drop", "sport 0,65535 action drop"},
	{"sport 0-65535 action drop", "sport 0-65535 action drop"},
	{"flags !ack,syn action drop", "flags syn,!ack action drop"},
	{"flags syn,syn,fin,rst,psh,ack,urg,ece,cwr proto tcp action drop",
	 "proto tcp flags fin,syn,rst,psh,ack,urg,ece,cwr action drop"},
	{"icmp echo-request action pass", "icmp echo-request action pass"},
	{"icmp 8 action pass", "icmp echo-request action pass"},
	{"icmp 3/4,3/1,9,0-0 action pass", NULL},
	{"icmp 3/4,3/1,9 action pass", "icmp 3/1,frag-needed,9 action pass"},
	{"icmp unreachable,3/4 action pass", "icmp unreachable action pass"},
	{"icmp 8,9,10/0 action pass", "icmp echo-request,9,10/0 action pass"},
	{"icmp 255/255 icmp6 0/0 action pass", "icmp 255/255 icmp6 0/0 action pass"},
	{"icmp6 packet-too-big icmp frag-needed action pass",
	 "icmp frag-needed icmp6 packet-too-big action pass"},
	{"icmp6 1,2,3,4,128,129,133,134,135,136 action pass",
	 "icmp6 unreachable,packet-too-big,time-exceeded,parameter-problem,echo-request,"
	 "echo-reply,router-solicitation,router-advertisement,neighbour-solicitation,"
	 "neighbour-advertisement action pass"},
	{"icmp echo-reply,redirect,time-exceeded,parameter-problem action pass",
	 "icmp echo-reply,redirect,time-exceeded,parameter-problem action pass"},
	{"vlan none,100,200-299 action drop", "vlan 100,200-299,none action drop"},
	{"vlan 4095,none action drop", "vlan 4095,none action drop"},
	{"vlan 0-4095 action drop", "vlan 0-4095 action drop"},
	{"fragment later,first action drop", "fragment first,later action drop"},
	{"fragment none,first,later action drop", "fragment none,first,later action drop"},
	{"length 1500- action drop", "length 1500- action drop"},
	{"length 0-64,9000-65535 action drop", "length 0-64,9000- action drop"},
	{"length 65535 action drop", "length 65535 action drop"},
	{"dport ssh,https,http-alt,domain,444 action drop", "dport 22,53,443-444,8080 action drop"},
	{"sport ntp proto udp action drop", "proto udp sport 123 action drop"},
	{"ttl 1-5,255 action drop", "ttl 1-5,255 action drop"},
	{"ttl 5,1,2-4,64-255 action drop", "ttl 1-5,64- action drop"},
	{"dscp 46,af11,1,3-8,63,va,cs0 action drop", "dscp 0-1,3-8,af11,va,ef,63 action drop"},
	{"dscp 8,9 action drop", "dscp 8-9 action drop"},
	{"dscp cs1,3 ttl 9 action drop", "ttl 9 dscp 3,cs1 action drop"},
	{"ecn ce action drop", "ecn ce action drop"},
	{"time 08:00-18:00 action drop", "time 08:00-18:00 action drop"},
	{"time mon-fri/08:00-18:00,sat/10:00-14:00 action drop",
	 "time mon-fri/08:00-18:00,sat/10:00-14:00 action drop"},
	{"time 22:00-06:00 action drop", "time 00:00-06:00,22:00-24:00 action drop"},
	{"time fri/22:00-06:00 action drop", "time fri/22:00-24:00,sat/00:00-06:00 action drop"},
	{"time sun/23:59-00:01 action drop", "time mon/00:00-00:01,sun/23:59-24:00 action drop"},
	{"time sat-mon action drop", "time mon,sat-sun action drop"},
	{"time wed,tue/00:00-24:00,thu/00:00-09:05 action drop",
	 "time tue-wed,thu/00:00-09:05 action drop"},
	{"time mon-sun action drop", "time mon-sun action drop"},
	{"time 00:00-12:00,12:00-24:00 action drop", "time mon-sun action drop"},
	{"time 09:00-10:00,mon/11:00-12:00,10:00-10:30 action drop",
	 "time mon/09:00-10:30,mon/11:00-12:00,tue-sun/09:00-10:30 action drop"},
	{"ecn ce,ect0,not-ect,ect1 dscp le action drop",
	 "dscp le ecn not-ect,ect1,ect0,ce action drop"},
	{"state established action pass", "state established action pass"},
	{"state invalid,established,related,new action drop",
	 "state established,new,related,invalid action drop"},
	{"state related,new ttl 9 action drop", "ttl 9 state new,related action drop"},
	{"mac ff:ff:ff:ff:ff:ff ttl 0 length 60 action drop",
	 "length 60 ttl 0 mac ff:ff:ff:ff:ff:ff action drop"},
	{"mac 02:00:00:00:00:0A,aa:bb:cc:dd:ee:ff action drop",
	 "mac 02:00:00:00:00:0a,aa:bb:cc:dd:ee:ff action drop"},
	{"payload at 0 0x17 0x3 action drop", "payload at 0 0x17 0x03 action drop"},
	{"action drop payload at 4 0x01/0x0f 0xAB at 127 0x0/0xff dport 1",
	 "dport 1 payload at 4 0x01/0x0f 0xab at 127 0x00 action drop"},
	{"payload at 0 0x16,at 0 0xC0/0xC0,at 0 0x00/0x00 action drop",
	 "payload at 0 0x16,quic-long,at 0 0x00/0x00 action drop"},
	{"action redirect e smac 02:00:00:00:00:01 dmac 02:00:00:00:00:02 to 10.0.0.5 "
	 "to-port 80 checksum recompute",
	 "action redirect e smac 02:00:00:00:00:01 dmac 02:00:00:00:00:02 to 10.0.0.5 "
	 "to-port 80 checksum recompute"},
	{"to fd00::5 action redirect e", "action redirect e to fd00::5"},
	{"capture 16 action pass", "action pass capture 16"},
	{"capture 16,ring action pass", "action pass capture 16"},
	{"capture 16,slot=cmd action pass", "action pass capture 16,slot=cmd"},
	{"capture 9216,slot=cmd,ring,frame action pass",
	 "action pass capture 9216,ring,slot=cmd,frame"},
	{"capture 64,frame action pass", "action pass capture 64,frame"},
	{"rate 1000pps action pass", "action pass rate 1kpps"},
	{"rate 1500PPS action pass", "action pass rate 1500pps"},
	{"rate 1000mpps action pass", "action pass rate 1000mpps"},
	{"rate 10mbit,burst=15000 action pass", "action pass rate 10mbit,burst=15000"},
	{"rate 10mbit,burst=125k action pass", "action pass rate 10mbit"},
	{"rate 100gbit,burst=2MB,per=src action pass",
	 "action pass rate 100gbit,burst=2000000,per=src"},
	{"rate 8bit action pass", "action pass rate 8bit"},
	{"rate 1kbit,burst=10kb action pass", "action pass rate 1kbit"},
	{"rate 10pps,burst=1 action pass", "action pass rate 10pps"},
	{"rate 10pps,per=src/24 action pass", "action pass rate 10pps,per=src/24/64"},
	{"rate 10pps,per=src/24/56,burst=7 action pass",
	 "action pass rate 10pps,burst=7,per=src/24/56"},
	{"rate 10pps,per=src/32/128 action pass", "action pass rate 10pps,per=src"},
	{"rate 10pps,per=src/0/0 action pass", "action pass rate 10pps,per=src/0/0"},
	{"sample 100 log yes action pass", "action pass sample 100 log yes"},
	{"log true action pass", "action pass log yes"},
	{"log no trigger FALSE action pass", "action pass"},
	{"trigger yes proto udp dport 9 action drop", "proto udp dport 9 action drop trigger yes"},
};

static void every_key_has_a_canonical_form(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(canonical_forms); i++) {
		struct rule r;
		struct error e;

		if (canonical_forms[i].canonical)
			assert_line(canonical_forms[i].line, canonical_forms[i].canonical);
		else
			assert_int_equal(try_parse(canonical_forms[i].line, &r, &e), -EINVAL);
	}
}

static void values_arrive_in_the_struct(void **state)
{
	struct rule r = parse("icmp frag-needed icmp6 2 vlan none action cpu 8191");

	(void)state;
	assert_int_equal(r.in[AX_FIELD_ICMP].n, 2);
	assert_int_equal(r.in[AX_FIELD_ICMP].ranges[0].lo, 3 << 8 | 4);
	assert_int_equal(r.in[AX_FIELD_ICMP].ranges[0].hi, 3 << 8 | 4);
	assert_int_equal(r.in[AX_FIELD_ICMP].ranges[1].lo, 1 << 16 | 2 << 8);
	assert_int_equal(r.in[AX_FIELD_ICMP].ranges[1].hi, 1 << 16 | 2 << 8 | 255);
	assert_int_equal(r.in[AX_FIELD_VLAN].ranges[0].lo, AX_VLAN_NONE);
	assert_int_equal(r.verdict, AX_VERDICT_CPU);
	assert_int_equal(r.cpu, 8191);
	assert_null(r.target);
	rule_free(&r);

	r = parse("flags syn,!ack action redirect eth1 to 10.0.0.1 to-port 81 log yes");
	assert_int_equal(r.in[AX_FIELD_TCP_FLAGS].bits->mask, 0x12);
	assert_int_equal(r.in[AX_FIELD_TCP_FLAGS].bits->value, 0x02);
	assert_string_equal(r.target, "eth1");
	assert_int_equal(r.rewrite, AX_REWRITE_DST | AX_REWRITE_DPORT);
	assert_int_equal(r.to_port, 81);
	assert_true(r.log);
	assert_false(r.checksum);
	rule_free(&r);

	r = parse("capture 16,slot=x action pass");
	assert_false(r.capture_ring);
	assert_string_equal(r.slot, "x");
	rule_free(&r);
	r = parse("capture 16 rate 1gbit,per=src action pass");
	assert_true(r.capture_ring);
	assert_int_equal(r.rate, 1000000000);
	assert_true(r.rate_bits);
	assert_int_equal(r.burst, 12500000); /* a tenth of a second */
	assert_int_equal(r.per4, 32);
	assert_int_equal(r.per6, 128);
	rule_free(&r);
	r = parse("rate 5pps action pass");
	assert_int_equal(r.burst, 1);
	assert_false(r.per_source);
	rule_free(&r);
	r = parse("rate 800bit action pass");
	assert_int_equal(r.burst, 10000);
	rule_free(&r);
}

#define P     "prefixes such as 10.0.0.0/8 or fd00::/8, or @SET"
#define PORTS "ports of 0 to 65535 such as 22, 8000-8099, ssh or @SET"
#define NAME \
	"a name of 1 to 63 letters, digits and . _ - : that is neither a number nor \"default\""
#define ACTIONS "pass, drop, reflect, redirect IFACE, cpu N, balance NAME, route or challenge"
#define FLAGS                                                                                      \
	"TCP flags: fin, syn, rst, psh, ack, urg, ece or cwr, with ! before it one that must not " \
	"be set"
#define ICMP                                                                            \
	"echo-request, echo-reply, unreachable, frag-needed, time-exceeded, redirect, " \
	"parameter-problem, TYPE or TYPE/CODE of 0 to 255"
#define LENGTHS "lengths of 0 to 65535 bytes such as 64, 0-64 or 1500-"
#define STATES	"established, new, related or invalid"
#define DSCPS \
	"codepoints such as ef, af11, cs1 or le, numbers of 0 to 63 or ranges of them such as 1-8"
#define TIMES "times such as 08:00-18:00, mon-fri/08:00-18:00, fri/22:00-06:00 or sat-sun"
#define ECNS  "not-ect, ect0, ect1 or ce"
#define TTLS  "TTLs or hop limits of 0 to 255 such as 1, 1-5 or 64-"
#define PAYLOAD                                                                             \
	"at OFFSET BYTE... such as at 0 0x17 0x03 or at 4 0x01/0x0f, of up to 8 bytes, up " \
	"to 4 times, or quic-long"
#define MAC  "an Ethernet address such as 02:00:00:00:00:01"
#define RATE "a rate such as 1000pps or 10mbit, then burst=N and per=src if wanted"
#define PER                                                                                      \
	"per=src, per=src/24 or per=src/24/64, with a length for IPv4 of 0 to 32, then one for " \
	"IPv6 of 0 to 128"
#define BURST_BYTES "burst= and a number of bytes such as 15000, 64k or 1m"
#define CAPTURE	    "BYTES[,ring][,slot=NAME][,frame] with 1 to 9216 bytes"
#define VLANS	    "VLAN ids of 0 to 4095 such as 100 or 200-299, or none"
#define PROTOS	    "protocols such as tcp, udp, icmp, icmp6, or numbers of 0 to 255"

static const struct {
	const char *key, *value, *found, *want;
} wrong_values[] = {
	{"name", "a b", "\"a b\"", NAME},
	{"name", "", "\"\"", NAME},
	{"name", "42", "\"42\"", NAME},
	{"name", "default", "\"default\"", NAME},
	{"src", "10.0.0.1/8", "\"10.0.0.1/8\"", "a prefix without host bits: 10.0.0.0/8"},
	{"dst", "10.0.0.0/8,fd00::1/8", "\"fd00::1/8\"", "a prefix without host bits: fd00::/8"},
	{"src", "10.0.0.0/33", "\"10.0.0.0/33\"", P},
	{"src", "10.0.0.0/", "\"10.0.0.0/\"", P},
	{"src", "10.0.0/8", "\"10.0.0/8\"", P},
	{"src", "10.0.0.0/8,", "\"\"", P},
	{"src", "10.0.0.0/8, 10.0.0.1", "\" 10.0.0.1\"", P},
	{"src", "any", "\"any\"", P},
	{"src", "", "\"\"", P},
	{"src", "@", "\"@\"", "@ and a set's name: letters, digits and . _ - :"},
	{"dport", "@a b", "\"@a b\"", "@ and a set's name: letters, digits and . _ - :"},
	{"proto", "tpc", "\"tpc\"", PROTOS},
	{"proto", "256", "\"256\"", PROTOS},
	{"proto", "1-256", "\"1-256\"", PROTOS},
	{"dport", "100-200x", "\"100-200x\"", PORTS},
	{"dport", "22x", "\"22x\"", PORTS},
	{"dport", " 22", "\" 22\"", PORTS},
	{"dport", "+22", "\"+22\"", PORTS},
	{"dport", "-1", "\"-1\"", PORTS},
	{"dport", "022", "\"022\"", PORTS},
	{"dport", "0x16", "\"0x16\"", PORTS},
	{"dport", "65536", "\"65536\"", PORTS},
	{"dport", "4294967318", "\"4294967318\"", PORTS},
	{"dport", "18446744073709551638", "\"18446744073709551638\"", PORTS},
	{"dport", "200-100", "\"200-100\"", PORTS},
	{"dport", "22-", "\"22-\"", PORTS},
	{"dport", "1-2-3", "\"1-2-3\"", PORTS},
	{"dport", "22,,23", "\"\"", PORTS},
	{"sport", "htpp", "\"htpp\"",
	 "the number of the port, which has no name here; did you mean \"http\"?"},
	{"dport", "ssh,nosuchservice", "\"nosuchservice\"",
	 "the number of the port, which has no name here"},
	{"dport", "SSH", "\"SSH\"", PORTS},
	{"dport", "ssh-https", "\"ssh-https\"", "the number of the port, which has no name here"},
	{"flags", "syn,fni", "\"fni\"", FLAGS},
	{"flags", "!!syn", "\"!!syn\"", FLAGS},
	{"flags", "syn,!syn", "\"!syn\"", "syn either with or without the !"},
	{"icmp", "ping", "\"ping\"", ICMP},
	{"icmp", "3/", "\"3/\"", ICMP},
	{"icmp", "256", "\"256\"", ICMP},
	{"icmp", "3/256", "\"3/256\"", ICMP},
	{"icmp", "packet-too-big", "\"packet-too-big\"", ICMP},
	{"vlan", "4096", "\"4096\"", VLANS},
	{"vlan", "no", "\"no\"", VLANS},
	{"fragment", "yes", "\"yes\"", "none, first or later"},
	{"fragment", "3", "\"3\"", "none, first or later"},
	{"length", "65536", "\"65536\"", LENGTHS},
	{"length", "-64", "\"-64\"", LENGTHS},
	{"length", "1500-1499", "\"1500-1499\"", LENGTHS},
	{"ttl", "256", "\"256\"", TTLS},
	{"ttl", "5-1", "\"5-1\"", TTLS},
	{"ttl", "@low", "\"@low\"", TTLS},
	{"dscp", "64", "\"64\"", DSCPS},
	{"dscp", "EF", "\"EF\"", DSCPS},
	{"dscp", "cs1-cs3", "\"cs1-cs3\"", DSCPS},
	{"dscp", "9-8", "\"9-8\"", DSCPS},
	{"dscp", "0x2e", "\"0x2e\"", DSCPS},
	{"time", "", "\"\"", TIMES},
	{"time", "8:00-18:00", "\"8:00-18:00\"", TIMES},
	{"time", "08:00", "\"08:00\"", TIMES},
	{"time", "08:00-18:60", "\"08:00-18:60\"", TIMES},
	{"time", "08:00-24:01", "\"08:00-24:01\"", TIMES},
	{"time", "08:00-18:00x", "\"08:00-18:00x\"", TIMES},
	{"time", "mon/", "\"mon/\"", TIMES},
	{"time", "mon-/08:00-09:00", "\"mon-/08:00-09:00\"", TIMES},
	{"time", "Mon", "\"Mon\"", TIMES},
	{"time", "monday", "\"monday\"", TIMES},
	{"time", "mon 08:00-09:00", "\"mon 08:00-09:00\"", TIMES},
	{"time", "08:00-08:00", "\"08:00-08:00\"",
	 "a time that lasts: to 24:00 is to the day's end"},
	{"time", "24:00-08:00", "\"24:00-08:00\"",
	 "a time that lasts: to 24:00 is to the day's end"},
	{"ecn", "1", "\"1\"", ECNS},
	{"ecn", "ect2", "\"ect2\"", ECNS},
	{"state", "Established", "\"Established\"", STATES},
	{"state", "new,unasked", "\"unasked\"", STATES},
	{"state", "0", "\"0\"", STATES},
	{"state", "@new", "\"@new\"", STATES},
	{"payload", "", "\"\"", PAYLOAD},
	{"payload", "0x17", "\"0x17\"", PAYLOAD},
	{"payload", "at", "\"at\"", PAYLOAD},
	{"payload", "at 0", "\"at 0\"", PAYLOAD},
	{"payload", "at 0 at 1 0x01", "\"at 0 at 1 0x01\"", PAYLOAD},
	{"payload", "at 0 0x01 at 1", "\"at 0 0x01 at 1\"", PAYLOAD},
	{"payload", "at x 0x01", "\"at x 0x01\"", PAYLOAD},
	{"payload", "at -1 0x01", "\"at -1 0x01\"", PAYLOAD},
	{"payload", "at 0x1 0x01", "\"at 0x1 0x01\"", PAYLOAD},
	{"payload", "at 0  0x01", "\"at 0  0x01\"", PAYLOAD},
	{"payload", "at 0 17", "\"at 0 17\"", PAYLOAD},
	{"payload", "at 0 0x", "\"at 0 0x\"", PAYLOAD},
	{"payload", "at 0 0x123", "\"at 0 0x123\"", PAYLOAD},
	{"payload", "at 0 0xg1", "\"at 0 0xg1\"", PAYLOAD},
	{"payload", "at 0 0x01/", "\"at 0 0x01/\"", PAYLOAD},
	{"payload", "at 0 0x01/0x01/0x01", "\"at 0 0x01/0x01/0x01\"", PAYLOAD},
	{"payload", "at 0 0x01,0x02", "\"0x02\"", PAYLOAD},
	{"payload", "@x", "\"@x\"", PAYLOAD},
	{"payload", "at 0 0x01,at 0 0x17/0x0f", "\"at 0 0x17/0x0f\"",
	 "a byte within its mask: 0x07/0x0f"},
	{"payload", "at 128 0x01", "\"at 128 0x01\"", "an offset of 0 to 127"},
	{"payload", "at 4294967296 0x01", "\"at 4294967296 0x01\"", PAYLOAD},
	{"payload", "at 127 0x01 0x02", "\"at 127 0x01 0x02\"",
	 "bytes of the first 128 of the payload"},
	{"payload", "at 0 0x1 0x2 0x3 0x4 0x5 0x6 0x7 0x8 0x9",
	 "\"at 0 0x1 0x2 0x3 0x4 0x5 0x6 0x7 0x8 0x9\"", "at most 8 bytes behind each at"},
	{"payload", "at 0 0x1 at 1 0x1 at 2 0x1 at 3 0x1 at 4 0x1",
	 "\"at 0 0x1 at 1 0x1 at 2 0x1 at 3 0x1 at 4 0x1\"",
	 "at most 4 times at; a further rule takes more"},
	{"mac", "2:0:0:0:0:1", "\"2:0:0:0:0:1\"", MAC},
	{"mac", "02:00:00:00:00:01,02-00-00-00-00-01", "\"02-00-00-00-00-01\"", MAC},
	{"mac", "02:00:00:00:00:0g", "\"02:00:00:00:00:0g\"", MAC},
	{"smac", "01:00:5e:00:00:01", "\"01:00:5e:00:00:01\"",
	 "a single Ethernet address "
	 "such as 02:00:00:00:00:01"},
	{"dmac", "x", "\"x\"", MAC},
	{"to", "10.0.0.0/8", "\"10.0.0.0/8\"", "an IPv4 or IPv6 address of one host"},
	{"to", "224.0.0.1", "\"224.0.0.1\"", "an IPv4 or IPv6 address of one host"},
	{"to", "::", "\"::\"", "an IPv4 or IPv6 address of one host"},
	{"to", "0.0.0.0", "\"0.0.0.0\"", "an IPv4 or IPv6 address of one host"},
	{"to-port", "0", "\"0\"", "a port of 1 to 65535"},
	{"to-port", "80-81", "\"80-81\"", "a port of 1 to 65535"},
	{"checksum", "yes", "\"yes\"", "recompute"},
	{"action", "accept", "\"accept\"", ACTIONS},
	{"action", "dorp", "\"dorp\"", ACTIONS "; did you mean \"drop\"?"},
	{"action", "drop now", "\"drop now\"", ACTIONS},
	{"action", "redirect", "\"redirect\"", "redirect and an interface's name"},
	{"action", "redirect a/b", "\"redirect a/b\"", "redirect and an interface's name"},
	{"action", "redirect sixteenletters16", "\"redirect sixteenletters16\"",
	 "redirect and an interface's name"},
	{"action", "cpu 8192", "\"cpu 8192\"", "cpu and its number of 0 to 8191"},
	{"action", "cpu", "\"cpu\"", "cpu and its number of 0 to 8191"},
	{"action", "balance a,b", "\"balance a,b\"",
	 "balance and a balancer's name: letters, digits and . _ - :"},
	{"capture", "0", "\"0\"", CAPTURE},
	{"capture", "9217", "\"9217\"", CAPTURE},
	{"capture", "ring", "\"ring\"", CAPTURE},
	{"capture", "16,rnig", "\"rnig\"", CAPTURE},
	{"capture", "16,ring,ring", "\"ring\"", CAPTURE},
	{"capture", "16,ring,frame,slot=a,slot=b", "more than 4 values", "at most 4"},
	{"capture", "16,slot=a,slot=b", "\"slot=b\"", CAPTURE},
	{"capture", "16,slot=", "\"slot=\"", "slot= and a name of letters, digits and . _ - :"},
	{"capture", "257,slot=a", "\"257\"",
	 "at most 256 bytes for a slot alone (the ring takes more)"},
	{"rate", "1000", "\"1000\"", "a unit: pps, kpps, mpps, bit, kbit, mbit or gbit"},
	{"rate", "10mb", "\"10mb\"", "a unit: pps, kpps, mpps, bit, kbit, mbit or gbit"},
	{"rate", "0pps", "\"0pps\"", RATE},
	{"rate", "pps", "\"pps\"", RATE},
	{"rate", "1.5mbit", "\"1.5mbit\"", "a unit: pps, kpps, mpps, bit, kbit, mbit or gbit"},
	{"rate", "1001mpps", "\"1001mpps\"", "at most 1000mpps or 100gbit"},
	{"rate", "101gbit", "\"101gbit\"", "at most 1000mpps or 100gbit"},
	{"rate", "10pps,burst=1k", "\"burst=1k\"", "burst= and a number of packets"},
	{"rate", "10pps,burst=0", "\"burst=0\"", "burst= and a number of packets"},
	{"rate", "10mbit,burst=1g", "\"burst=1g\"", BURST_BYTES},
	{"rate", "1pps,burst=86401", "\"burst=86401\"", "a burst of at most a day's worth"},
	{"rate", "10mbit,per=dst", "\"per=dst\"", PER},
	{"rate", "10mbit,per=src/33", "\"per=src/33\"", PER},
	{"rate", "10mbit,per=src/24/129", "\"per=src/24/129\"", PER},
	{"rate", "10mbit,per=src/24/64/1", "\"per=src/24/64/1\"", PER},
	{"rate", "10mbit,per=src/", "\"per=src/\"", PER},
	{"rate", "10mbit,brust=5", "\"brust=5\"", "burst=N or per=src behind the rate, each once"},
	{"rate", "10mbit,burst=5,burst=6", "\"burst=6\"",
	 "burst=N or per=src behind the rate, each once"},
	{"sample", "0", "\"0\"", "a number of 1 to 1000000000: one packet of so many"},
	{"sample", "1/100", "\"1/100\"", "a number of 1 to 1000000000: one packet of so many"},
	{"log", "maybe", "\"maybe\"", "yes or no"},
	{"trigger", "1", "\"1\"", "yes or no"},
	/* nothing that a terminal would obey */
	{"dport", "\033[31m", "\"\\x1b[31m\"", PORTS},
};

static void wrong_values_are_named(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wrong_values); i++) {
		uint64_t given = 0;
		struct rule r = {0};
		struct error e = {0};
		char expected[600];

		snprintf(expected, sizeof(expected), "%s %s is not valid: use %s",
			 wrong_values[i].key, wrong_values[i].found, wrong_values[i].want);
		assert_int_equal(
			rule_set(&r, &given, wrong_values[i].key, wrong_values[i].value, &e),
			-EINVAL);
		assert_string_equal(e.text, expected);
		assert_int_equal(given, 0);
		rule_free(&r);
	}
}

static void keys_are_known_and_come_once(void **state)
{
	uint64_t given = 0;
	struct rule r = {0};
	struct error e;

	(void)state;
	assert_int_equal(rule_set(&r, &given, "dprot", "22", &e), -ENOENT);
	assert_string_equal(
		e.text, "\"dprot\" is no key of a rule: use name, src, dst, proto, sport, dport, "
			"flow, flags, icmp, icmp6, vlan, fragment, length, ttl, dscp, ecn, time, "
			"state, mac, mark, "
			"payload, dns-name, tls-sni, http-host, interface-group, action, "
			"smac, dmac, to, to-port, checksum, capture, rate, learn, sample, log or "
			"trigger; did you mean \"dport\"?");
	assert_int_equal(rule_set(&r, &given, "", "22", &e), -ENOENT);
	assert_int_equal(rule_set(&r, &given, "dport", "22", &e), 0);
	assert_int_equal(rule_set(&r, &given, "dport", "23", &e), -EEXIST);
	assert_string_equal(e.text,
			    "dport is there twice: give each key once, several values with commas");
	assert_int_equal(rule_set(&r, &given, "log", "no", &e), 0);
	assert_int_equal(rule_set(&r, &given, "log", "no", &e), -EEXIST);
	assert_string_equal(e.text, "log is there twice: give each key once");
	assert_int_equal(r.in[AX_FIELD_DPORT].ranges[0].lo, 22);
	assert_int_equal(r.in[AX_FIELD_DPORT].n, 1);
	rule_free(&r);
}

static void words_of_a_command_line(void **state)
{
	static const struct {
		const char *line, *error;
		int code;
	} cases[] = {
		{"", "a rule without action is not valid: use action " ACTIONS, -EINVAL},
		{"dport 22", "a rule without action is not valid: use action " ACTIONS, -EINVAL},
		{"dport", "dport has no value: use " PORTS, -EINVAL},
		{"dport 22 action", "action has no value: use " ACTIONS, -EINVAL},
		{"action redirect",
		 "action \"redirect\" is not valid: use redirect and an interface's name", -EINVAL},
		{"action cpu x",
		 "action \"cpu x\" is not valid: use cpu and its number of 0 to "
		 "8191",
		 -EINVAL},
		{"action pass action drop", "action is there twice: give each key once", -EEXIST},
		{"payload at 0 0x17 acton drop", "\"acton\" is no key of a rule: ", -ENOENT},
		{"payload", "payload has no value: use " PAYLOAD, -EINVAL},
		{"action drop dport 22 23", "\"23\" is no key of a rule: ", -ENOENT},
	};
	static const char *const quoted[] = {"action", "redirect eth1", "log", "yes"};
	static const char *const payload[] = {"payload", "at 0 0x17", "at",  "9",
					      "0x01",	 "action",    "drop"};
	struct error e = {0};
	struct rule r;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(try_parse(cases[i].line, &r, &e), cases[i].code);
		assert_memory_equal(e.text, cases[i].error, strlen(cases[i].error));
	}
	assert_int_equal(rule_parse(quoted, ARRAY_SIZE(quoted), &r, &e), 0);
	assert_string_equal(r.target, "eth1");
	assert_true(r.log);
	rule_free(&r);
	assert_int_equal(rule_parse(payload, ARRAY_SIZE(payload), &r, &e), 0);
	assert_int_equal(r.in[AX_FIELD_PAYLOAD].payloads[0].piece[1].at, 9);
	rule_free(&r);
	/* nobody has to take the sentence */
	assert_int_equal(rule_parse(quoted, 1, &r, NULL), -EINVAL);
}

static void what_does_not_go_together(void **state)
{
	static const struct {
		const char *line, *found;
	} bad[] = {
		{"proto icmp dport 1 action pass", "dport with a protocol that has no ports"},
		{"proto tcp,sctp sport 1 action pass", "sport with a protocol that has no ports"},
		{"proto 0-255 sport @x action pass", "sport with a protocol that has no ports"},
		{"icmp 8 dport 1 action pass", "dport with icmp"},
		{"fragment later dport 1 action pass", "dport with fragment later"},
		{"proto udp flags syn action pass", "flags with another protocol than tcp"},
		{"proto tcp,udp flags syn action pass", "flags with another protocol than tcp"},
		{"icmp 8 flags syn action pass", "flags with icmp"},
		{"fragment later flags syn action pass", "flags with fragment later"},
		{"fragment later icmp 8 action pass", "icmp with fragment later"},
		{"proto tcp icmp 8 action pass", "icmp with another protocol"},
		{"proto icmp icmp6 128 action pass", "icmp6 with another protocol"},
		{"proto icmp,icmp6 icmp 8 action pass", "icmp with another protocol"},
		{"proto icmp,tcp icmp 8 icmp6 128 action pass", "icmp with another protocol"},
		{"src fd00::/8 icmp 8 action pass", "IPv6 src with icmp"},
		{"dst 10.0.0.0/8 icmp6 128 action pass", "IPv4 dst with icmp6"},
		{"src 10.0.0.0/8 dst fd00::/8 action pass", "IPv4 src with IPv6 dst"},
		{"dst 10.0.0.0/8 to fd00::1 action redirect e", "IPv4 dst with IPv6 to"},
		{"smac 02:00:00:00:00:01 action pass", "smac with action pass"},
		{"dmac 02:00:00:00:00:01 action drop", "dmac with action drop"},
		{"to 10.0.0.1 action balance x", "to with action balance"},
		{"to-port 80 action cpu 1", "to-port with action cpu"},
		{"checksum recompute action reflect", "checksum with action reflect"},
		{"proto icmp to-port 80 action redirect e",
		 "to-port with a protocol that has no ports"},
		{"sample 5 action pass", "sample without capture and log"},
		{"state new action balance b", "state with action balance"},
		{"payload at 0 0x01 action balance b", "payload with action balance"},
		{"payload at 0 0x01 fragment later action drop", "payload with fragment later"},
		{"trigger yes action pass", "trigger without proto udp"},
		{"trigger yes proto tcp,udp action pass", "trigger without proto udp"},
	};
	static const char *const good[] = {
		"proto tcp,udp dport 1 action pass",
		"dport 1 flags syn action pass",
		"fragment first,later dport 1 action pass",
		"proto tcp flags syn action pass",
		"fragment later ttl 1 action pass",
		"fragment first,later payload at 0 0x01 action drop",
		"proto gre payload at 0 0x01 action drop",
		"proto icmp icmp 8 action pass",
		"proto icmp,icmp6 icmp 8 icmp6 128 action pass",
		"src fd00::/8,10.0.0.0/8 icmp 8 action pass",
		"src fd00::/8 icmp 8 icmp6 128 action pass",
		"src fd00::/8,@x icmp 8 action pass",
		"src @x dst fd00::/8 to fd00::1 action redirect e",
		"sample 5 log yes action pass",
		"sample 5 capture 10 action pass",
		"trigger yes proto 17 action drop",
	};
	struct rule r;
	struct error e;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		char start[160];

		snprintf(start, sizeof(start), "%s is not valid: use ", bad[i].found);
		assert_int_equal(try_parse(bad[i].line, &r, &e), -EINVAL);
		assert_memory_equal(e.text, start, strlen(start));
		assert_true(strlen(e.text) > strlen(start));
	}
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		r = parse(good[i]);
		rule_free(&r);
	}
}

static void conditions_are_seen(void **state)
{
	static const char *const conditions[] = {
		"src 10.0.0.0/8",
		"src @x",
		"dst 10.0.0.0/8",
		"proto tcp",
		"sport 1",
		"dport @x",
		"flags syn",
		"icmp 8",
		"icmp6 1",
		"vlan none",
		"fragment none",
		"length 1-",
		"dst @x",
		"mac 02:00:00:00:00:01",
		"ttl 0-255",
		"state new",
		"payload at 0 0x00/0x00",
		"mark 0/0",
	};
	struct rule all = parse("name x action drop log yes capture 5 rate 1pps");

	(void)state;
	assert_true(rule_catches_all(&all));
	for (size_t i = 0; i < ARRAY_SIZE(conditions); i++) {
		char line[80];
		struct rule r;

		snprintf(line, sizeof(line), "%s action drop", conditions[i]);
		r = parse(line);
		assert_false(rule_catches_all(&r));
		assert_false(rule_eq(&r, &all));
		rule_free(&r);
	}
	rule_free(&all);
}

/* Each of these differs from all others. */
static void equal_means_the_same(void **state)
{
	static const char *const lines[] = {
		"action pass",
		"action drop",
		"name a action drop",
		"name b action drop",
		"action cpu 1",
		"action cpu 2",
		"action redirect a",
		"action redirect b",
		"action redirect a smac 02:00:00:00:00:01",
		"action redirect a smac 02:00:00:00:00:03",
		"action redirect a dmac 02:00:00:00:00:01",
		"action redirect a to 10.0.0.1",
		"action redirect a to 10.0.0.2",
		"action redirect a to-port 1",
		"action redirect a to-port 2",
		"action redirect a checksum recompute",
		"action drop capture 1",
		"action drop capture 2",
		"action drop capture 1,frame",
		"action drop capture 1,slot=a",
		"action drop capture 1,slot=b",
		"action drop capture 1,ring,slot=a",
		"action drop rate 1pps",
		"action drop rate 1bit",
		"action drop rate 2pps",
		"action drop rate 2pps,burst=2",
		"action drop rate 2pps,per=src",
		"action drop rate 2pps,per=src/31/128",
		"action drop rate 2pps,per=src/32/127",
		"action drop log yes",
		"action drop log yes sample 2",
		"action drop trigger yes proto udp",
		"action drop proto udp",
		"src 10.0.0.0/8 action drop",
		"src 10.0.0.0/9 action drop",
		"dst 10.0.0.0/8 action drop",
		"src @a action drop",
		"src @b action drop",
		"dport 1 action drop",
		"sport 1 action drop",
		"dport 1-2 action drop",
		"flags syn action drop",
		"flags !syn action drop",
		"icmp 8 action drop",
		"icmp6 8 action drop",
		"vlan 1 action drop",
		"length 1 action drop",
		"fragment first action drop",
		"ttl 1 action drop",
		"ttl 1-255 action drop",
		"state new action drop",
		"state new,invalid action drop",
		"mac 02:00:00:00:00:01 action drop",
		"mac 02:00:00:00:00:02 action drop",
		"payload at 0 0x01 action drop",
		"payload at 0 0x01,at 0 0x02 action drop",
		"payload at 0 0x01 at 0 0x02 action drop",
		"payload at 1 0x01 action drop",
		"payload at 0 0x01/0x01 action drop",
	};
	struct rule r[ARRAY_SIZE(lines)];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
		r[i] = parse(lines[i]);
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
		for (size_t j = 0; j < ARRAY_SIZE(lines); j++)
			assert_int_equal(rule_eq(&r[i], &r[j]), i == j);
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
		rule_free(&r[i]);
}

static void conditions_are_bounded(void **state)
{
	autofree char *text = malloc(RULE_LIST_MAX * 8 + 16);
	struct rule r = {0};
	uint64_t given = 0;
	struct error e;
	char *p = text;

	(void)state;
	assert_non_null(text);
	for (int i = 0; i < RULE_LIST_MAX; i++)
		p += sprintf(p, "%s%d", i ? "," : "", 2 * i);
	assert_int_equal(rule_set(&r, &given, "dport", text, &e), 0);
	assert_int_equal(r.in[AX_FIELD_DPORT].n, RULE_LIST_MAX);
	rule_free(&r);
	strcpy(p, ",9");
	given = 0;
	assert_int_equal(rule_set(&r, &given, "dport", text, &e), -EINVAL);
	assert_string_equal(e.text, "dport more than 4096 values is not valid: use at most 4096; a "
				    "set (@NAME) takes more");
	rule_free(&r);
}

static void names_of_protocols_and_reasons(void **state)
{
	(void)state;
	for (int p = 0; p < 256; p++) {
		const char *name = rule_proto_name((uint8_t)p);
		char number[16];

		snprintf(number, sizeof(number), "%d", p);
		assert_int_equal(rule_parse_proto(number), p);
		if (name)
			assert_int_equal(rule_parse_proto(name), p);
	}
	assert_string_equal(rule_proto_name(6), "tcp");
	assert_string_equal(rule_proto_name(58), "icmp6");
	assert_null(rule_proto_name(200));
	assert_int_equal(rule_parse_proto("256"), -EINVAL);
	assert_int_equal(rule_parse_proto(""), -EINVAL);
	for (int i = 0; i < AX_REASONS; i++) {
		assert_non_null(rule_reasons[i].name);
		for (int j = 0; j < i; j++)
			assert_string_not_equal(rule_reasons[i].name, rule_reasons[j].name);
	}
	assert_string_equal(rule_reasons[AX_REASON_SPLIT].name, "split-header");
	assert_string_equal(rule_reasons[AX_REASON_TRIGGER_LOST].name, "trigger-lost");
	assert_string_equal(ax_verdict_names[AX_VERDICT_BALANCE], "balance");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_key_has_a_canonical_form),
		cmocka_unit_test(values_arrive_in_the_struct),
		cmocka_unit_test(wrong_values_are_named),
		cmocka_unit_test(keys_are_known_and_come_once),
		cmocka_unit_test(words_of_a_command_line),
		cmocka_unit_test(what_does_not_go_together),
		cmocka_unit_test(conditions_are_seen),
		cmocka_unit_test(equal_means_the_same),
		cmocka_unit_test(conditions_are_bounded),
		cmocka_unit_test(names_of_protocols_and_reasons),
	};

	return cmocka_run_group_tests_name("rule", tests, NULL, NULL);
}
