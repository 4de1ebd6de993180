/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ax service: services that are added while the agent runs, in the config's words. */
#include "config/expose.h"
#include "config/service_words.h"
#include "config/strategy.h"
#include "tools/cmd/commands.h"
#include "tools/lib/text.h"

static const struct words words_service = {.kind = WORDS_ASKED, .ask = "get services -o name"};
static const struct words words_strategy = {.nth = strategy_nth};
static const struct words words_affinity = {.nth = affinity_nth};
static const struct words words_hash = {.nth = hash_nth};
static const struct words words_udp = {.nth = udp_choice_nth};
static const struct words words_on_remove = {.nth = on_remove_nth};

struct args {
	struct strv ports, backends, expose;
	const char *ip, *wait, *drain, *slow_start, *check, *splice;
	const char *check_port, *check_status, *check_user;
	const char *check_every, *check_timeout, *check_fall, *check_rise;
	const char *check_passive, *check_window;
	const char *affinity_timeout;
	int strategy, hash, affinity, udp, on_remove; /* -1: not given */
};

static void args_free(struct args *a)
{
	strv_free(&a->ports);
	strv_free(&a->backends);
	strv_free(&a->expose);
}

/* --- options to the config's words --- */

/* "tier=back,zone=a,weight=3": what is no label of its own, the weight, goes beside them. */
static json_t *labelled(char *text)
{
	json_t *labels = json_object(), *one = json_object();
	char *save = NULL;

	for (char *word = strtok_r(text, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
		char *value = strchr(word, '=');

		if (value)
			*value++ = '\0';
		if (streq(word, "weight"))
			json_object_set_new(one, word, json_string(value ? value : ""));
		else
			json_object_set_new(labels, word, json_string(value ? value : ""));
	}
	json_object_set_new(one, "labels", labels);
	return one;
}

/* "weight=3", "zone=b": the agent says if there is no such key. */
static void put_word(json_t *one, char *word)
{
	char *value = strchr(word, '=');

	if (value)
		*value++ = '\0';
	json_object_set_new(one, word, json_string(value ? value : ""));
}

/* "web", "web,weight=3", "app:web", "address:10.0.0.1:80,weight=3", "labels:tier=back" */
static json_t *backend_words(const char *text)
{
	static const char *const kinds[] = {"app:", "address:"};
	autofree char *copy = strdup(text);
	char *name = copy;
	const char *kind = "app";
	char *rest;
	json_t *one;

	if (!copy)
		return NULL;
	if (starts_with(copy, "labels:") || starts_with(copy, "label:"))
		return labelled(strchr(copy, ':') + 1);
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (!starts_with(copy, kinds[i]))
			continue;
		kind = i ? "address" : "app";
		name = copy + strlen(kinds[i]);
	}
	rest = strchr(name, ',');
	if (rest)
		*rest++ = '\0';
	one = json_pack("{s:s}", kind, name);
	for (char *word = rest; one && word; word = rest) {
		rest = strchr(word, ',');
		if (rest)
			*rest++ = '\0';
		put_word(one, word);
	}
	return one;
}

/* What --check says, as a mapping: "http /path", "exec command". */
static void put_check(json_t *check, const char *text)
{
	size_t len = strcspn(text, " ");

	json_object_set_new(check, "type", json_stringn(text, len));
	if (!text[len])
		return;
	json_object_set_new(check, starts_with(text, "exec") ? "command" : "path",
			    json_string(text + len + 1));
}

/* NULL: nothing is said of it. */
static json_t *check_of_args(const struct args *a)
{
	const struct {
		const char *key, *value;
	} texts[] = {{"port", a->check_port},	    {"status", a->check_status},
		     {"user", a->check_user},	    {"every", a->check_every},
		     {"timeout", a->check_timeout}, {"fall", a->check_fall},
		     {"rise", a->check_rise},	    {"passive", a->check_passive},
		     {"window", a->check_window}};
	json_t *check = json_object();

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		if (texts[i].value)
			json_object_set_new(check, texts[i].key, json_string(texts[i].value));
	if (!json_object_size(check)) {
		json_decref(check);
		if (a->check && streq(a->check, "none"))
			return json_null(); /* as if the key was not there */
		return a->check ? json_string(a->check) : NULL;
	}
	if (a->check)
		put_check(check, a->check);
	return check;
}

