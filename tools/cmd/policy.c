/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ax policy: what the rules say, and whether it is what was meant. */
#include "base/address.h"
#include "base/values.h"
#include "tools/cmd/commands.h"
#include "tools/lib/output.h"
#include "tools/lib/text.h"

/* --- explain --- */

/* "db:5432", "db:53/udp", "[fd00::1]:80", "10.0.0.1:80/tcp". */
static int parse_to(char *text, const char **name, int *port, const char **proto)
{
	char *slash = strrchr(text, '/'), *colon;

	*proto = slash ? slash + 1 : "tcp";
	if (!streq(*proto, "tcp") && !streq(*proto, "udp"))
		return -EINVAL;
	if (slash)
		*slash = '\0';
	colon = strrchr(text, ':');
	if (!colon || colon == text)
		return -EINVAL;
	*colon = '\0';
	*port = port_parse(colon + 1);
	*name = text;
	/* an IPv6 address has brackets: who leaves them out may have left out the port */
	return *port < 0 || (*text != '[' && strchr(text, ':')) ? -EINVAL : 0;
}

/* One piece of a line, escaped. */
static void put(const char *text)
{
	text_put(text ? text : "?", stdout);
}

static void put_rule(const json_t *rule)
{
	const char *name = member_string(rule, "name");

	fputs("rule ", stdout);
	if (!json_object_get(rule, "rule")) { /* it was added */
		put(name);
		name = NULL;
	} else {
		printf("%lld", member_int(rule, "rule"));
	}
	if (name) {
		fputs(" (", stdout);
		put(name);
		putchar(')');
	}
	fputs(": ", stdout);
	put(member_string(rule, "text"));
}

static void put_labels(const json_t *v)
{
	put(member_string(v, "from_labels"));
	fputs(" and ", stdout);
	put(member_string(v, "to_labels"));
}

