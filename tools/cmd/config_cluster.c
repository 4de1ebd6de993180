/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ax config ... --cluster: what was stored for all nodes, and taking up one of them again. */
#include <time.h>

#include "tools/cmd/config_cluster.h"
#include "tools/lib/table.h"
#include "tools/lib/text.h"

int cmd_revision(const struct cmd *c, const char *text, long long *ret)
{
	char *end;

	errno = 0;
	*ret = strtoll(text, &end, 10);
	if (!errno && *ret > 0 && !*end)
		return 0;
	return cmd_usage(c, "'%.60s' is no revision: see 'ax config history --cluster'", text);
}

static const struct table_column columns[] = {
	{.title = "REVISION", .keep = 9}, {.title = "AGE", .keep = 8},
	{.title = "NODE", .keep = 7},	  {.title = "FROM", .keep = 6},
	{.title = "STATE", .keep = 9},
};

/* "current": the cluster's; one that does not hold on this node (yet, or because it cannot). */
static const char *state_of(const json_t *one)
{
	if (member_true(one, "current"))
		return member_true(one, "holds") ? "current" : "current, not here";
	return member_true(one, "holds") ? "here" : NULL;
}

static int put_table(const json_t *revisions)
{
	struct table_style style = table_style_for(stdout);
	char age[TEXT_SHORT];
	struct table t;
	json_t *one;
	size_t i;
	int r;

	style.headers = true;
	table_init(&t, columns, ARRAY_SIZE(columns));
	json_array_foreach (revisions, i, one) {
		table_addf(&t, "%lld", member_int(one, "revision"));
		table_add(&t, text_age((double)time(NULL) - member_number(one, "at"), age));
		table_add(&t, member_string(one, "node"));
		if (member_int(one, "of"))
			table_addf(&t, "%lld", member_int(one, "of"));
		else
			table_add(&t, NULL);
		table_add(&t, state_of(one));
	}
	r = table_print(&t, &style, stdout);
	table_free(&t);
	return r;
}

static void put_text(const char *text)
{
	struct text_stream s = {0};

	if (text)
		text_stream_put(&s, text, strlen(text), stdout);
	text_stream_end(&s, stdout);
}

int cmd_config_history(struct cmd *c, long long revision, bool json)
{
	json_t *request = json_pack("{s:s}", "op", "config-history");
	autojson json_t *reply = NULL;
	struct error e = {0};

	if (revision)
		json_object_set_new(request, "revision", json_integer(revision));
	if (cmd_ask(c, request, &reply, &e))
		return reply ? cmd_failed(c, &e) : cmd_unable(c, &e);
	if (json)
		cmd_put_json(revision ? reply : json_object_get(reply, "revisions"),
			     JSON_INDENT(2));
	else if (revision)
		put_text(member_string(reply, "text"));
	else if (!json_array_size(json_object_get(reply, "revisions")))
		puts("no config was applied to the cluster");
	else if (put_table(json_object_get(reply, "revisions")))
		return cmd_unable(c, &(struct error){.code = -ENOMEM, .text = "out of memory"});
	return cmd_finish(c, CMD_OK);
}

int cmd_config_rollback(struct cmd *c, long long revision, bool dry_run, json_t **reply,
			struct error *e)
{
	return cmd_ask(c,
		       json_pack("{s:s,s:I,s:b}", "op", "apply-cluster", "revision",
				 (json_int_t)revision, "dry_run", dry_run),
		       reply, e);
}
