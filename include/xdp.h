/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The XDP dataplane's compiled rule list, and what its programs and user space tell each other.
 *
 * A rule list is compiled by the agent into one flat piece of memory, the arena: an array map with
 * a single value, filled through mmap(2) before any packet sees it. With a program of its own it
 * makes a generation; one write to a program array puts a generation in the place of another, so
 * every packet is judged by exactly one of them. After that only elements of sets change in it, see
 * struct ax_journal. Offsets are bytes from the arena's start. What says where things are (struct
 * ax_layout) is constant data of the program, so the verifier removes what a list does not use.
 *
 * Matching: each field that the list uses turns the packet's value into a class (values that no
 * rule tells apart have one class). Classes are then brought together in one of three ways, see
 * enum ax_match.
 */
#ifndef AX_XDP_H
#define AX_XDP_H

#include <linux/types.h>
#include "addr.h"
#include "xdp_reason.h"

#define AX_XDP_RULES_MAX 16384 /* of one interface */

/* What of a packet rules can ask about. How a field is added: see agent/rules/field.h. */
enum ax_field {
	AX_FIELD_SRC,	    /* address; see struct ax_addr_table */
	AX_FIELD_DST,	    /* address */
	AX_FIELD_PROTO,	    /* 256 classes and AX_PROTO_NONE */
	AX_FIELD_SPORT,	    /* 65536 and AX_PORT_NONE, in host byte order */
	AX_FIELD_DPORT,	    /* 65536 and AX_PORT_NONE */
	AX_FIELD_TCP_FLAGS, /* 256 and AX_TCP_FLAGS_NONE */
	AX_FIELD_ICMP,	    /* v6 << 16 | type << 8 | code, and AX_ICMP_NONE */
	AX_FIELD_VLAN,	    /* 4096 and AX_VLAN_NONE */
	AX_FIELD_FRAGMENT,  /* enum ax_fragment */
	AX_FIELD_LENGTH,    /* of the frame from its Ethernet header on; 65536, longer as 65535 */
	AX_FIELD_MAC,	    /* searched, see struct ax_key64; the source of the frame */
	AX_FIELD_TTL,	    /* of IPv4, or IPv6's hop limit: 256 and AX_TTL_NONE */
	AX_FIELD_DSCP,	    /* of IPv4's TOS, or IPv6's traffic class: 64 and AX_DSCP_NONE */
	AX_FIELD_ECN,	    /* its lower two bits: 4 and AX_ECN_NONE */
	AX_FIELD_TIME,	    /* when it comes: minute of the week, see struct ax_clock */
	AX_FIELD_STATE,	    /* enum ax_state */
	AX_FIELD_PAYLOAD,   /* which of the list's payloads it has, see struct ax_payload */
	AX_FIELD_NAME,	    /* what the name in its payload ends with, see struct ax_name */
	AX_FIELD_FLOW,	    /* bits: in which of layout.timed[] it is, see struct ax_set_flow */
	AX_FIELD_MARK,	    /* bits: which of the list's marks it has, see struct ax_mark */
	AX_FIELDS
};

/* The entry of a table that stands for "the packet has no such field". */
#define AX_PROTO_NONE	  256
#define AX_PORT_NONE	  65536
#define AX_TCP_FLAGS_NONE 256
#define AX_ICMP_NONE	  131072
#define AX_VLAN_NONE	  4096
#define AX_TTL_NONE	  256
#define AX_DSCP_NONE	  64
#define AX_ECN_NONE	  4

/*
 * What clocks on walls show from a time on: how many seconds they are ahead of CLOCK_TAI, as if it
 * had begun at 00:00 on a Monday. The first is for all times before the second one's. With the
 * last, eight years or more from now, it stays.
 */
#define AX_TIME_MINUTES 10080
#define AX_TIME_UNKNOWN 0xffff
#define AX_CLOCKS	18 /* for eight years and some days, two a year, and now */
struct ax_clock {
	__u64 from_s; /* CLOCK_TAI */
	__u64 ahead_s;
};

enum ax_fragment {
	AX_FRAGMENT_NONE,
	AX_FRAGMENT_FIRST,
	AX_FRAGMENT_LATER,
	AX_FRAGMENT_NOT_IP,
	AX_FRAGMENTS
};

/*
 * What a packet is to the flows that this host knows of. To ask costs more than all else, so the
 * rules are first held against AX_STATE_UNASKED, for which every condition on it holds: only when
 * the rule that is found so has one (AX_ACTION_ASKS_STATE), the host is asked, and the rules are
 * held against what it says.
 */
