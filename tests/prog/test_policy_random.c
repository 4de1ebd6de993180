/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Random rules and random questions: the programs' verdict and the rule that they name are those of
 * agent/config/policy_match.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>

#include "allot/policy.h"
#include "app.h"
#include "config/config.h"
#include "config/parse.h"
#include "datapath/policy.h"
#include "question.h"
#include "tests/lib/dataplane.h"
#include "tests/lib/instance.h"
#include "tests/lib/random.h"

#define RULE_LISTS 20
#define QUESTIONS  2000 /* of each list */
#define ENDS	   24	/* apps */

static struct policy policy;
static uint32_t party[ENDS];

static const char *const sides[] = {"a=1",
				    "b=1",
				    "c=1",
				    "{a: 1, b: 2}",
				    "n0",
				    "n1",
				    "n2",
				    "192.0.2.0/24",
				    "192.0.2.128/25",
				    "198.51.100.7",
				    "2001:db8::/32",
				    "0.0.0.0/0"};
static const char *const ports[] = {"1", "80", "53", "100-199", "1-1023", "1024-65535", "65535"};

static const char *one_of(const char *const *v, size_t n)
{
	return v[random_number() % n];
}

/* --- rules --- */

static void put_side(FILE *f, const char *key)
{
	if (random_number() % 4 == 0)
		return;
	fprintf(f, "%s: [%s, %s], ", key, one_of(sides, ARRAY_SIZE(sides)),
		one_of(sides, ARRAY_SIZE(sides)));
}

static char *random_rules(unsigned n)
{
	static const char *const actions[] = {"allow", "deny", "allow", "deny", "audit", "log"};
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	assert_non_null(f);
	fputs("policy:\n  rules:\n", f);
	for (unsigned i = 0; i < n; i++) {
		fprintf(f, "    - %s: {", one_of(actions, ARRAY_SIZE(actions)));
		put_side(f, "from");
		put_side(f, "to");
		if (random_number() % 2 && i < AX_RULES_MAX / 2)
			fprintf(f, "port: %s, ", one_of(ports, ARRAY_SIZE(ports)));
		if (random_number() % 3 == 0)
			fprintf(f, "protocol: %s, ", random_number() % 2 ? "tcp" : "udp");
		fprintf(f, "name: r%u}\n", i);
	}
	assert_int_equal(fclose(f), 0);
	return text;
}

/* --- who is there --- */

static struct ax_addr addr_of(unsigned end)
{
	return addr_from_v4(htonl(0x0a4d0001 + end)); /* 10.77.0.1 */
}

static void make_party(unsigned end)
{
	struct labels l = {0};
	char name[8], text[40];
	struct error e;

	snprintf(name, sizeof(name), "n%u", end % 6);
	snprintf(text, sizeof(text), "a=%u,b=%u,c=%u", random_number() % 3, random_number() % 3,
		 random_number() % 3);
	assert_int_equal(labels_parse(text, &l, &e), 0);
	assert_true(policy_ref(&policy, &l, &(struct policy_who){.name = name}, &party[end], &e) >=
		    0);
	labels_free(&l);
}

static void tell_party(unsigned end, unsigned set)
{
	const struct ax_vip vip = {.kind = AX_VIP_APP, .id = end + 1, .party = party[end]};
	struct ax_addr addr = addr_of(end);
	struct ax_party_rules rules;

	policy_party_rules(&policy, party[end], &rules);
	assert_int_equal(datapath_party_set(own.dp, party[end], policy_party(&policy, party[end])),
			 0);
	assert_int_equal(datapath_party_rules_set(own.dp, set, party[end], &rules), 0);
	assert_int_equal(datapath_vip_set(own.dp, &addr, &vip), 0);
}

