/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ax run: a command becomes an app. */
#include <limits.h>
#include <net/if.h>

#include "config/expose.h"
#include "config/limits.h"
#include "config/spec.h"
#include "datapath/splice.h"
#include "launch/launch.h"
#include "tools/cmd/agent_daemon.h"
#include "tools/cmd/commands.h"
#include "tools/lib/assignments.h"

/* What the options said, as text; spec_fill() makes the app's specification of it. */
struct run_args {
	const char *ip, *name, *user, *directory;
	const char *memory, *cpus, *pids, *egress, *egress_source;
	struct strv labels, env, env_files, volumes, expose;
	int net, restart, splice;
	uint32_t wait_ms;
	bool agent, egress_audit, detach, read_only, splice_emulation;
};

static void run_args_free(struct run_args *a)
{
	strv_free(&a->labels);
	strv_free(&a->env);
	strv_free(&a->env_files);
	strv_free(&a->volumes);
	strv_free(&a->expose);
}

static int set_text(char **to, const char *text, struct error *e)
{
	if (!text)
		return 0;
	*to = strdup(text);
	return *to ? 0 : error_set(e, -ENOMEM, "out of memory");
}

static int set_directory(struct app_spec *spec, const char *directory, struct error *e)
{
	char path[PATH_MAX];

	if (!directory)
		return 0;
	/* a detached app is started by a process that may stand elsewhere */
	if (!realpath(directory, path))
		return error_set(e, -errno, "--directory cannot be '%.200s': %s", directory,
				 strerror(errno));
	return set_text(&spec->directory, path, e);
}

/* A relative source is one of the caller's directory. */
static int set_volume(struct app_spec *spec, const char *text, struct error *e)
{
	size_t len = strcspn(text, ":");
	autofree char *source = strndup(text, len), *whole = NULL;
	char path[PATH_MAX];
	struct volume v;
	const char *want;

	if (!source)
		return error_set(e, -ENOMEM, "out of memory");
	if (!len || !text[len])
		return error_set(e, -EINVAL, "--volume cannot be '%.200s': give SOURCE:TARGET",
				 text);
	if (!realpath(source, path))
		return error_set(e, -errno, "--volume cannot have '%.200s' as its source: %s",
				 source, strerror(errno));
	if (asprintf(&whole, "%s%s", path, text + len) < 0) {
		whole = NULL;
		return error_set(e, -ENOMEM, "out of memory");
	}
	want = want_volume(whole, &v);
	if (want)
		return error_set(e, -EINVAL, "--volume cannot be '%.200s': give %s", text, want);
	return strv_add(&spec->volumes, whole) ? error_set(e, -ENOMEM, "out of memory") : 0;
}

static int limit_wants(const char *option, const char *text, const char *want, struct error *e)
{
	return want ? error_set(e, -EINVAL, "--%s cannot be '%.60s': give %s", option, text, want)
		    : 0;
}

static int set_limits(struct app_spec *spec, const struct run_args *a, struct error *e)
{
	int r = 0;

	spec->read_only = a->read_only;
	if (a->memory)
		r = limit_wants("memory", a->memory, want_memory(a->memory, &spec->memory), e);
	if (!r && a->cpus)
		r = limit_wants("cpus", a->cpus, want_cpus(a->cpus, &spec->cpus), e);
	if (!r && a->pids)
		r = limit_wants("pids", a->pids, want_pids(a->pids, &spec->pids), e);
	for (size_t i = 0; !r && i < a->volumes.n; i++)
		r = set_volume(spec, a->volumes.v[i], e);
	return r;
}

static int set_expose(struct app_spec *spec, const struct strv *expose, struct error *e)
{
	int r = 0;

	for (size_t i = 0; i < expose->n && !r; i++)
		r = spec_parse_expose(expose->v[i], &spec->expose, e);
	return r;
}

/* Several --labels add up. */
static int set_labels(struct app_spec *spec, const struct strv *labels, struct error *e)
{
	autofree char *joined = NULL;
	size_t size = 1;

	if (!labels->n)
		return 0;
	for (size_t i = 0; i < labels->n; i++)
		size += strlen(labels->v[i]) + 1;
	joined = calloc(1, size);
	if (!joined)
		return error_set(e, -ENOMEM, "out of memory");
	for (size_t i = 0; i < labels->n; i++) {
		if (i)
			strcat(joined, ",");
		strcat(joined, labels->v[i]);
	}
	return labels_parse(joined, &spec->labels, e);
}

static int set_command(struct app_spec *spec, int argc, char **argv, struct error *e)
{
	for (int i = 0; i < argc; i++)
		if (strv_add(&spec->command, argv[i]))
			return error_set(e, -ENOMEM, "out of memory");
	return 0;
}