enum ax_state {
	AX_STATE_ESTABLISHED, /* of a connection of a socket, or of a flow that was answered */
	AX_STATE_NEW,	      /* it may begin one */
	AX_STATE_RELATED,     /* an ICMP error about a flow that is established */
	AX_STATE_INVALID,     /* it claims to belong to one, of which nothing is known */
	AX_STATE_NONE,	      /* not IP */
	AX_STATE_UNASKED,
	AX_STATES
};

/*
 * The different payloads that the rules of a list ask for are numbered (struct ax_payload). What a
 * packet has of them is AX_PAYLOAD_NONE + a bit for each. Like states they are only looked for when
 * the rule that is found without has one (AX_ACTION_ASKS_PAYLOAD); until then a packet is
 * AX_PAYLOAD_UNASKED, for which every condition on it holds.
 */
#define AX_PAYLOADS_MAX	   12
#define AX_PAYLOAD_UNASKED 0
#define AX_PAYLOAD_NONE	   1
#define AX_PAYLOAD_VALUES  (AX_PAYLOAD_NONE + (1 << AX_PAYLOADS_MAX))

#define AX_PAYLOAD_PIECES 4
#define AX_PAYLOAD_BYTES  8   /* of a piece */
#define AX_PAYLOAD_REACH  128 /* where the last piece is over, from the payload's start */
struct ax_payload { /* all of its pieces have to be there; constants to the verifier, too */
	struct {
		__u64 bits, mask; /* in the order of the bytes; those behind the last are 0 */
	} piece[AX_PAYLOAD_PIECES];
	__u8 at[AX_PAYLOAD_PIECES];
	__u8 len[AX_PAYLOAD_PIECES]; /* 0: this piece and those behind it are not there */
};
_Static_assert(sizeof(struct ax_payload) == 72, "struct ax_payload is shared");

/*
 * The different marks that the rules of a list ask for are numbered, too: a packet has one of them
 * if what its own mark has of the mask is the value. Where packets come in they have none yet, so
 * such a list is for what leaves.
 */
#define AX_MARKS_MAX   12
#define AX_MARK_VALUES (1 << AX_MARKS_MAX)
struct ax_mark {
	__u32 value, mask;
};
_Static_assert(sizeof(struct ax_mark) == 8, "struct ax_mark is shared");

/*
 * Names that packets carry, of which rules ask what they end with. The list's names are a tree,
 * label by label from the right, and a hash table has all its nodes but the roots, one for each
 * kind. A node's number is a keyed hash, all 64 bits of which are compared:
 *
 *	label = name_key[0]
 *	for each byte of the label, the last one first, A to Z as a to z:
 *		label = (label ^ byte) * name_key[1]; label ^= label >> 32
 *	node = (parent ^ label) * name_key[1]; node ^= node >> 32
 *	node = node * name_key[1]; node ^= node >> 32; if it is 0: 1
 *
 * where `parent` of the first label is the kind. A node is in one of two buckets: those of the low
 * and of the high half of its number. Its value is that of a packet whose name ends there, or goes
 * on with what is not in the tree.
 *
 * The value of AX_FIELD_NAME is an index into the field's table. Like payloads, names are only
 * looked for when the rule that is found without wants it, together with them; until then a packet
 * that can have one is AX_NAME_UNASKED, for which every condition on it holds.
 */
enum ax_name_kind {
	AX_NAME_DNS = 1, /* of the question in a DNS message, UDP port 53 */
	AX_NAME_TLS,	 /* that a TLS client's hello asks for */
	AX_NAME_HTTP,	 /* of the host that an HTTP/1 request is for */
	AX_NAME_KINDS
};
#define AX_NAME_MAX	253 /* as text; 255 bytes in a DNS message */
#define AX_NAME_NONE	0
#define AX_NAME_UNASKED 1
#define AX_NAME_FIRST	2 /* and so on, one for each class */

#define AX_NAME_BUCKET 4
struct ax_name {
	__u64 node; /* 0: there is none */
	__u16 value;
	__u16 pad[3];
};
_Static_assert(sizeof(struct ax_name) == 16, "struct ax_name is part of the arena");

/*
 * Tables of MAC addresses: sorted entries, of which the last counts whose key is not above the
 * wanted one; the first key is 0. An address is a number of 48 bits, the first byte on the wire the
 * highest.
 */
