/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The rule list of an interface with all that belongs to it: sets, balancers, default action and
 * policies. Read from a rule file or the config's `xdp:` section, kept in the kernel beside the
 * compiled form (rule_list_save()), so that it can be shown and edited without any file or agent.
 */
#ifndef AX_RULES_LIST_H
#define AX_RULES_LIST_H

#include "base/lazy_view.h"
#include "base/place.h"
#include "base/xdp_mode.h"
#include "rules/rule.h"

#define SET_ELEMENTS_MAX (16u << 20)
#define SETS_MAX	 256
#define BALANCERS_MAX	 256

/* Flows are in sets for a time only: in a list, sets of them have no elements. */
enum set_kind { SET_PREFIXES, SET_PORTS, SET_FLOWS };
const char *set_kind_name(enum set_kind kind); /* "prefixes" */

struct rule_set_def {
	char *name;
	enum set_kind kind;
	bool timed;		 /* elements may come for a time; also if a rule learns to it */
	char *file;		 /* where its elements are to be read from; NULL: they were given */
	struct prefix *prefixes; /* sorted (prefix_cmp()), no duplicates once set_sort() was done */
	struct range *ports;
	struct ax_set_flow *flows; /* sorted (memcmp()), like the others */
	size_t n;
};

enum balance_mode { BALANCE_NAT, BALANCE_IPIP, BALANCE_GUE };
const char *balance_mode_name(enum balance_mode m); /* "nat" ..., NULL behind the last one */
/* What new flows are placed by: all that makes them one, or their client's address alone. */
enum balance_affinity { BALANCE_BY_FLOW, BALANCE_BY_SRC };
const char *balance_affinity_name(enum balance_affinity a); /* "none", "src" */

struct balance_backend {
	struct ax_addr addr;
	uint16_t port;	 /* host byte order; 0: the packet's (always so for ipip and gue) */
	uint16_t weight; /* 1..1000 */
	bool drain;	 /* no new flows */
	bool down;	 /* no flows at all: its check says so */
	bool has_quic_id;
	uint16_t quic_id; /* the number that QUIC connection ids of its making have */
};
bool balance_backend_eq(const struct balance_backend *a, const struct balance_backend *b);
/* Both have the same number of connection ids, and their packets are of one family. */
bool balance_backend_same_id(const struct balance_backend *a, const struct balance_backend *b);

struct balancer {
	char *name;
	char *service; /* the backends are those of this service of the config; NULL: given here */
	enum balance_mode mode;
	enum balance_affinity affinity;
	struct ax_addr source4, source6; /* outer source or NAT's; zero: the host's own way there */
	uint16_t gue_port;		 /* host byte order */
	struct balance_backend *backends;
	size_t n;
};

const char *xdp_mode_name(enum xdp_mode m);	      /* "auto" ..., NULL behind the last one */
const char *xdp_direction_name(enum xdp_direction d); /* "ingress", "egress", NULL */

/* Who knows of the flows that this host forwards, for rules that ask for states. */
enum list_track {
	TRACK_AUTO,   /* connection tracking, where programs can ask it; else ax, if this host
			 forwards */
	TRACK_KERNEL, /* connection tracking, or nobody */
	TRACK_OWN,    /* ax */
};
const char *list_track_name(enum list_track t); /* "auto" ..., NULL behind the last one */

/* Its arrays have room for a power of two, so they grow by the functions below alone. */
struct rule_list {
	struct rule *rules;
	size_t n_rules;
	struct rule_set_def *sets;
	size_t n_sets;
	struct balancer *balancers;
	size_t n_balancers;
	enum ax_verdict default_action;	    /* AX_VERDICT_PASS or AX_VERDICT_DROP */
	uint8_t policy[AX_REASON_POLICIES]; /* enum ax_policy */
	enum xdp_mode mode;
	uint32_t priority; /* run priority with other programs, 0: 50, as libxdp has it */
	enum xdp_direction direction;
	enum list_track track;
};

/* Empty, with the action and the policies that defaults.h has. */
void rule_list_init(struct rule_list *l);
void rule_list_free(struct rule_list *l);
int rule_list_copy(const struct rule_list *from, struct rule_list *to);
bool rule_list_eq(const struct rule_list *a, const struct rule_list *b);
/* Takes the contents of the rule over (also on failure). `at` beyond the end: the end. */
int rule_list_insert(struct rule_list *l, size_t at, struct rule *r);
void rule_list_remove(struct rule_list *l, size_t at);
int rule_list_move(struct rule_list *l, size_t from, size_t to);
/* By its name, else by its number from 1 ("3" or "#3"). -ENOENT with a sentence (did you mean). */
int rule_list_find(const struct rule_list *l, const char *which, size_t *ret, struct error *e);
struct rule_set_def *rule_list_set(const struct rule_list *l, const char *name);
/* A new, empty one. -EEXIST, -EINVAL (no name), -E2BIG (SETS_MAX). */
int rule_list_add_set(struct rule_list *l, const char *name, enum set_kind kind,
		      struct rule_set_def **ret);
