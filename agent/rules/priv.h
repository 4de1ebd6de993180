/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files of this room share, and the readers in config/ that make lists of nodes. */
#ifndef AX_RULES_PRIV_H
#define AX_RULES_PRIV_H

#include <stdio.h>

#include "balance.h"
#include "rules/list.h"

#define QUOTED_LEN 264 /* of the longest text in quotes, see fault_quote() */

/* What was found and what was expected, so that a file's errors and sentences say the same. */
struct rule_fault {
	size_t item; /* which item of a value's list it is about */
	size_t rule; /* which rule of a list; SIZE_MAX: none */
	char found[QUOTED_LEN];
	char want[420];
};
int fault_set(struct rule_fault *f, const char *found, const char *fmt, ...) PRINTF(3, 4);
/* The text in quotes, clipped and fit for a terminal, in buf (QUOTED_LEN), which is returned. */
const char *fault_quote(const char *s, size_t len, char *buf);

/* rule_list_check(): calls f with each fault until it returns non-zero, which is returned. */
int rule_list_each_fault(const struct rule_list *l,
			 int (*f)(void *arg, const struct rule_fault *fault), void *arg);

/* --- values (value.c); each returns 0, or -EINVAL when it is something else --- */

int value_number(const char *s, uint64_t max, uint64_t *ret); /* decimal, no leading zero */
bool value_is_name(const char *s);			      /* RULE_NAME_MAX */
bool value_is_interface(const char *s);
int value_mac(const char *s, uint8_t mac[6]);
void value_write_mac(FILE *f, const uint8_t mac[6]);
#define WANT_MAC "an Ethernet address such as 02:00:00:00:00:01"
int value_bool(const char *s, bool *ret);
int value_prefix(const char *s, struct prefix *ret, struct rule_fault *f);
/* "22" or "8000-8099"; with `open` also "1500-" */
int value_range(const char *s, uint32_t max, bool open, struct range *ret);
/* "22", "8000-8099" or "ssh" */
int value_port(const char *s, struct range *ret, struct rule_fault *f);
/* The index of a word, or -1. */
int value_word(const char *s, const char *const *words, size_t n);
/* `, did you mean "x"?` or "" in buf. */
const char *value_hint(const char *word, const char *const *words, size_t n, char buf[96]);

/* Calls f for each item between commas (writable, NUL-terminated); f returns 0 or -EINVAL with the
 * fault's want set; found and item are set here when it left them empty. */
int value_each(const char *value, size_t max, struct rule_fault *f,
	       int (*each)(void *arg, char *item, struct rule_fault *f), void *arg);

#define ICMP_V6	   65536u /* of an index of AX_FIELD_ICMP's table */
#define ICMP_CODES 256u
int icmp_parse(const char *s, bool v6, struct range *ret);
/* The name of the whole type or of the type and code at lo..hi, or NULL. */
const char *icmp_name(uint32_t lo, uint32_t hi);

uint64_t rate_default_burst(uint64_t rate, bool bits);
int rule_parse_action(struct rule *r, const char *value, struct rule_fault *f);
int rule_parse_capture(struct rule *r, const char *value, struct rule_fault *f);
int rule_parse_rate(struct rule *r, const char *value, struct rule_fault *f);
/* "32", "24/64": prefix lengths of IPv4, then of IPv6 if it is there. -EINVAL. */
int value_prefix_lengths(const char *s, uint8_t *len4, uint8_t *len6);

/* --- learn.c --- */
int rule_parse_learn(struct rule *r, const char *value, struct rule_fault *f);
void rule_write_learn(FILE *f, const struct rule *r);
/* -EINVAL with the fault: what the rule learns does not go with the rest of it. */
int rule_check_learn(const struct rule *r, struct rule_fault *f);
/* What of a list's timed sets is wrong: calls `tell` as rule_list_each_fault() calls f. */
int list_check_timed(const struct rule_list *l,
		     int (*tell)(void *arg, const struct rule_fault *fault), void *arg);

/* --- direction.c --- */
extern const char *const xdp_direction_names[2];
/* What of a list does not go with its direction: calls f as rule_list_each_fault() does. */
int list_check_direction(const struct rule_list *l,
			 int (*f)(void *arg, const struct rule_fault *fault), void *arg);

/* --- arrays --- */

/* Room for one more behind n items: capacities are powers of two that n tells. */
int array_grow(void *array, size_t n, size_t size);
/* An array for n items that array_grow() may go on with; NULL also for n 0. */
void *array_new(size_t n, size_t size);

/* --- sets --- */

bool set_is_sorted(const struct rule_set_def *s); /* without duplicates */
int set_copy(const struct rule_set_def *from, struct rule_set_def *to);

/* --- lists and balancers --- */

extern const char *const policy_names[3]; /* by enum ax_policy */
#define PRIORITY_MAX 65535

#define BALANCER_BACKENDS_MAX AX_REALS_MAX
#define BALANCER_WEIGHT_MAX   1000
extern const char *const balance_mode_names[3];
extern const char *const balance_affinity_names[2];
extern const char *const xdp_mode_names[4];
extern const char *const list_track_names[3];
void balancer_free(struct balancer *b);

#endif