struct ax_key64 {
	__u64 key;
	__u16 cls;
	__u16 pad[3];
};
_Static_assert(sizeof(struct ax_key64) == 16, "struct ax_key64 is part of the arena");

/*
 * IPv6 addresses: such tables in two steps, with keys of 128 bits in host byte order. What counts
 * in the first (root6) leads to a bucket, which has all keys from that one up to the next one's:
 * `value` is the bucket's number of entries << 32 | its offset in units of 8 bytes from buckets6.
 * In a bucket, `value` is the class.
 */
struct ax_key128 {
	__u64 hi, lo;
	__u64 value;
};
_Static_assert(sizeof(struct ax_key128) == 24, "struct ax_key128 is part of the arena");
#define AX_ROOT6_LOG2_MAX      21
#define AX_BUCKET6_LOG2_MAX    11
#define AX_BUCKET6_OFFSET_MASK ((1u << 26) - 1)

/*
 * IPv4 addresses: 65536 words (root4) by the address's upper half. With AX_ROOT_CLASS the low 16
 * bits are the class of all of them. Else bits 0..25 are the offset, in units of 4 bytes from
 * `buckets4`, of a bucket. Bits 26..30 say which kind it is. From 1 up to AX_ROOT_LOG2_MAX: it has
 * 1 << bits words, each the first lower half of an interval << 16 | its class, sorted, the first
 * one's 0, filled up with lower half 0xffff and its class. Above: __u16 classes by the lower half
 * >> (bits - AX_ROOT_LOG2_MAX).
 *
 * 0: single addresses of one class among others of another one (`points`), as sets of hosts make
 * them. The lower 3 bits of the offset do not belong to it: 1 << they is the number of rows, of
 * which the upper bits of the lower half choose one. A row has AX_POINTS lower halves in order, and
 * is filled up with what nobody looks for there: the first of them, or, if it has none, one that
 * belongs to another row. So a look-up costs one line of the cache beside root4's, and a million
 * addresses take 2 to 3 bytes each, pages enough for the TLB to hold.
 */
#define AX_ROOT_LOG2_MAX    16
#define AX_ROOT_CLASS	    0x80000000u
#define AX_ROOT_OFFSET_BITS 26
#define AX_POINTS	    16
#define AX_POINTS_SIZE	    32 /* bytes of a row; it begins at a multiple of them */
#define AX_POINTS_LOG2_MAX  7  /* rows of a bucket; a mask, too */

struct ax_field_layout {
	__u32 used;   /* the list has a condition on it */
	__u32 table;  /* __u16 classes[]; of an address: root4; of MAC: struct ax_key64[] */
	__u32 none;   /* class of a packet that has no address (not IP) */
	__u32 stride; /* AX_MATCH_PRODUCT: what its class is multiplied with */
	/* AX_MATCH_BITMAP: of the bit vectors, one for each class. AX_MATCH_PRODUCT: for user
	 * space, which makes changes in place by them; 0: there are none. */
	__u32 rows;
	__u32 classes;
	__u32 buckets4, buckets4_size; /* size in bytes */
	__u32 table6;		       /* root6: struct ax_key128[] */
	__u32 entries;		       /* of root6, or of MAC's table; of names': of `table` */
	__u32 buckets6, buckets6_size;
	/* bytes at the end of the buckets for new ones, see struct ax_journal */
	__u32 spare4, spare6;
	/* Of addresses: what their class is with elements for a time. __u16[1 << timed_n][classes],
	 * by which of the list's timed sets the address is in; 0: no rule asks for such a set. */
	__u32 timed;
	__u32 timed_asked; /* bits: which of layout.timed[] rules ask for here; of flows, too */
	/* of single addresses and of those between: class << 16 | class; 0: there are no such
	 * buckets */
	__u32 points;
};
_Static_assert(sizeof(struct ax_field_layout) == 68, "struct ax_field_layout is shared");

enum ax_match {
	AX_MATCH_NONE,	 /* no rule has a condition: `only` is what every packet gets */
	AX_MATCH_SINGLE, /* one field is used: its class is the rule */
	/* __u16 products[]: the rule, by the sum of class * stride over the used fields */
	AX_MATCH_PRODUCT,
	/* A row of each used field's class: `summary` 64-bit words of which bit w says whether word
	 * w of what follows has any bit set, then `words` words with a bit for each rule. The
	 * first bit that all rows have is the rule; none: the default. */
	AX_MATCH_BITMAP,
};
#define AX_SUMMARY_MAX 4 /* AX_XDP_RULES_MAX / 64 / 64 */

