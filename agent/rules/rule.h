/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One XDP rule: its text, which is the same in a file and on the command line, and its struct.
 * Everything in here is free of side effects: names of interfaces, sets and balancers are only
 * names.
 *
 * A rule is a list of keys with one value each; in YAML a mapping (lists are joined by commas), on
 * the command line words: name ssh src 10.0.0.0/8 proto tcp dport 22,8000-8099 action pass
 *
 *   name NAME            under which it counts, and is moved and deleted
 *   src, dst             10.0.0.0/8,fd00::/8,@SET   (any of them)
 *   proto                tcp|udp|icmp|icmp6|...|NUMBER, lists; ranges of numbers
 *   sport, dport         22,8000-8099,ssh,@SET; TCP and UDP only
 *   flags                syn,!ack: flags that must be set, and with ! must not be
 *   icmp, icmp6          echo-request | TYPE | TYPE/CODE, lists: together they are one condition
 *   vlan                 100,200-299,none: the outermost tag's
 *   fragment             none|first|later, lists
 *   length               0-64,1500-: of the frame in bytes, from its Ethernet header on
 *   ttl                  1-5,64-: of IPv4, or the hop limit of IPv6
 *   dscp                 ef,af11,le,1-8: codepoints by name or number, ranges of numbers
 *   ecn                  not-ect|ect0|ect1|ce, lists
 *   time                 08:00-18:00, mon-fri/08:00-18:00, sat-sun: local time of the machine
 *   state                established|new|related|invalid, lists: what this host knows of its flow
 *   mac                  source addresses of the frame, lists
 *   mark                 0x10,0x10/0xff: that the kernel has given it; of what leaves only
 *   interface-group      lan,5,10-19, or !lan,!5: what the list's interface is to be in (group.c)
 *   payload              at 0 0x17 0x03 at 5 0x01/0x0f, lists: bytes behind the transport header
 *   dns-name             example.org, lists: what the name that a DNS message asks for is,
 *                        or ends with at a dot
 *   tls-sni, http-host   the same, of the name that a TLS client's hello or an HTTP/1 request asks
 *                        for; if several of these keys are there, one of them has to hold
 *   action               pass | drop | reflect | redirect IFACE | cpu N | balance NAME | route |
 *                        challenge
 *   smac, dmac, to, to-port    redirect: what is rewritten (to: address, to-port: port)
 *   checksum             recompute: redirect or route and trust no checksum of the packet
 *   capture              BYTES[,ring][,slot=NAME][,frame]   ring unless only a slot is named
 *   rate                 1000pps | 10mbit [,burst=N][,per=src|src/24|src/24/64]; above it: dropped
 *                        (also kpps, mpps, bit, kbit, gbit; burst: packets, or bytes: 15000, 64k,
 *                        1m; src is src/32/128, src/24 is src/24/64)
 *   learn                @SET,TIME[,src|dst[/24[/64]]|flow[=22/tcp]][,above-rate]   the packet's
 *                        source is in the set for that time (learn.c)
 *   sample               N: capture and log one packet of N
 *   log                  yes|no
 *   trigger              yes|no: a signed datagram for the agent, see trigger.h; rate 50pps unless
 * given
 */
#ifndef AX_RULES_RULE_H
#define AX_RULES_RULE_H

#include "base/address.h"
#include "base/strv.h"
#include "base/util.h"
#include "rules/reason.h"
#include "xdp.h"

/* Codepoints by their names, or NULL; DSCP's also by number. -EINVAL. */
const char *dscp_name(unsigned dscp);
int dscp_parse(const char *s);
const char *ecn_name(unsigned ecn);
int ecn_parse(const char *s);
/* "0x10" or "16". -EINVAL. */
int mark_parse(const char *s, uint32_t *ret);
/* "mon 08:00": minutes of the week, from Monday 00:00 on. -EINVAL. */
int time_parse(const char *s);

#define RULE_NAME_MAX 63   /* letters, digits, . _ - : so that it is one word everywhere */
#define RULE_LIST_MAX 4096 /* items of one condition */

struct range {
	uint32_t lo, hi; /* inclusive */
};
struct rule_mac {
	uint8_t b[6];
};
struct rule_bits {
	uint8_t mask, value; /* which bits are looked at, and how they must be */
};
struct rule_payload {
	uint8_t n; /* pieces, all of which have to be there */
	struct payload_piece {
		uint8_t at; /* from the payload's start */
		uint8_t len;
		uint8_t value[AX_PAYLOAD_BYTES];
		uint8_t mask[AX_PAYLOAD_BYTES];
	} piece[AX_PAYLOAD_PIECES]; /* those behind the last are zero, and so are its bytes */
};

struct rule_mark {
	uint32_t value, mask; /* the value has no bit that the mask does not have */
};

