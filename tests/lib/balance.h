/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * For the balancer's tests: a rule list on a veth of a namespace of the test's own, and packets
 * that are run through the loaded program, counting and remembering as if they had come in.
 *
 * vb0 has 10.9.0.1/24 and fd09::1/64, vc0 10.8.0.1/24 and fd08::1/64 and a smaller MTU. Hosts .11
 * to .19 of all of them are known neighbours; their MAC addresses end in 11 to 19.
 */
#ifndef AX_TESTS_BALANCE_H
#define AX_TESTS_BALANCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/address.h"
#include "machine/instance.h"
#include "datapath/xdp_datapath.h"
#include "iface/iface.h"
#include "rules/list.h"
#include "xdp.h"

#define IFNAME	"vb0"
#define OTHER	"vc0"
#define MTU	1500
#define SMALL	1300 /* the other's */
#define OUT_MAX 16384

/* The test's own; maps and generation are those of what is loaded. */
struct balance_world {
	struct instance inst;
	struct datapath_xdp maps;
	struct generation generation;
};
extern struct balance_world balance;

/* A shell command: 0, or -1 when it fails. */
int sh(const char *command);

int balance_setup(void **state);
int balance_teardown(void **state);

/* Puts a list there, in the former one's place if there is one. */
void balance_load_list(const struct rule_list *l);
void balance_load(const char *text);

/* Everything anew: no flows, no counts. */
void balance_load_afresh(const char *text);

struct result {
	uint32_t action;
	uint16_t pad; /* so that IP headers are aligned */
	uint8_t frame[OUT_MAX];
	size_t len;
};

uint64_t balance_reason_count(enum ax_reason reason);

/* What becomes of a packet that comes in, as bytes or as text. */
struct result balance_run_frame(const void *frame, size_t len);
struct result balance_run(const char *text);

struct ax_real_count balance_real_count(uint32_t number);

/* How many there are in a map, whose keys have so many bytes. */
size_t balance_entries(enum xdp_map map, size_t key_size);

/* Deletes all of them. */
void balance_forget(enum xdp_map map, size_t key_size);

/* A packet that fails with this action, counted under this reason. */
void assert_fails(const char *text, enum ax_reason reason, uint32_t action);

/* A map of the generation's stage. */
int balance_map(const char *name);

/* As if so many new flows had come in the latest window that any CPU has seen. */
void balance_set_window(int map, uint64_t n);

/* Of the IP packet at l3 in the frame. */
void assert_sums(const struct result *r, size_t l3);

/* The packet's line, without MAC addresses. */
void assert_packet(const struct result *r, const char *expected);

/* From which port the backend was asked. */
unsigned source_port(const struct result *r);

struct ax_addr dst_of(const struct result *r);

/* The backend's last byte as it is written (11 to 19, in hex for IPv6). */
unsigned backend_of(const struct result *r);

/* It goes to the host whose MAC address ends in `last`. */
void assert_macs(const struct result *r, uint8_t last);

#endif