#define AX_TAGS_MAX	    8
#define AX_IPV6_HEADERS_MAX 8

enum ax_verdict {
	AX_VERDICT_PASS,
	AX_VERDICT_DROP,
	AX_VERDICT_REFLECT,
	AX_VERDICT_REDIRECT,  /* target: index in map `devices` */
	AX_VERDICT_CPU,	      /* target: index in map `cpus` */
	AX_VERDICT_BALANCE,   /* target: index of a struct ax_balancer (balance.h) */
	AX_VERDICT_ROUTE,     /* where the host's routes lead, see route.h */
	AX_VERDICT_CHALLENGE, /* TCP alone: SYNs are answered with cookies */
};

enum ax_action_flag {
	/* It has no conditions: as the list's default, it does not cut off what AX_REASON_ARP to
	 * AX_REASON_ICMP_ERROR let through. */
	AX_ACTION_CATCH_ALL = 1 << 0,
	AX_ACTION_RING = 1 << 1,	 /* captured payload goes to map `captures`, */
	AX_ACTION_SLOT = 1 << 2,	 /* to map `slots`, */
	AX_ACTION_FRAME = 1 << 3,	 /* capture from the frame's start, not its payload's */
	AX_ACTION_LOG = 1 << 4,		 /* a record without data */
	AX_ACTION_TRIGGER = 1 << 5,	 /* payload goes to map `triggers` */
	AX_ACTION_CHECKSUM = 1 << 6,	 /* compute checksums anew, trust none (redirect, route) */
	AX_ACTION_ASKS_STATE = 1 << 7,	 /* it has a condition on AX_FIELD_STATE, */
	AX_ACTION_ASKS_PAYLOAD = 1 << 8, /* on AX_FIELD_PAYLOAD or AX_FIELD_NAME */
	AX_ACTION_OFF = 1 << 9,		 /* its interface is of another group: no packet is its */
};

/*
 * What a rule does. The entry behind the last rule's is the default action. The arena's rules are
 * not those of the list one by one: what is behind a rule without conditions is left out, and
 * balancing by ports adds a rule for later fragments.
 */
struct ax_action {
	__u8 verdict;  /* enum ax_verdict */
	__u8 slot;     /* index in map `slots` */
	__u16 flags;   /* enum ax_action_flag */
	__u16 counter; /* index in map `rule_counts`, and in `limits` */
	__u16 target;
	__u16 capture; /* bytes to capture at most */
	__u16 limit;   /* number of its struct ax_limit, from 1; 0: none */
	__u16 rewrite; /* number of its struct ax_rewrite, from 1; 0: none */
	__u16 rule;    /* its number in the list; number of rules there: the default */
	__u16 learn;   /* number of its struct ax_learn, from 1; 0: none */
	__u16 pad;
	__u32 sample; /* capture and log one of this many packets, chosen by chance; 0, 1: all */
};
_Static_assert(sizeof(struct ax_action) == 24, "struct ax_action is part of the arena");
#define AX_CAPTURE_MAX 9216

/*
 * A token bucket in the form of the generic cell rate algorithm (ITU-T I.371): one time stamp says
 * when the bucket will be full again. Times in 1/64 ns (64 bits of them last nine years of uptime).
 */
#define AX_LIMIT_NS_SHIFT   6
#define AX_LIMIT_BYTE_SHIFT 10
struct ax_limit {
	__u64 cost;	 /* of a packet; of a byte: in 1/64 ns >> AX_LIMIT_BYTE_SHIFT */
	__u64 tolerance; /* how far ahead of now the time stamp may be */
	__u8 bytes;	 /* cost is for bytes */
	__u8 per_source; /* a bucket for each source prefix of these lengths, in `source_limits` */
	__u8 len4;	 /* 0..32 */
	__u8 len6;	 /* 0..128 */
	__u32 pad;
};
_Static_assert(sizeof(struct ax_limit) == 24, "struct ax_limit is part of the arena");

struct ax_source_limit_key {
	struct ax_addr prefix;
	__u32 counter; /* the rule's */
};
_Static_assert(sizeof(struct ax_source_limit_key) == 20, "struct ax_source_limit_key is a map key");

enum ax_rewrite_flag {
	AX_REWRITE_SMAC = 1 << 0,
	AX_REWRITE_DMAC = 1 << 1,
	AX_REWRITE_DST = 1 << 2, /* packets of the other address family are dropped */
	AX_REWRITE_DPORT = 1 << 3,
};
struct ax_rewrite {
	struct ax_addr dst;
	__be16 dport_be;
	__u8 smac[6];
	__u8 dmac[6];
	__u16 flags; /* enum ax_rewrite_flag */
};
_Static_assert(sizeof(struct ax_rewrite) == 32, "struct ax_rewrite is part of the arena");