static int set_egress(struct app_spec *spec, const struct run_args *a, struct error *e)
{
	struct egress *to = &spec->egress;
	int r = 0;

	if (a->egress)
		r = spec_parse_egress(*a->egress ? a->egress : "all", to, e);
	if (!r && a->egress_source)
		r = spec_parse_ip(a->egress_source, &to->source4, &to->source6, e);
	to->audit = a->egress_audit;
	if (!r && to->audit && to->mode != EGRESS_LIST)
		r = error_set(e, -EINVAL,
			      "--egress-audit goes with a list, as in --egress=10.0.0.0/8: it "
			      "counts what the list does not have");
	return r;
}

static int spec_fill(struct app_spec *spec, const struct run_args *a, int argc, char **argv,
		     struct error *e)
{
	int r = 0;

	spec->net = (enum net_mode)a->net;
	spec->restart = (enum restart_policy)a->restart;
	spec->splice = (enum splice_mode)a->splice;
	spec->wait_ms = a->wait_ms;
	spec->detach = a->detach;
	spec->splice_emulation = a->splice_emulation;
	if (a->ip)
		r = spec_parse_ip(a->ip, &spec->ip4, &spec->ip6, e);
	if (!r && a->name)
		r = spec_check_name(a->name, e);
	r = r ? r : set_text(&spec->name, a->name, e);
	r = r ? r : set_text(&spec->user, a->user, e);
	r = r ? r : set_directory(spec, a->directory, e);
	r = r ? r : assignments_collect(&a->env_files, &a->env, &spec->env, e);
	r = r ? r : set_limits(spec, a, e);
	r = r ? r : set_labels(spec, &a->labels, e);
	r = r ? r : set_expose(spec, &a->expose, e);
	r = r ? r : set_egress(spec, a, e);
	return r ? r : set_command(spec, argc, argv, e);
}

static bool may_be_spliced(void *arg, const struct ax_addr *remote)
{
	return datapath_splice_may_be(arg, remote);
}

void cmd_tell_spliced(struct launch_options *o, struct splice_peers *peers)
{
	*peers = (struct splice_peers){.inst = o->inst, .vips = -1};
	o->may_be_spliced = may_be_spliced;
	o->may_arg = peers;
}

void cmd_tell_no_interface(const struct cmd *c, const struct expose_list *l)
{
	char text[EXPOSE_STRLEN];

	for (size_t i = 0; i < l->n; i++)
		if (l->v[i].device[0] && !if_nametoindex(l->v[i].device))
			fprintf(stderr,
				"ax %s: %s is exposed once there is such an interface: now there "
				"is "
				"none\n",
				c->name, expose_format(&l->v[i], text));
}

static int start(struct cmd *c, struct launch_options *o)
{
	struct splice_peers peers;
	struct error e = {0};
	int status;

	cmd_tell_spliced(o, &peers);
	status = launch_run(o, &e);

	if (e.code)
		cmd_failed(c, &e);
	return status;
}

static int launch(struct cmd *c, const struct run_args *a, int argc, char **argv)
{
	struct launch_options o = {.inst = &c->inst};
	struct error e = {0};
	int status;

	if (spec_fill(&o.spec, a, argc, argv, &e))
		status = cmd_usage(c, "%s", e.text);
	else if (a->agent && agent_daemon_need(&c->inst, &e))
		status = cmd_unable(c, &e);
	else {
		cmd_tell_no_interface(c, &o.spec.expose);
		status = start(c, &o);
	}
	app_spec_free(&o.spec);
	return status;
}

/* False: the command line says what to run. */
static bool launch_given(struct cmd *c, int *status)
{
	struct launch_options o = {.inst = &c->inst};
	struct error e = {0};
	int r = launch_take_given(&o, &e);

	if (r)
		*status = r < 0 ? cmd_unable(c, &e) : start(c, &o);
	app_spec_free(&o.spec);
	free(o.config_key);
	return r != 0;
}

static int run(struct cmd *c, int argc, char **argv)
{
	CLEANUP(run_args_free) struct run_args a = {0};
	int status;

	if (!cmd_begin(c, &a, &argc, argv, &status))
		return status;
	if (launch_given(c, &status))
		return status;
	if (!argc)
		return cmd_usage(c, "there is no command to run: give one after the options, as in "
				    "'ax run --name web -- nginx'");
	if (a.restart != RESTART_NO && !a.detach)
		return cmd_usage(c, "--restart needs --detach: without it, ax ends when the "
				    "command does");
	return launch(c, &a, argc, argv);
}

static const char *net(size_t i)
{
	return net_mode_name((enum net_mode)i);
}

static const char *policy(size_t i)
{
	return restart_policy_name((enum restart_policy)i);
}

static const char *splice_mode(size_t i)
{
	return splice_mode_name((enum splice_mode)i);
}

static const struct words nets = {.nth = net}, policies = {.nth = policy},
			  splice_modes = {.nth = splice_mode};