static void tell(unsigned set)
{
	struct policy_tables *t = policy_compile(&policy);
	struct ax_ctl ctl = {.rule_set = set, .host_access = 1};
	struct datapath_rules rules;

	assert_non_null(t);
	rules = (struct datapath_rules){.set = &t->set,
					.classes = t->classes,
					.n_classes = t->n_classes,
					.class_of = t->class_of[0]};
	assert_int_equal(datapath_rules_set(own.dp, set, &rules), 0);
	for (size_t i = 0; i < t->n_outside; i++)
		assert_int_equal(datapath_outside_add(own.dp, set, &t->outside[i].prefix.addr,
						      t->outside[i].prefix.len,
						      &t->outside[i].rules),
				 0);
	for (unsigned i = 0; i < ENDS; i++)
		tell_party(i, set);
	assert_int_equal(datapath_ctl_set(own.dp, &ctl), 0);
	policy_tables_free(t);
}

/* --- questions --- */

static struct ax_addr outside(void)
{
	static const char *const all[] = {"192.0.2.1",	  "192.0.2.200", "198.51.100.7",
					  "198.51.100.8", "2001:db8::5", "2001:db9::5"};
	struct ax_addr a;

	assert_int_equal(addr_parse(one_of(all, ARRAY_SIZE(all)), &a), 0);
	return a;
}

/* An answer of the kernel's that the other one does not give. */
static void check(const struct ax_question *x, const struct policy_verdict *v)
{
	uint32_t rule = (uint32_t)(v->rule + 1), audit = (uint32_t)(v->audit + 1);
	bool behind = x->rule && x->audit > x->rule; /* it is not reached */

	assert_int_equal(x->rule, rule);
	assert_int_equal(behind ? 0 : x->audit, audit);
	assert_int_equal(x->no_label, v->no_label);
	if (v->rule >= 0)
		assert_int_equal(x->code, v->deny ? -EACCES : 0);
	else if (v->no_label)
		assert_int_equal(x->code, -ECONNREFUSED);
}

static void question(void)
{
	static const uint16_t some[] = {1, 53, 79, 80, 100, 199, 1023, 1024, 65535};
	unsigned client = random_number() % (ENDS + 6), server = random_number() % (ENDS + 6);
	struct policy_port port = {.proto = random_number() % 2 ? IPPROTO_TCP : IPPROTO_UDP,
				   .port = some[random_number() % ARRAY_SIZE(some)]};
	struct policy_end from = {.addr = outside()}, to = {.addr = outside()};
	struct ax_question x = {.flags = AX_QUESTION_BACKEND};
	struct policy_verdict v;

	if (client >= ENDS && server >= ENDS)
		return;
	if (client < ENDS) {
		from = policy_end_of(&policy, party[client]);
		x.flags |= AX_QUESTION_APP;
		x.party = party[client];
		x.app_flags = AX_APP_EGRESS;
	}
	x.from = from.addr;
	x.to = (struct ax_endpoint){
		.addr = to.addr, .port_be = htons(port.port), .proto = port.proto};
	if (server < ENDS) {
		to = policy_end_of(&policy, party[server]);
		x.to.addr = addr_of(server);
	}
	assert_int_equal(datapath_ask(own.dp, &x), 0);
	policy_judge(policy.rules, policy.n_rules, &from, &to, &port, &v);
	check(&x, &v);
}

static void test_random(void **state)
{
	(void)state;
	for (unsigned i = 0; i < RULE_LISTS; i++) {
		unsigned n = i % 4 == 0 ? AX_RULES_MAX : 1 + random_number() % 100;
		autofree char *text = random_rules(n);
		struct config_errors errs;
		struct config c;

		assert_int_equal(config_parse(text, strlen(text), &c, &errs), 0);
		policy = (struct policy){.rules = c.rules, .n_rules = c.n_rules};
		assert_int_equal(policy_name(&policy, c.rules, c.n_rules, false), 0);
		for (unsigned k = 0; k < ENDS; k++)
			make_party(k);
		tell(i % AX_RULE_SETS);
		for (unsigned k = 0; k < QUESTIONS; k++)
			question();
		policy_free(&policy);
		config_free(&c);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),
	};

	random_state = 20261123;
	return own_namespaces()
		       ? 1
		       : cmocka_run_group_tests(tests, dataplane_setup_open, dataplane_teardown);
}