/*
 * Sets whose elements may come for a time (sets that rules learn to, and such as are declared so):
 * beside what the list says is in them, addresses are that packets brought (`learned`), and some
 * that somebody put there (`held`). A slot is a set's place in the maps, which it keeps from list
 * to list. Times are of CLOCK_BOOTTIME in ns; what is over stays until its place is wanted.
 */
#define AX_TIMED_SETS  4 /* of a list */
#define AX_TIMED_SLOTS 8 /* two lists at a time */
#define AX_TIMED_ELEMENTS                                                       \
	65536 /* of `learned`, for each set; of `held`, for all of an interface \
	       */

#define AX_FLOW_VALUES (1 << AX_TIMED_SETS) /* of AX_FIELD_FLOW */

struct ax_timed_set {
	__u16 set;	 /* its number in the list */
	__u8 slot;	 /* index in maps `learned` (or `learned_flows`) and `timed_slots` */
	__u8 len4, len6; /* elements are networks of these lengths: 0..32, 0..128 */
	__u8 flows;	 /* its elements are struct ax_set_flow instead */
	__u8 pad[2];
};
_Static_assert(sizeof(struct ax_timed_set) == 8, "struct ax_timed_set is shared");

/* Map `held`; those of a slot of map `learned` are struct ax_addr. Both lead to the end of the
 * element's time. Host bits are zero. */
struct ax_held_key {
	struct ax_addr addr;
	__u32 slot;
};
_Static_assert(sizeof(struct ax_held_key) == 20, "struct ax_held_key is a map key");

/* Who sends to which port of whom, by TCP or UDP. Of such elements are the maps `learned_flows` and
 * `held_flows`. */
struct ax_set_flow {
	struct ax_addr src, dst;
	__be16 dport_be;
	__u8 proto;
	__u8 pad;
};
_Static_assert(sizeof(struct ax_set_flow) == 36, "struct ax_set_flow is a map key");
struct ax_held_flow {
	struct ax_set_flow flow;
	__u32 slot;
};
_Static_assert(sizeof(struct ax_held_flow) == 40, "struct ax_held_flow is a map key");

/* Map `timed_slots`: whether there can be any; so that sets that are empty cost nothing. */
struct ax_timed_slot {
	__u32 learned, held;
};

/* What a rule learns. */
struct ax_learn {
	__u64 time;   /* how long an element lasts, in ns */
	__u64 fresh;  /* one that lasts longer than this is left as it is */
	__u8 set;     /* index in layout.timed */
	__u8 dst;     /* the destination; else the source */
	__u8 limited; /* of packets above the rule's rate alone */
	__u8 flow;    /* both, with port and protocol: a struct ax_set_flow */
	__u8 proto;   /* not 0: of the flow, and `port_be`, instead of the packet's */
	__u8 pad;
	__be16 port_be;
};
_Static_assert(sizeof(struct ax_learn) == 24, "struct ax_learn is part of the arena");

/* What a list whose rules ask for states does with the flows that ax keeps (flow_state.h). */
enum ax_flows {
	AX_FLOWS_NONE,
	AX_FLOWS_LOOK, /* it knows them, and leaves them as they are */
	AX_FLOWS_KEEP, /* what it lets through begins some */
};