/* A group of interfaces: by name, or from `lo` to `hi`. */
struct rule_group {
	uint32_t lo, hi;
	uint32_t others; /* 1: the interface must not be in it; the same of all in a condition */
	char name[RULE_NAME_MAX + 1]; /* "": by number; zero behind it */
};

struct rule_name {
	uint8_t kind;		    /* enum ax_name_kind: where the packet has it */
	char text[AX_NAME_MAX + 2]; /* small letters, no dot at the end but "."; zero behind it */
};

/* What a rule asks of one field (rules/field.h): one of the items has to fit. */
struct condition {
	union { /* by the field's kind */
		void *items;
		struct range *ranges;	 /* sorted, without overlaps */
		struct prefix *prefixes; /* as given */
		struct rule_mac *macs;	 /* as given */
		struct rule_bits *bits;	 /* one */
		struct rule_payload *payloads;
		struct rule_name *names;   /* sorted, each once */
		struct rule_mark *marks;   /* as given */
		struct rule_group *groups; /* as given */
	};
	size_t n;
	struct strv sets; /* whose elements are items, too */
};
/* One that is empty asks nothing: everything fits. */
static inline bool condition_is_empty(const struct condition *c)
{
	return !c->n && !c->sets.n;
}

/* What a rule asks of the interface that its list is for, not of packets: it is judged where the
 * list is compiled. Behind the fields of packets. */
#define RULE_FIELD_GROUP AX_FIELDS
#define RULE_FIELDS	 (AX_FIELDS + 1)

struct rule {
	char *name; /* NULL: none was given */
	struct condition in[RULE_FIELDS];

	enum ax_verdict verdict;
	char *target;	  /* of redirect: interface, of balance: balancer */
	uint32_t cpu;	  /* of cpu */
	uint16_t rewrite; /* enum ax_rewrite_flag */
	uint8_t smac[6], dmac[6];
	struct ax_addr to;
	uint16_t to_port; /* host byte order */
	bool checksum;

	uint32_t capture; /* bytes, 0: none */
	bool capture_ring, capture_frame;
	char *slot;    /* NULL: none */
	uint64_t rate; /* packets or bits a second, 0: no limit */
	bool rate_bits;
	uint64_t burst; /* packets or bytes; 0 was replaced by the default when it was parsed */
	bool per_source;
	uint8_t per4, per6; /* prefix lengths of its families */
	uint32_t sample;    /* 0: all */
	char *learn;	    /* the set that addresses come to; NULL: none */
	uint32_t learn_ms;
	uint8_t learn4, learn6; /* prefix lengths of its families */
	bool learn_dst;		/* the destination; else the source, */
	bool learn_flow;	/* or both, with protocol and port: the packet's own, or these, */
	uint8_t learn_proto;	/* unless it is 0 */
	__be16 learn_port_be;
	bool learn_above; /* of packets above the rate alone */
	bool log, trigger;
};

void rule_free(struct rule *r);
int rule_copy(const struct rule *from, struct rule *to);
bool rule_eq(const struct rule *a, const struct rule *b);

/* Sets one key of a rule that is zeroed at first. -EINVAL with a sentence that names the value and
 * what was expected; -EEXIST: the key was given before; -ENOENT: there is no such key (with "did
 * you mean"). `given` is the caller's, zero at first: a bit for each key. */
int rule_set(struct rule *r, uint64_t *given, const char *name, const char *value, struct error *e);
/* How many of the words behind a key are its value; n: how many there are, not 0. */
size_t rule_value_words(const char *key, const char *const *words, size_t n);
/* A whole, checked rule from words. */
int rule_parse(const char *const *words, size_t n, struct rule *r, struct error *e);
/* The canonical line, which rule_parse() turns into an equal rule. malloc'ed. */
char *rule_format(const struct rule *r);
/* It has no conditions, whatever it does. */
bool rule_catches_all(const struct rule *r);
/* It has none on packets. */
bool rule_takes_any_packet(const struct rule *r);
/* Whether it is for interfaces of that group: 1 or 0. number: what a group's name stands for, 0 or
 * a negative errno, which is returned, with the name in *unknown. */
int rule_group_fits(const struct rule *r, uint32_t group,
		    int (*number)(void *arg, const char *name, uint32_t *ret), void *arg,
		    const char **unknown);

/* What single values are; also for the matcher's tests and for `ax xdp explain`. */
int rule_parse_proto(const char *s);		  /* 0..255 or -EINVAL */
const char *rule_proto_name(uint8_t proto);	  /* NULL: it has none, the number is written */
const char *rule_state_name(enum ax_state state); /* NULL: no rule can ask for it */

extern const char *const ax_verdict_names[8]; /* "pass" ... */
/* Whether a name or a number follows: redirect IFACE. */
bool rule_verdict_has_target(enum ax_verdict v);
const char *rule_key_name(size_t i); /* "name", "src" ..., NULL behind the last one */

#endif