static void put_why(const json_t *v)
{
	static const struct {
		const char *why, *yes, *no;
	} all[] = {
		{"egress", "no rule, and it may leave (egress)",
		 "no rule, and it may not leave ax (egress)"},
		{"host-access", "no rule, and programs outside may come in (host_access)",
		 "no rule, and programs outside may not come in (host_access)"},
		{"loopback", "loopback is its own: no rule is asked", NULL},
		{"dns", "the agent answers DNS: no rule is asked", NULL},
		{"no-port", NULL, "the service does not have that port"},
		{"no-backend", NULL, "the service has no backends"},
	};
	const char *why = member_string(v, "why");
	bool allowed = member_true(v, "allowed");

	why = why ? why : "?";
	if (streq(why, "rule")) {
		put_rule(json_object_get(v, "decides"));
		return;
	}
	if (streq(why, "label") || streq(why, "no-label")) {
		fputs(allowed ? "no rule, and a label in common: "
			      : "no rule, and no label in common: ",
		      stdout);
		put_labels(v);
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		if (streq(all[i].why, why))
			put(allowed ? all[i].yes : all[i].no);
}

static void put_verdict(const json_t *v)
{
	const char *backend = member_string(v, "backend"), *error = member_string(v, "errno");
	const char *again = member_string(v, "again"), *hook = member_string(v, "hook");
	const json_t *audit = json_object_get(v, "audit"), *log = json_object_get(v, "log");

	if (backend) {
		put(backend);
		fputs(": ", stdout);
	}
	fputs(member_true(v, "allowed") ? "allowed" : "refused", stdout);
	if (error)
		printf(" (%s)", error);
	printf(" at %s by ", hook ? hook : "?");
	put_why(v);
	putchar('\n');
	if (audit) {
		fputs("  would be refused by ", stdout);
		put_rule(audit);
		fputs(" (audit: it only counts)\n", stdout);
	}
	if (log) {
		fputs("  told of by ", stdout);
		put_rule(log);
		putchar('\n');
	}
	if (member_true(v, "by_name"))
		fputs("  by its name alone: no app was told an address of it, of which other rules "
		      "may speak\n",
		      stdout);
	if (again)
		printf("  the receiving side asks again: %s\n", again);
}

static void put_end(const json_t *j, const char *key, long long port)
{
	char name[32], buf[256];

	snprintf(name, sizeof(name), "%s_name", key);
	put(cmd_party(member_string(j, name), member_string(j, key), port, buf, sizeof(buf)));
}

static void put_answer(const json_t *j)
{
	const char *proto = member_string(j, "proto");
	json_t *v;
	size_t i;

	put_end(j, "from", 0);
	fputs(" -> ", stdout);
	put_end(j, "to", member_int(j, "port"));
	printf("/%s: %s\n", proto ? proto : "?", member_true(j, "allowed") ? "allowed" : "refused");
	json_array_foreach (json_object_get(j, "verdicts"), i, v)
		put_verdict(v);
	if (member_int(j, "more"))
		printf("  and %lld more backends\n", (long long)member_int(j, "more"));
}

struct explain_args {
	int output;
};

static int run_explain(struct cmd *c, int argc, char **argv)
{
	struct explain_args a = {0};
	autojson json_t *reply = NULL;
	const char *name, *proto;
	struct error e = {0};
	int status, port;

	if (!cmd_begin(c, &a, &argc, argv, &status))
		return status;
	if (argc != 2)
		return cmd_usage(c,
				 "give who asks and whom, as in 'ax policy explain web db:5432'");
	if (parse_to(argv[1], &name, &port, &proto))
		return cmd_usage(c,
				 "'%.80s' needs a port: write NAME:PORT, ADDRESS:PORT or "
				 "[IPV6]:PORT, with /udp behind it for datagrams",
				 argv[1]);
	cmd_output();
	if (cmd_ask(c,
		    json_pack("{s:s,s:s,s:s,s:i,s:s}", "op", "explain", "from", argv[0], "to", name,
			      "port", port, "proto", proto),
		    &reply, &e))
		return cmd_unable(c, &e);
	if (a.output) {
		json_object_del(reply, "ok");
		cmd_put_json(reply, JSON_INDENT(2));
	} else {
		put_answer(reply);
	}
	return cmd_finish(c, member_true(reply, "allowed") ? CMD_OK : CMD_FAILED);
}

static const struct command cmd_explain = {
	.name = "policy explain",
	.about = "who may connect to whom, and which rule says so",
	.run = run_explain,
	.syntax =
		{
			.usage = "ax policy explain FROM TO:PORT[/udp] [-o FORMAT]",
			.about = "Says whether FROM may connect to TO at that port, which rule or "
				 "label decides and where: at connect (sendmsg for datagrams), or "
				 "at the receiving side. The programs in the kernel are asked, by "
				 "the rules that hold now; nothing is sent and nothing is counted. "
				 "For a service, each of its backends has a line.\n\n"
				 "FROM is an app (its name or id), an address, or 'host', this "
				 "machine; TO may be a service besides. The exit status is 0 if it "
				 "is allowed and 1 if it is refused.",
			.own = {{output_table, 1, offsetof(struct explain_args, output)}},
			.args = {&words_app, &words_app},
		},
};

/* --- all of them --- */

static const struct command *const commands[] = {&cmd_explain,
						 &cmd_policy_test,
						 &cmd_policy_add,
						 &cmd_policy_set,
						 &cmd_policy_del,
						 &cmd_policy_ls,
						 NULL};

static const struct command_elsewhere elsewhere[] = {
	{"append", "'ax policy add NAME deny --last ...'"},
	{"apply", "'ax config apply FILE'"},
	{"check", "'ax policy test FILE' for expectations, 'ax config check FILE' for a config"},
	{"create", "'ax policy add NAME allow|deny|log|audit ...'"},
	{"delete", "'ax policy del NAME'"},
	{"get", "'ax policy ls'"},
	{"insert", "'ax policy add NAME deny --first ...'"},
	{"list", "'ax policy ls'"},
	{"move", "'ax policy set NAME --before RULE'"},
	{"remove", "'ax policy del NAME'"},
	{"rm", "'ax policy del NAME'"},
	{"show", "'ax policy ls'"},
	{"trace", "'ax policy explain FROM TO:PORT'"},
	{"update", "'ax policy set NAME ...'"},
	{"verify", "'ax policy test FILE'"},
	{"why", "'ax policy explain FROM TO:PORT'"},
	{NULL, NULL},
};

const struct command cmd_policy = {
	.name = "policy",
	.about = "who may connect to whom: explain it, test it, add and list rules",
	.syntax =
		{
			.usage = "ax policy explain|test|add|set|del|ls ...",
			.about = "Rules are written in the config's policy:, see ax.yaml(5), or "
				 "added by command among those.",
			.command_follows = true,
		},
	.sub = commands,
	.elsewhere = elsewhere,
	.example = "'explain', 'test', 'add', 'set', 'del' or 'ls'",
};