/* Constant data of a generation's programs; also at the arena's start, for user space. */
struct ax_layout {
	__u32 magic;	/* AX_ARENA_MAGIC */
	__u32 size;	/* of the arena */
	__u32 match;	/* enum ax_match */
	__u32 only;	/* AX_MATCH_NONE: the rule */
	__u32 rules;	/* also the number that stands for "the default action" */
	__u32 actions;	/* struct ax_action[rules + 1] */
	__u32 products; /* __u16[products_n] */
	__u32 products_n;
	__u32 words, summary, row_size; /* row_size in bytes: 8 * (summary + words) */
	__u32 limits, limits_n;		/* struct ax_limit[] */
	__u32 rewrites, rewrites_n;	/* struct ax_rewrite[] */
	__u32 learns, learns_n;		/* struct ax_learn[] */
	__u32 timed_n;
	__u32 flow_learns; /* some of `learns` are of flows */
	struct ax_timed_set timed[AX_TIMED_SETS];
	__u32 payloads_n;	      /* of `payload` */
	__u32 marks_n;		      /* of `mark` */
	__u32 clocks_n;		      /* of `clocks`, with AX_FIELD_TIME */
	__u32 names, names_n;	      /* struct ax_name[], a power of two of buckets */
	__u32 name_kinds;	      /* bits: for 1 << enum ax_name_kind there are names */
	__u16 name_roots[4];	      /* by enum ax_name_kind: the value of its root */
	__u32 balancers, balancers_n; /* struct ax_balancer[], balance.h */
	__u32 backends, backends_n;   /* struct ax_real[], balance.h */
	__u32 quic;    /* some balancer has backends with numbers of connection ids */
	__u32 nat;     /* answers of NAT's backends are looked for before the rules; bit n: there is
			  a NAT source address whose last 5 bits are n; see xdp/nat.bpf.h */
	__u32 answers; /* the same: other lists of the instance have NAT (map nat_sources) */
	struct { /* the way to apps of this machine, see balance.h; ifindex 0: there is none */
		__u32 ifindex;
		__u16 mtu;
		__u8 mac[6]; /* of both ends */
	} apps;
	__u32 balance_first; /* ICMP errors are looked at for flows of a balancer before the rules
			      */
	__u32 quotes;	     /* ICMP errors about flows that are let through need a second look */
	__u32 routes;	     /* some rule has the verdict AX_VERDICT_ROUTE, */
	__u32 challenges;    /* AX_VERDICT_CHALLENGE */
	__u32 rmem_max;	     /* net.core.rmem_max, by which windows are scaled; 0: not known */
	__u32 state; /* the list as text and its sets, for user space: see agent/rules/list.h */
	__u32 state_size;
	struct ax_clock clocks[AX_CLOCKS];
	__u64 explain_key; /* not 0; see struct ax_explain */
	__u64 name_key[2]; /* the second is odd; nobody outside is to know them */
	__u64 since_boot;  /* when this generation came, CLOCK_BOOTTIME in ns; the loader sets these
			    */
	__u64 netns_cookie;
	__u32 ifindex;
	__u32 generation;   /* counts the lists of an interface, from 1 */
	__u32 hz;	    /* ticks (jiffies) in a second */
	__u32 mode;	    /* how the root was attached: enum xdp_mode (agent/rules/list.h) */
	__u32 has_frags;    /* loaded as the root is, see datapath_xdp_attach() */
	__u32 conntrack;    /* the kernel's is asked for states, too; the loader sets it */
	__u32 trackable;    /* it was there to be asked then, whether programs can or not */
	__u32 flows;	    /* enum ax_flows */
	__u64 flows_key[2]; /* see flow_state.h; the second is odd; nobody outside is to know them
			     */
	__u32 journal;	    /* struct ax_journal; 0: nothing changes in place */
	__u8 policy[24];    /* enum ax_policy by enum ax_reason */
	struct ax_field_layout field[AX_FIELDS];
	struct ax_payload payload[AX_PAYLOADS_MAX];
	struct ax_mark mark[AX_MARKS_MAX];
};
/* Changes whenever the arena's layout does: a new field changes it by itself. */
#define AX_ARENA_MAGIC (0x61785576 + AX_FIELDS)
_Static_assert(AX_REASON_POLICIES <= 24, "every class has a policy");

/*
 * Elements come to sets, or go, while packets are judged: new buckets are written into the spare
 * room behind the others, and then the words that lead to them, root4's or `value` of root6, so
 * every packet finds the one or the other; classes of ports are changed where they are. Whatever is
 * in the set before and after is in it all the time. What `state` says of the sets holds with these
 * changes, in their order. The command has the interface's lock; readers need none: entries are
 * there once they are counted in n, and stay as they are.
 */
#define AX_JOURNAL_MAX 4096
struct ax_journal {
	__u32 n;
	__u32 applied; /* of them to the tables; not n: the command was killed over one */
	/* bytes of spare4 and spare6, of AX_FIELD_SRC and AX_FIELD_DST */
	__u32 spare4_used[2], spare6_used[2];
	struct ax_journal_entry {
		struct ax_addr addr; /* of a prefix; of ports: w[0] and w[1], the first and last */
		__u16 set;	     /* its number in the list */
		__u8 len;	     /* 0..128 */
		__u8 gone;	     /* else it came */
	} v[AX_JOURNAL_MAX];
};
_Static_assert(sizeof(struct ax_journal_entry) == 20, "struct ax_journal is part of the arena");

