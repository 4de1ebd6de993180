/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Two apps, connections between them, and splicing's programs: what tests of members begin with.
 * All fail the test themselves. */
#ifndef AX_TESTS_SPLICE_MEMBERS_H
#define AX_TESTS_SPLICE_MEMBERS_H

#include "datapath/splice.h"
#include "tests/lib/instance.h"
#include "tests/lib/tcp_pair.h"

struct splice_fixture {
	struct instance inst;
	char cgroup[4096];
	struct datapath *dp;
	struct splice *s;
	int ns;		     /* where the apps are */
	struct ax_addr a, b; /* their addresses, on its lo: apps 1 and 2 */
	struct tcp_pair pair;
	struct ax_splice_counted before[AX_SPLICE_COUNTS];
};
extern struct splice_fixture f;

/* For cmocka: without programs; with programs that redirect. */
int splice_setup(void **state);
int splice_setup_open(void **state);
int splice_teardown(void **state);

void open_splice(uint32_t members_max);
/* f.a and f.b on a namespace's lo; 0 or a negative errno. */
int add_addresses(int ns);
/* f.pair or another one, which is closed by the caller; joined with each other. */
void open_pair(struct tcp_pair *p);
void open_joined(void);
void join_in(const struct tcp_pair *p, int client_ns, int server_ns);

struct ax_splice_conn conn_of(int netns, int fd);
struct splice_end_ref end_of(int netns, int fd);
struct tcp_stream forward(const struct tcp_pair *p);
struct tcp_stream backward(const struct tcp_pair *p);
/* n bytes are sent and read. */
void assert_goes(struct tcp_stream *s, size_t n);
/* What was counted since the last call. */
struct ax_splice_counted counted(unsigned what);
void assert_counted(unsigned what, uint64_t messages, uint64_t bytes);

#endif
