/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The balancer's NAT in tests of programs: its tables of answers, and lists for it. */
#ifndef AX_TESTS_LIB_NAT_H
#define AX_TESTS_LIB_NAT_H

#include "tests/lib/balance.h"

#define ONE  "['10.9.0.11:8080', '[fd09::11]:8080']"
#define FOUR "['10.9.0.11:8080', '10.9.0.12:8080', '10.9.0.13:8080', '10.9.0.14:8080']"
#define RULES \
	"default: drop\nrules: [{name: web, dst: '10.0.0.100,fd00::100', action: balance web}]\n"
#define LIST(backends) "balancers: {web: {mode: nat, backends: " backends "}}\n" RULES

/* balance_run() of a packet's text. */
struct result runf(const char *format, ...) PRINTF(1, 2);
void assert_line(const struct result *r, const char *format, ...) PRINTF(2, 3);

/* Of an answer of the backend, port 8080, to that address and port of ours. */
struct ax_nat_key key_of(const char *real, const char *source, uint8_t proto, unsigned port);

/* In the map that has it: that of open connections, or that of all else. */
struct ax_nat nat_get(const struct ax_nat_key *k);
void nat_put(const struct ax_nat_key *k, const struct ax_nat *n);
void nat_delete(const struct ax_nat_key *k);
size_t nat_entries(void);

/* The kernel's ticks, which only a packet tells. */
uint32_t stamp(void);

/* All flows, and their answers' table. */
void forget_all(void);

/* Loads the list, and nothing is known. */
void start(const char *list);

#endif