static const struct opt options[] = {
	{"ip", 0, OPT_STRING, "A[,A6]",
	 "the app's IPv4 and IPv6 address, or one of them (from the pool unless given)",
	 offsetof(struct run_args, ip), NULL},
	{"name", 0, OPT_STRING, "NAME", "its name (made from the command unless given)",
	 offsetof(struct run_args, name), &words_app},
	{"labels", 0, OPT_STRINGS, "K=V,...", "its labels; two apps talk if they share one",
	 offsetof(struct run_args, labels), NULL},
	{"user", 'u', OPT_STRING, "USER",
	 "run as this user, by name or number, without any capability",
	 offsetof(struct run_args, user), &words_user},
	{"net", 0, OPT_CHOICE, "MODE",
	 "private: a network namespace of its own (the default); host: the host's",
	 offsetof(struct run_args, net), &nets},
	{"env", 'e', OPT_STRINGS, "K=V", "set an environment variable (may be given several times)",
	 offsetof(struct run_args, env), NULL},
	{"env-file", 0, OPT_STRINGS, "FILE", "set those of a file with a K=V in each line",
	 offsetof(struct run_args, env_files), &words_file},
	{"wait", 0, OPT_DURATION, "TIME",
	 "let its connects wait this long for a server that has not started",
	 offsetof(struct run_args, wait_ms), NULL},
	{"egress", 0, OPT_MAYBE, "[=LIST]",
	 "let it reach addresses outside ax: all of them, or a list such as "
	 "10.0.0.0/8,192.0.2.7:443,*.example.com:443; none: not one",
	 offsetof(struct run_args, egress), NULL},
	{"egress-source", 0, OPT_STRING, "A[,A6]",
	 "the addresses of this machine by which the outside sees it (the route's unless given)",
	 offsetof(struct run_args, egress_source), NULL},
	{"egress-audit", 0, OPT_FLAG, NULL, "only count what the list of --egress does not have",
	 offsetof(struct run_args, egress_audit), NULL},
	{"expose", 'p', OPT_STRINGS, "[A:]P:PORT",
	 "let programs outside reach its PORT (8080:80, 127.0.0.1:8080:80, 53:53/udp) by port P of "
	 "this machine",
	 offsetof(struct run_args, expose), NULL},
	{"publish", 0, OPT_STRINGS, "[A:]P:PORT", "the same as --expose",
	 offsetof(struct run_args, expose), NULL},
	{"restart", 0, OPT_CHOICE, "POLICY",
	 "with --detach: start it again when it ends: no (the default), on-failure or always",
	 offsetof(struct run_args, restart), &policies},
	{"splice", 0, OPT_CHOICE, "MODE",
	 "whether its local TCP connections are spliced: auto (the default), on, off or forced",
	 offsetof(struct run_args, splice), &splice_modes},
	{"splice-emulation", 0, OPT_FLAG, NULL,
	 "do its splice(2) for it, so that its connections may be spliced although it uses that",
	 offsetof(struct run_args, splice_emulation), NULL},
	{"directory", 'w', OPT_STRING, "DIR", "its working directory",
	 offsetof(struct run_args, directory), &words_directory},
	{"volume", 'v', OPT_STRINGS, "SOURCE:TARGET[:ro]",
	 "let it see a directory or file in another place (may be given several times)",
	 offsetof(struct run_args, volumes), NULL},
	{"read-only", 0, OPT_FLAG, NULL, "let it write to no files but those of volumes and /tmp",
	 offsetof(struct run_args, read_only), NULL},
	{"memory", 'm', OPT_STRING, "SIZE", "let it have so much memory, such as 512M",
	 offsetof(struct run_args, memory), NULL},
	{"cpus", 0, OPT_STRING, "N", "let it use so many processors, such as 1.5",
	 offsetof(struct run_args, cpus), NULL},
	{"pids", 0, OPT_STRING, "N", "let it have so many processes and threads",
	 offsetof(struct run_args, pids), NULL},
	{"agent", 0, OPT_FLAG, NULL, "start an agent first ('ax agent --detach') if none runs",
	 offsetof(struct run_args, agent), NULL},
	{"detach", 'd', OPT_FLAG, NULL, "start it in the background; 'ax logs' prints its output",
	 offsetof(struct run_args, detach), NULL},
};

const struct command cmd_run = {
	.name = "run",
	.about = "run a command as an app with a virtual IP and a name",
	.run = run,
	.syntax =
		{
			.usage = "ax run [options] [--] COMMAND [ARGUMENT]...",
			.about = "Runs COMMAND as an app: with a virtual IP, a name and labels of "
				 "its own. The command is ax's child and has the caller's "
				 "terminal, environment and standard streams; ax ends with its "
				 "exit status.\n\n"
				 "Options end at the first word that is none, or at '--'.",
			.own = {{options, ARRAY_SIZE(options), 0}},
			.args = {&words_program},
			.command_follows = true,
			.elsewhere = options_of_launches,
		},
};
