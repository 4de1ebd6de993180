// SPDX-License-Identifier: GPL-2.0-or-later
/* Names and addresses that only one app or service may have. */
#include "config/read.h"

/* Takes the key; when it is taken already reports that at the node. Apps may share. */
static void claim(struct reader *r, struct registry *reg, const struct node *n, struct claim c,
		  const char *expected)
{
	static const char *const holders[] = {
		[OWNER_APP] = "which an app has",
		[OWNER_SERVICE] = "which a service has",
	};
	struct claim earlier;
	int taken;

	c.line = n->line;
	taken = registry_claim(reg, &c, &earlier);
	if (taken < 0)
		done(r, taken);
	else if (taken && (c.owner != OWNER_APP || earlier.owner != OWNER_APP))
		report_taken(r, n, holders[earlier.owner], earlier.line, expected);
}

void claim_name(struct reader *r, const struct node *n, const char *name, enum owner owner)
{
	struct config_reading *reading = r->context;
	const struct claim c = {.key = name, .len = strlen(name), .owner = owner};

	claim(r, &reading->names, n, c, "a name that no app and no other service has");
}

void read_vips(struct reader *r, const struct node *n, enum owner owner, struct ax_addr *ip4,
	       struct ax_addr *ip6)
{
	struct config_reading *reading = r->context;
	const struct ax_addr *both[] = {ip4, ip6};

	if (!read_addresses(r, n, ip4, ip6))
		return;
	for (size_t i = 0; i < ARRAY_SIZE(both); i++) {
		const struct claim c = {.key = both[i], .len = sizeof(*both[i]), .owner = owner};

		if (!addr_is_zero(both[i]))
			claim(r, &reading->addresses, n, c,
			      "an address that no app and no other service has");
	}
}