/* Map `rule_counts` (per CPU): counted under a rule's name, whichever generation it is in. */
struct ax_rule_count {
	__u64 packets;
	__u64 bytes;
	__u64 limited; /* of these packets, dropped by the rate limit */
	__u64 failed;  /* of these packets, redirected but not sent */
};
_Static_assert(sizeof(struct ax_rule_count) == 32, "struct ax_rule_count is a map value");

/*
 * Map `redirected` (per CPU, one entry): the frames that were redirected last. For each, when the
 * helper has returned XDP_REDIRECT, and for XDP_TX, the filter does
 *
 *	r->last[r->n++ % AX_REDIRECTED] = (struct ax_redirect){.to = to, .counter = counter};
 *
 * The kernel only says how many of a bulk of frames it did not send, and to which device; with
 *this, failures.bpf.c knows under which rules they count. Map `ifindexes` (array of __u32) repeats
 *which interface is in which entry of `devices`.
 */
enum ax_redirect_to {		     /* the upper two bits of `to` */
		      AX_TO_DEVICE,  /* index in map `devices` */
		      AX_TO_IFINDEX, /* bpf_redirect(); XDP_TX: of the interface itself */
		      AX_TO_CPU,     /* index in map `cpus` */
		      AX_TO_NOWHERE, /* counted already */
};
#define AX_REDIRECT_TO_SHIFT 30
struct ax_redirect {
	__u32 to; /* enum ax_redirect_to << AX_REDIRECT_TO_SHIFT | number */
	__u16 counter;
	__u16 pad;
};
#define AX_REDIRECTED 128 /* a power of two, and more than drivers poll at once (64) */
struct ax_redirected {
	__u32 n; /* so far */
	__u32 pad;
	struct ax_redirect last[AX_REDIRECTED];
};
_Static_assert(sizeof(struct ax_redirected) == 1032, "struct ax_redirected is a map value");

/* Constant data of failures.bpf.c: whose redirects are watched. */
struct ax_watched {
	__u64 netns_cookie; /* of the interface's network namespace */
	__u32 ifindex;
	__u32 devices; /* the numbers (ids) of maps `devices` */
	__u32 cpus;    /* and `cpus` */
	__u32 pad;
};

enum ax_capture_kind { AX_CAPTURE_DATA, AX_CAPTURE_LOG, AX_CAPTURE_TRIGGER };

/* A record of the ring buffers `captures` and `triggers`, with `captured` bytes behind it. */
struct ax_capture {
	__u64 time_ns; /* CLOCK_BOOTTIME */
	__u32 generation;
	__u32 ifindex;
	__u32 queue;
	__u32 frame_len;
	__u16 captured;
	__u16 data_off;		 /* where in the frame the data starts */
	__u16 counter;		 /* the rule's */
	__u16 vlan;		 /* AX_VLAN_NONE: untagged */
	struct ax_addr src, dst; /* all zero: not IP */
	__be16 sport_be, dport_be;
	__be16 ethertype_be; /* behind the tags */
	__u8 proto;
	__u8 kind;    /* enum ax_capture_kind */
	__u8 verdict; /* enum ax_verdict */
	__u8 tcp_flags;
	__u8 has_ports;
	__u8 fragment; /* enum ax_fragment */
	__u32 pad;
};
_Static_assert(sizeof(struct ax_capture) == 80, "struct ax_capture is a ring buffer record");

#define AX_DEVICES    4096 /* entries of map `devices`, one for each redirecting rule */
#define AX_SLOTS      64   /* at most 256: struct ax_action */
#define AX_SLOT_BYTES 256
/* Map `slots`: the latest payload of the rules with `capture ... slot NAME`. Read it with
 * BPF_F_LOCK, and never a torn one comes out; BPF programs take the lock. */
struct ax_slot {
	__u32 lock; /* struct bpf_spin_lock */
	__u32 len;
	__u64 time_ns; /* CLOCK_BOOTTIME; 0: nothing came yet */
	__u64 count;   /* packets so far */
	__u8 data[AX_SLOT_BYTES];
};
_Static_assert(sizeof(struct ax_slot) == 280, "struct ax_slot is a map value");

/*
 * Explaining: a packet that carries this as its XDP metadata, with the generation's key, is judged
 * without counting, capturing, limiting or remembering anything, and the answer is written here.
 * 32 bytes is the most metadata that kernels before 6.3 take.
 */
