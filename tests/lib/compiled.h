/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Rule lists from text, compiled, and packets judged by both the list and its arena. */
#ifndef AX_TESTS_COMPILED_H
#define AX_TESTS_COMPILED_H

#include "compile/compile.h"
#include "tests/lib/rule_random.h"

struct compiled {
	struct arena a;
	struct ax_layout l;
};

/* The rules of a list have counters 1000, 1001 ... and it has the sets it names. -errno with an
 * error. */
int try_compile(const struct rule_list *l, struct compiled *c, struct error *e);

/* It must be possible; arena_free() of its arena ends it. */
struct compiled compile(const struct rule_list *l);

/* The list's rule for a packet, as the arena has it. */
size_t compiled_judge(const struct compiled *c, const struct match_packet *p);

/* Random packets get the rule that the list says. */
void check_packets(const struct rule_list *l, const struct compiled *c, struct rnd *r, unsigned n);
void check_list(const struct rule_list *l, uint64_t seed, unsigned packets);

/* Both from text, which must be right. */
void add_set(struct rule_list *l, const char *name, enum set_kind kind, const char *elements);
void add_rule(struct rule_list *l, const char *line);

/* Packets: one of a frame that is not IP's, and one of TCP, UDP or ICMP. */
extern const struct match_packet not_ip;
struct match_packet packet(const char *src, const char *dst, uint8_t proto, uint16_t dport);

#endif
