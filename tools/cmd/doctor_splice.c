/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ax doctor: why connections are not spliced, as an agent says of each, if one runs. */
#include "tools/cmd/commands.h"
#include "tools/cmd/findings.h"

json_t *doctor_not_spliced(const struct cmd *c)
{
	autojson json_t *reply = NULL;
	struct error e = {0};
	json_t *reasons, *conn;
	size_t i;

	if (cmd_ask(c, json_pack("{s:s,s:s}", "op", "get", "what", "conns"), &reply, &e))
		return NULL;
	reasons = json_object();
	json_array_foreach (json_object_get(reply, "conns"), i, conn) {
		const char *why = member_string(conn, "not_spliced");

		if (why)
			json_object_set_new(reasons, why,
					    json_integer(member_int(reasons, why) + 1));
	}
	return reasons;
}

void doctor_put_not_spliced(json_t *reasons)
{
	const char *why;
	json_t *n;

	if (!json_object_size(reasons))
		return;
	printf("\nEnds of apps' connections that are not spliced, and why (ax get conns -o "
	       "wide):\n");
	json_object_foreach (reasons, why, n)
		printf("  %lld: %s\n", (long long)json_integer_value(n), why);
}