/* "none" takes away what was said of it before. */
static bool says_none(const struct strv *texts)
{
	return texts->n == 1 && streq(texts->v[0], "none");
}

static void put_list(json_t *words, const char *key, const struct strv *texts,
		     json_t *(*one)(const char *text))
{
	json_t *list;

	if (!texts->n)
		return;
	if (says_none(texts)) {
		json_object_set_new(words, key, json_null()); /* as if the key was not there */
		return;
	}
	list = json_array();
	for (size_t i = 0; i < texts->n; i++)
		json_array_append_new(list, one(texts->v[i]));
	json_object_set_new(words, key, list);
}

/* Keys that were not given are not there. */
static json_t *words_of_args(const struct args *a)
{
	const struct {
		const char *key, *value;
	} texts[] = {{"affinity", a->affinity < 0 ? NULL : affinity_nth((size_t)a->affinity)},
		     {"affinity-timeout", a->affinity_timeout},
		     {"hash", a->hash < 0 ? NULL : hash_nth((size_t)a->hash)},
		     {"udp", a->udp < 0 ? NULL : udp_choice_nth((size_t)a->udp)},
		     {"on-remove", a->on_remove < 0 ? NULL : on_remove_nth((size_t)a->on_remove)},
		     {"ip", a->ip},
		     {"wait", a->wait},
		     {"drain", a->drain},
		     {"slow-start", a->slow_start},
		     {"splice", a->splice},
		     {"strategy", a->strategy < 0 ? NULL : strategy_name((uint32_t)a->strategy)}};
	json_t *j = json_object(), *check = check_of_args(a);

	if (check)
		json_object_set_new(j, "check", check);
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		if (texts[i].value)
			json_object_set_new(j, texts[i].key, json_string(texts[i].value));
	put_list(j, "ports", &a->ports, json_string);
	put_list(j, "expose", &a->expose, json_string);
	put_list(j, "backends", &a->backends, backend_words);
	return j;
}

/* --- the commands --- */

/* Takes the reference to words, which may be NULL. */
static int ask(struct cmd *c, const char *action, const char *name, json_t *words)
{
	autojson json_t *reply = NULL;
	struct error e = {0};
	json_t *j = json_pack("{s:s,s:s,s:s}", "op", "service", "action", action, "name", name);

	if (j && words)
		json_object_set(j, "words", words);
	json_decref(words);
	if (cmd_ask(c, j, &reply, &e))
		return cmd_failed(c, &e);
	return CMD_OK;
}

/* (what cannot be read the agent has refused) */
static void tell_no_interface(const struct cmd *c, const struct strv *texts)
{
	struct expose_list l = {0};
	struct error e;

	for (size_t i = 0; i < texts->n; i++)
		spec_parse_expose(texts->v[i], &l, &e);
	cmd_tell_no_interface(c, &l);
	expose_list_free(&l);
}

static int put(struct cmd *c, int argc, char **argv, const char *action)
{
	CLEANUP(args_free)
	struct args a = {.strategy = -1, .hash = -1, .affinity = -1, .udp = -1, .on_remove = -1};
	json_t *words;
	int status;

	if (!cmd_begin(c, &a, &argc, argv, &status))
		return status;
	if (argc != 1)
		return cmd_usage(c, "give the name of one service");
	words = words_of_args(&a);
	if (streq(action, "set") && !json_object_size(words)) {
		json_decref(words);
		return cmd_usage(c,
				 "say what to change, as in 'ax service set %.60s --strategy "
				 "round-robin'",
				 argv[0]);
	}
	status = ask(c, action, argv[0], words);
	if (!status)
		tell_no_interface(c, &a.expose);
	return status;
}

static int run_add(struct cmd *c, int argc, char **argv)
{
	return put(c, argc, argv, "add");
}

static int run_set(struct cmd *c, int argc, char **argv)
{
	return put(c, argc, argv, "set");
}

static int run_del(struct cmd *c, int argc, char **argv)
{
	int status, worst = CMD_OK;

	if (!cmd_begin(c, NULL, &argc, argv, &status))
		return status;
	if (!argc)
		return cmd_usage(c, "give the name of a service");
	for (int i = 0; i < argc; i++) {
		status = ask(c, "del", argv[i], NULL);
		worst = status ? status : worst;
	}
	return worst;
}