struct ax_explain {
	__u64 key;
	__u16 rule;	   /* number of rules: the default */
	__u16 backend;	   /* balanced: index in the arena's backends */
	__u8 verdict;	   /* enum ax_verdict */
	__u8 reason;	   /* enum ax_reason, also those that did not decide but were looked at */
	__u8 decided;	   /* enum ax_decided */
	__u8 limited;	   /* the rule's rate limit would have dropped it now */
	__u16 quoted_rule; /* ICMP_ERROR: the rule of the flow it is about */
	__u16 vlan;
	__u32 l4_off;
	/* enum ax_state: it was asked and is this; AX_STATE_UNASKED: it was not. Before: it is to
	 * be taken for this; AX_STATE_UNASKED: to be asked. */
	__u8 state;
	__u8 for_us; /* before: whatever its link-layer address is, take it for the interface's */
	/* Before: the minute of the week that it is to be taken for; AX_TIME_UNKNOWN: now. */
	__u16 minute;
	union {
		__u32 ifindex; /* AX_REASON_ROUTED: of the interface that its route leads to */
		__u32 mark;    /* before, of what leaves: that it has */
	};
};
_Static_assert(sizeof(struct ax_explain) == 32, "struct ax_explain fits XDP metadata");

/*
 * A list for what leaves is explained by a program of its own, which nobody but the test run ever
 * runs: what is asked and answered stands in cb[] of the packet's context.
 */
enum ax_explain_cb {
	AX_EXPLAIN_RULES, /* answered: rule | quoted_rule << 16 */
	/* answered: verdict | reason << 8 | decided << 16 | limited << 24 | state << 25 */
	AX_EXPLAIN_WORDS,
	AX_EXPLAIN_VLAN, /* answered; asked, in its place: */
	AX_EXPLAIN_MINUTE = AX_EXPLAIN_VLAN,
	AX_EXPLAIN_L4,			  /* answered: l4_off; asked, in its place: */
	AX_EXPLAIN_STATE = AX_EXPLAIN_L4, /* enum ax_state, as in struct ax_explain */
	AX_EXPLAIN_KEY,			  /* asked: AX_EXPLAIN_ASKED */
};
#define AX_EXPLAIN_ASKED       0x61786578
#define AX_EXPLAIN_STATE_SHIFT 25

enum ax_decided {
	AX_DECIDED_RULE,	/* or the default: see rule */
	AX_DECIDED_POLICY,	/* of the class `reason` */
	AX_DECIDED_LET_THROUGH, /* `reason` kept it from being dropped by the default */
	AX_DECIDED_BALANCER,	/* it failed there with `reason` */
	AX_DECIDED_ANSWER,	/* no rule: it is the answer of a NAT backend, on its way back */
};

/* Programs behind the filter of a generation. Of a list for what leaves the first is that which
 * explains. */
enum ax_stage {
	AX_STAGE_BALANCE,
	AX_STAGE_REVERSE,
	AX_STAGE_ROUTE,
	AX_STAGE_CHALLENGE,
	AX_STAGES,
	AX_STAGE_EXPLAIN = 0
};

/*
 * Entries of the root's program array. Behind them are the stages of the generations, at
 *
 *	AX_JUMPS + generation % AX_STAGE_SETS * AX_STAGES + stage
 *
 * An array of a generation's own would be emptied by the kernel when the last descriptor or pin of
 * it is gone, though its program is in use. More than three generations do not exist at a time:
 * two, and one that is being loaded.
 */
#define AX_STAGE_SETS	4
#define AX_JUMP_TAP	(AX_JUMPS + AX_STAGE_SETS * AX_STAGES) /* see xdp_tap.h */
#define AX_JUMP_ENTRIES (AX_JUMP_TAP + 1)
enum ax_jump {
	AX_JUMP_CURRENT,
	AX_JUMP_PREVIOUS, /* during a confirmation: what comes back when nobody confirms */
	AX_JUMPS
};

/* The root program's variables (its .bss, pinned): the dead man's switch of `--confirm`, and
 * whether somebody looks at the packets (xdp_tap.h). */
struct ax_root {
	__u64 deadline_ns; /* CLOCK_MONOTONIC; 0: nothing is to be confirmed */
	__u16 tapped;	   /* packets go by AX_JUMP_TAP; whoever finds nobody there sets it to 0 */
	__u16 told;	   /* what the tap has in AX_TAP_TOLD is the list that is current */
	__u32 fallback;	   /* XDP action while there is no program to jump to */
};
_Static_assert(sizeof(struct ax_root) == 16, "struct ax_root is shared");

#endif