struct balancer *rule_list_balancer(const struct rule_list *l, const char *name);

/* Adds copies of another list's sets and balancers, but for those whose name is there, and for
 * balancers where the direction has none. */
int rule_list_share(struct rule_list *l, const struct rule_list *from);

/* That all names are defined and unique, that set kinds fit, that it is not too long. */
int rule_list_check(const struct rule_list *l, struct error *e);
/* The name that a rule counts under: its own, or its canonical line; "default" for n_rules. Equal
 * lines of unnamed rules get "#2" and so on behind. malloc'ed strings, n_rules + 1 of them. */
int rule_list_counter_names(const struct rule_list *l, struct strv *names);

/* --- sets that elements come to for a time (learn.c) --- */
struct timed_set {
	size_t set;	    /* its number in the list */
	uint8_t len4, len6; /* its elements are networks of these lengths, */
	bool flows;	    /* or flows */
};
/* Finds them, in the order of the list. Returns how many; no more than AX_TIMED_SETS are written,
 * and a list that was checked has no more. */
size_t rule_list_timed_sets(const struct rule_list *l, struct timed_set ret[AX_TIMED_SETS]);

/* --- flows: 10.0.0.1-10.0.0.2:22/tcp, or fd00::1-[fd00::2]:53/udp (set_flow.c) --- */
#define FLOW_STRLEN (2 * ADDR_STRLEN)
/* -EINVAL. */
int set_flow_parse(const char *s, struct ax_set_flow *ret);
/* "22/tcp": the end of it. */
int set_flow_parse_port(const char *s, uint8_t *proto, __be16 *port_be);
char *set_flow_format(const struct ax_set_flow *f, char *buf); /* FLOW_STRLEN; returned */

/* --- sets --- */
int prefix_cmp(const struct prefix *a, const struct prefix *b); /* by address, then length */
/* Sorts, drops duplicates. */
int set_sort(struct rule_set_def *s);
bool set_eq(const struct rule_set_def *a, const struct rule_set_def *b);
/* Adds the elements of a text (separated by white space, commas or lines; # starts a comment).
 * -EINVAL with `where`:LINE in the sentence. All or nothing; the set is sorted then. */
int set_parse(struct rule_set_def *s, const char *text, size_t len, const char *where,
	      struct error *e);
/* Adds those of `from`, a set of the same kind. -E2BIG, -ENOMEM. */
int set_merge(struct rule_set_def *s, const struct rule_set_def *from);
/* Removes those of `gone`; *missing counts those that were not there. */
int set_remove(struct rule_set_def *s, const struct rule_set_def *gone, size_t *missing);
/* The elements of s that `from`, a set of the same kind, does not have; both are sorted. The caller
 * frees *ret. -E2BIG: more than max, -ENOMEM. */
int set_missing(const struct rule_set_def *from, const struct rule_set_def *s, size_t max,
		struct rule_set_def *ret);
void set_free(struct rule_set_def *s);
/* Reads the files of sets that name one, relative to `dir` (NULL: the working directory). */
int rule_list_read_sets(struct rule_list *l, const char *dir, struct error *e);

/* --- the state in the arena: sets in binary (1,000,000 prefixes in 8 MB), the rest as text --- */
int rule_list_save(const struct rule_list *l, void **ret, size_t *len); /* malloc'ed */
/* Takes what rule_list_save() made; -EINVAL for anything else, whatever it is. */
int rule_list_restore(const void *data, size_t len, struct rule_list *l);

/* The same without the elements of the sets, which stay where they are: for a look at a large one.
 * Whether they are in order and have no host bits is not looked at. */
#define SET_OUTLINE_V4	 5 /* bytes of an IPv4 prefix: address in network byte order, length + 96 */
#define SET_OUTLINE_V6	 17 /* of an IPv6 prefix: address, length */
#define SET_OUTLINE_PORT 4  /* of ports: first and last, in host byte order */
struct run_outline {
	size_t at, n; /* where neighbours are, in their order, and how many */
};
struct rule_outline {
	struct rule_list list; /* its sets have no elements */
	struct set_outline {
		size_t n; /* elements */
		struct run_outline v4, ports;
		struct run_outline v6[2]; /* in front of IPv4's, and behind */
	} * sets;			  /* list.n_sets */
};
/* Of the `len` bytes at `at`, which are in the view. */
int rule_list_outline(struct lazy_view *v, size_t at, size_t len, struct rule_outline *o);
void rule_outline_free(struct rule_outline *o);

#endif