struct drain_args {
	uint32_t deadline_ms;
	bool undo;
};

static int run_drain(struct cmd *c, int argc, char **argv)
{
	struct drain_args a = {0};
	autojson json_t *reply = NULL;
	struct error e = {0};
	int status;

	if (!cmd_begin(c, &a, &argc, argv, &status))
		return status;
	if (argc != 2)
		return cmd_usage(c, "give a service and one of its backends, as in 'ax service "
				    "drain shop web'");
	if (cmd_ask(c,
		    json_pack("{s:s,s:s,s:s,s:s,s:I,s:b}", "op", "service", "action", "drain",
			      "name", argv[0], "backend", argv[1], "deadline_ms",
			      (json_int_t)a.deadline_ms, "undo", a.undo),
		    &reply, &e))
		return cmd_failed(c, &e);
	return CMD_OK;
}

static const struct opt drain_options[] = {
	{"deadline", 0, OPT_SPAN, "TIME",
	 "end what is still open then (else the service's drain: says; else nothing is ended)",
	 offsetof(struct drain_args, deadline_ms), NULL},
	{"undo", 0, OPT_FLAG, NULL, "let it have connections again",
	 offsetof(struct drain_args, undo), NULL},
};

static const struct command cmd_drain = {
	.name = "service drain",
	.about = "let a backend finish: it gets no new connections",
	.run = run_drain,
	.syntax =
		{
			.usage = "ax service drain NAME BACKEND [--deadline TIME]\n"
				 "       ax service drain NAME BACKEND --undo",
			.about = "A backend, by the app's name or by its address, gets no new "
				 "connections of the service; those that are open end by "
				 "themselves, or at the deadline. It goes for services of the "
				 "config as well, and holds until it is undone or the service is "
				 "removed.",
			.own = {{drain_options, ARRAY_SIZE(drain_options), 0}},
			.args = {&words_service, &words_app},
		},
};

static const struct opt options[] = {
	{"ip", 0, OPT_STRING, "ADDR", "its address, IPv4, IPv6 or both (else one of the pool)",
	 offsetof(struct args, ip), NULL},
	{"port", 'p', OPT_STRINGS, "PORT[:TARGET][/udp]",
	 "a port, and the backends' if it is another (may be given several times; else all ports)",
	 offsetof(struct args, ports), NULL},
	{"backend", 'b', OPT_STRINGS, "BACKEND",
	 "who serves: APP, labels:K=V,... or address:ADDR[:PORT], each with ,weight=N behind it if "
	 "it is not 1, and ,zone=ZONE behind APP and ADDR (may be given several times)",
	 offsetof(struct args, backends), &words_app},
	{"expose", 0, OPT_STRINGS, "[WHERE:]HOSTPORT:PORT[/udp]",
	 "clients outside reach a port of it at a port of this machine (may be given several "
	 "times)",
	 offsetof(struct args, expose), NULL},
	{"strategy", 0, OPT_CHOICE, "STRATEGY", "which backend a connection goes to",
	 offsetof(struct args, strategy), &words_strategy},
	{"hash", 0, OPT_CHOICE, "WHAT",
	 "what of a client decides with maglev: its address (src), or an app's name (app)",
	 offsetof(struct args, hash), &words_hash},
	{"affinity", 0, OPT_CHOICE, "WHO",
	 "who keeps a backend once it has one: each app's name, each address, or nobody",
	 offsetof(struct args, affinity), &words_affinity},
	{"affinity-timeout", 0, OPT_STRING, "TIME",
	 "without a connection for so long it is forgotten (180m)",
	 offsetof(struct args, affinity_timeout), NULL},
	{"udp", 0, OPT_CHOICE, "WAY", "whether datagrams of one socket stay with one backend",
	 offsetof(struct args, udp), &words_udp},
	{"on-remove", 0, OPT_CHOICE, "WHAT",
	 "which sockets end that are connected to a backend that is removed or down: UDP ones, "
	 "TCP as well (destroy), or none (keep)",
	 offsetof(struct args, on_remove), &words_on_remove},
	{"wait", 0, OPT_STRING, "TIME", "how long connections wait for a server that is not there",
	 offsetof(struct args, wait), NULL},
	{"drain", 0, OPT_STRING, "TIME", "deadline of backends that drain",
	 offsetof(struct args, drain), NULL},
	{"slow-start", 0, OPT_STRING, "TIME",
	 "how long a backend that comes takes to get its full share",
	 offsetof(struct args, slow_start), NULL},
	{"check", 0, OPT_STRING, "CHECK",
	 "how backends are checked: tcp, http, 'http /PATH', 'exec COMMAND', passive or none",
	 offsetof(struct args, check), NULL},
	{"check-port", 0, OPT_STRING, "PORT", "at which port (else where connections go)",
	 offsetof(struct args, check_port), NULL},
	{"check-status", 0, OPT_STRING, "STATUS", "http: what is answered (else 200 to 399)",
	 offsetof(struct args, check_status), NULL},
	{"check-user", 0, OPT_STRING, "USER", "exec: who runs the command (else nobody)",
	 offsetof(struct args, check_user), NULL},
	{"check-every", 0, OPT_STRING, "TIME", "how often (2s)", offsetof(struct args, check_every),
	 NULL},
	{"check-timeout", 0, OPT_STRING, "TIME", "and how long one may take (1s)",
	 offsetof(struct args, check_timeout), NULL},
	{"check-fall", 0, OPT_STRING, "N", "so many failures in a row make it down (3)",
	 offsetof(struct args, check_fall), NULL},
	{"check-rise", 0, OPT_STRING, "N", "and so many successes up again (2)",
	 offsetof(struct args, check_rise), NULL},
	{"check-passive", 0, OPT_STRING, "N",
	 "so many failed connections have it checked at once (passive: 5)",
	 offsetof(struct args, check_passive), NULL},
	{"check-window", 0, OPT_STRING, "TIME", "within this (10s)",
	 offsetof(struct args, check_window), NULL},
	{"splice", 0, OPT_STRING, "MODE", "whether its connections are spliced: auto, on or off",
	 offsetof(struct args, splice), NULL},
};

