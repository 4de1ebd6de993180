// SPDX-License-Identifier: GPL-2.0-or-later
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/lib/fabric_world.h"
#include "datapath/policy.h"
#include "machine/cgroup.h"
#include "tests/lib/instance.h"
#include "tests/lib/netns.h"

struct fabric_world world;

static const struct {
	const char *v4, *v6;
} addresses[WHO] = {
	[APP] = {"10.1.0.2", "fd00::2"},
	[PEER] = {"10.1.0.3", "fd00::3"},
	[STRANGER] = {"10.1.0.4", "fd00::4"},
	[DENIED] = {"10.1.0.5", "fd00::5"},
	[FRIEND] = {"10.1.0.6", "fd00::6"},
	[EGRESS] = {"10.1.0.7", "fd00::7"},
	[HOSTED] = {"10.1.0.8", "fd00::8"},
	[DECLARED] = {"10.1.0.9", "fd00::9"},
	[HOST] = {"10.1.0.1", "fd00::1"},
	[OUTSIDE] = {"192.0.2.1", "2001:db8::1"},
	[MULTICAST] = {"224.0.0.251", "ff02::fb"},
	[BROADCAST] = {"255.255.255.255", "ff02::1"},
	[MAPPED] = {"10.1.0.2", "::ffff:10.1.0.2"},
};

static int make_devices(void)
{
	static const uint8_t mac[6] = {2, 2, 2, 2, 2, 2};
	autoclose int ns = ns_current();
	int r = nl_open(&world.nl);

	for (int i = 0; i < PRIVATE && !r; i += 2) {
		char name[16], peer[16];

		snprintf(name, sizeof(name), "port%d", i);
		snprintf(peer, sizeof(peer), "port%d", i + 1);
		r = nl_link_add_veth(world.nl, name, peer, ns, mac, 9000, &world.device[i]);
		r = r ? r : nl_link_index(world.nl, peer, &world.device[i + 1]);
	}
	world.far = world.device[APP + 1];
	return r;
}

static int tell_vip(int who, const struct ax_addr *addr)
{
	static const struct ax_party parties[VIPS] = {
		[APP] = {.labels = {1}},
		[PEER] = {.labels = {3, 1}},
		[STRANGER] = {.labels = {0, 0, 0, 1ull << 63}},
		[DENIED] = {.labels = {1}},
		[FRIEND] = {.labels = {0, 2}},
		[EGRESS] = {.labels = {1}},
		[HOSTED] = {.labels = {1}},
		[DECLARED] = {.labels = {1}},
	};
	/* set 0: rule 0 denies, 1 and 2 allow; set 1: 0 allows, and 1 denies */
	static const struct ax_party_rules rules[AX_RULE_SETS][VIPS] = {
		{[APP] = {.from = {{1 << 0 | 1 << 1 | 1 << 2}}},
		 [DENIED] = {.to = {{1 << 0 | 1 << 2}}},
		 [FRIEND] = {.to = {{1 << 1}}}},
		{[APP] = {.from = {{1 << 0 | 1 << 1}}},
		 [DENIED] = {.to = {{1 << 0}}},
		 [FRIEND] = {.to = {{1 << 1}}}},
	};
	struct ax_vip v = {.kind = AX_VIP_APP, .id = (uint32_t)who + 1, .party = (uint32_t)who + 1};
	int r;

	if (who == HOST)
		v.kind = AX_VIP_HOST;
	else if (who == DECLARED)
		v.kind = AX_VIP_DECLARED;
	else if (who == HOSTED)
		v.flags = AX_VIP_LOCAL;
	else if (who == EGRESS)
		v.flags = AX_VIP_EGRESS;
	if (who < PRIVATE)
		v.ifindex = world.device[who];
	r = datapath_party_set(world.dp, v.party, &parties[who]);
	for (unsigned set = 0; set < AX_RULE_SETS && !r; set++)
		r = datapath_party_rules_set(world.dp, set, v.party, &rules[set][who]);
	return r ? r : datapath_vip_set(world.dp, addr, &v);
}

static int tell_rules(void)
{
	static const struct ax_rule_set sets[AX_RULE_SETS] = {
		{.n_words = 1, .decide = {{7}}, .allow = {{1 << 1 | 1 << 2}}},
		{.n_words = 1, .decide = {{3}}, .allow = {{1 << 0}}},
	};
	int r = 0;

	for (unsigned set = 0; set < AX_RULE_SETS && !r; set++)
		r = datapath_rules_set(world.dp, set, &(struct datapath_rules){.set = &sets[set]});
	return r;
}

static int tell_kernel(void)
{
	int r = tell_rules();

	for (int i = 0; i < WHO && !r; i++) {
		r = addr_parse(addresses[i].v4, &world.addr[i][0]);
		r = r ? r : addr_parse(addresses[i].v6, &world.addr[i][1]);
		if (i < VIPS) {
			r = r ? r : tell_vip(i, &world.addr[i][0]);
			r = r ? r : tell_vip(i, &world.addr[i][1]);
		}
	}
	return r;
}

int fabric_setup(void **state)
{
	struct error e = {0};
	bool fresh;

	(void)state;
	if (make_devices() || own_instance(&world.inst, world.cgroup))
		return -1;
	if (datapath_open(&world.inst, world.cgroup, &world.dp, &fresh, &e)) {
		print_message("# %s\n", e.text);
		return -1;
	}
	world.from_app = datapath_program_fd(world.dp, "ax_from_app");
	world.to_app = datapath_program_fd(world.dp, "ax_to_app");
	world.to_service = datapath_program_fd(world.dp, "ax_to_service");
	return !fresh || world.from_app < 0 || world.to_app < 0 || world.to_service < 0 ||
			       tell_kernel()
		       ? -1
		       : 0;
}

int fabric_teardown(void **state)
{
	struct error e;

	(void)state;
	datapath_close(world.dp);
	nl_closep(&world.nl);
	return datapath_remove(&world.inst, &e) || cgroup_remove(world.cgroup) ? -1 : 0;
}