static const struct command cmd_add = {
	.name = "service add",
	.about = "add a service",
	.run = run_add,
	.syntax =
		{
			.usage = "ax service add NAME [options]",
			.about = "Adds a service beside those of the config, whose words for it "
				 "are the same. It stays until 'ax service del', also when the "
				 "agent is started again, and 'ax config apply' leaves it alone; "
				 "a config that declares the same name takes it over.",
			.own = {{options, ARRAY_SIZE(options), 0}},
		},
};

static const struct command cmd_set = {
	.name = "service set",
	.about = "change a service that was added",
	.run = run_set,
	.syntax =
		{
			.usage = "ax service set NAME option...",
			.about = "Changes what the options say of a service that 'ax service add' "
				 "has made; --port, --backend and --expose replace the whole "
				 "list, and 'none' takes it away. Connections that are open stay.",
			.own = {{options, ARRAY_SIZE(options), 0}},
			.args = {&words_service},
		},
};

static const struct command cmd_del = {
	.name = "service del",
	.about = "remove a service that was added",
	.run = run_del,
	.syntax =
		{
			.usage = "ax service del NAME...",
			.about = "Removes services that 'ax service add' has made. Connections "
				 "that are open stay.",
			.rest = &words_service,
		},
};

static const struct command *const commands[] = {&cmd_add,   &cmd_set,	      &cmd_del,
						 &cmd_drain, &cmd_service_ls, NULL};

static const struct command_elsewhere elsewhere[] = {
	{"create", "'ax service add NAME'"}, {"delete", "'ax service del NAME'"},
	{"list", "'ax service ls'"},	     {"remove", "'ax service del NAME'"},
	{"rm", "'ax service del NAME'"},     {"show", "'ax service ls NAME'"},
	{"update", "'ax service set NAME'"}, {NULL, NULL},
};

const struct command cmd_service = {
	.name = "service",
	.about = "add, change and remove services while the agent runs",
	.syntax =
		{
			.usage = "ax service add|set|del|drain|ls ...",
			.about = "Services beside those of the config, which asks for nothing but "
				 "root and an agent.",
			.command_follows = true,
		},
	.sub = commands,
	.elsewhere = elsewhere,
	.example = "'add', 'set', 'del', 'drain' or 'ls'",
};
