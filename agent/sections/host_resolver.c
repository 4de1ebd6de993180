/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * systemd-resolved is told by a link of ours (resolvectl), not by a drop-in: servers of
 * resolved.conf are asked for every name that no link claims, and some of them only for names of
 * their domain is what links can have and the global servers cannot. The link is a pair of devices;
 * it has the agent's DNS address, because links without one are asked nothing. With the link goes
 * what resolved knows of it, so that nothing is left of an agent that was killed once its devices
 * are swept.
 *
 * resolvconf gets a record. Its name begins with "lo.": those come first in interface-order, and
 * libc believes the first nameserver of resolv.conf. That an agent wrote it is remembered by a
 * file.
 */
#include <fcntl.h>
#include <libgen.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#include "sections/host_resolver.h"
#include "allot/pool.h"
#include "base/log.h"
#include "base/strv.h"
#include "machine/instance.h"
#include "net/netlink.h"
#include "registry/instance_ctl.h"
#include "registry/state.h"
#include "sections/command.h"

#define RETRY_NS   (10 * NS_PER_S)
#define STEP_S	   30 /* for one command: calls to systemd-resolved end after 25 */
#define UNWANTED_S 5  /* and so long when something else is wanted */
#define NS_PER_S   1000000000ull
#define STEPS_MAX  7
#define END_MS	   10000 /* for the last command, when the agent ends, */
#define BEGUN_MS   2000	 /* and for the one that ran when it was told to */
#define OUTPUT_MAX 256
#define DNS_PORT   53

struct host_resolver {
	enum host_names want, begun, holds; /* OFF, RESOLVED or RESOLVCONF */
	struct strv steps[STEPS_MAX];
	size_t n_steps, next;
	bool undoing;
	bool complained; /* of what has failed and is tried again */
	int pid;	 /* of the step before `next`, 0: none */
	bool killed;	 /* it took too long */
	uint64_t started_ns, kill_ns;
	int input, output;
	uint64_t again_ns;
	char why[OUTPUT_MAX]; /* what failed last, "": nothing has since */
};

static bool is_one(enum host_names how)
{
	return how == HOST_NAMES_RESOLVED || how == HOST_NAMES_RESOLVCONF;
}

static const char *program_of(enum host_names how)
{
	return how == HOST_NAMES_RESOLVED ? "resolvectl" : "resolvconf";
}

/* --- what the config wants --- */

int host_resolver_check(const struct agent *a, const struct config *c, struct error *e)
{
	const char *word = host_names_word(c->host_names), *program = program_of(c->host_names);
	char path[COMMAND_PATH_MAX], real[COMMAND_PATH_MAX];

	if (!is_one(c->host_names) || !c->host_access)
		return 0;
	if (!a->dns)
		return error_set(e, -EINVAL,
				 "agent.host-names: %s has the agent's DNS asked, and that is off: "
				 "switch agent.dns on and start the agent again, or say hosts",
				 word);
	if (!command_path(program, path))
		return error_set(e, -ENOENT,
				 "agent.host-names: %s needs the program %s, which is not here: "
				 "install %s, or say hosts",
				 word, program,
				 c->host_names == HOST_NAMES_RESOLVED ? "systemd-resolved"
								      : "resolvconf or openresolv");
	if (c->host_names == HOST_NAMES_RESOLVED)
		return 0;
	if (realpath(path, real) && streq(basename(real), "resolvectl"))
		return error_set(e, -EINVAL,
				 "agent.host-names: the resolvconf of this machine is "
				 "systemd-resolved's: say resolved instead");
	if (a->ctl.dns_port_be != htons(DNS_PORT))
		return error_set(e, -EADDRINUSE,
				 "agent.host-names: the agent's DNS has port %u, as somebody else "
				 "has 53, and resolv.conf cannot say a port: end that one and "
				 "start the agent again, or say hosts",
				 ntohs(a->ctl.dns_port_be));
	return 0;
}

/* --- words --- */

/* "~217.10.in-addr.arpa", of the first `labels` bytes (IPv4) or nibbles (IPv6). */
static int add_reverse(struct strv *v, const struct ax_addr *addr, unsigned labels)
{
	bool v4 = addr_is_v4(addr);
	char text[80] = "~", *p = text + 1;

	for (unsigned i = labels; i-- > 0;) {
		unsigned nibble = addr->b[i / 2] >> (i % 2 ? 0 : 4) & 15;

		p += v4 ? sprintf(p, "%u.", addr->b[12 + i]) : sprintf(p, "%x.", nibble);
	}
	sprintf(p, "%s", v4 ? "in-addr.arpa" : "ip6.arpa");
	return strv_add(v, text);
}

/* The domains in which the names of a pool's addresses are: as a label of theirs is 8 or 4 bits,
 * several where the prefix ends within one, so that addresses of others are left to them. */
static int add_pool(struct strv *v, const struct pool *p)
{
	bool v4 = addr_is_v4(&p->prefix.addr);
	unsigned bits = v4 ? 8 : 4, len = p->prefix.len - (v4 ? 96 : 0);
	unsigned labels = (len + bits - 1) / bits, n = 1u << (labels * bits - len);
	struct ax_addr addr = p->prefix.addr;
	int r = 0;

	for (unsigned i = 0; i < n && !r; i++) {
		r = add_reverse(v, &addr, labels);
		if (v4)
			addr.b[12 + labels - 1]++;
		else
			addr.b[(labels - 1) / 2] += labels % 2 ? 16 : 1;
	}
	return r;
}

static int add_words(struct strv *v, const char *const *words)
{
	int r = 0;

	for (; *words && !r; words++)
		r = strv_add(v, *words);
	return r;
}

static struct strv *next_step(struct host_resolver *r)
{
	return &r->steps[r->n_steps++];
}

static void forget_steps(struct host_resolver *r)
{
	for (size_t i = 0; i < ARRAY_SIZE(r->steps); i++)
		strv_free(&r->steps[i]);
	r->n_steps = r->next = 0;
	close_fd(&r->input);
	close_fd(&r->output);
}

/* What is not for this server comes first, so that it is never asked more than it should be. */
static int resolved_steps(struct agent *a, struct host_resolver *r)
{
	static const char *const first[] = {"default-route", "llmnr", "mdns", "dnssec",
					    "dnsovertls"};
	const char *device = a->inst->dns_device;
	char server[ADDR_STRLEN];
	struct strv *v;
	int err = 0;

	for (size_t i = 0; i < ARRAY_SIZE(first) && !err; i++)
		err = add_words(next_step(r),
				(const char *[]){"resolvectl", first[i], device, "no", NULL});
	v = next_step(r);
	err = err ? err
		  : add_words(v, (const char *[]){"resolvectl", "domain", device,
						  a->config.dns_domain, NULL});
	if (!err && a->pool4.size)
		err = add_pool(v, &a->pool4);
	if (!err && a->pool6.size)
		err = add_pool(v, &a->pool6);
	if (a->ctl.dns_port_be == htons(DNS_PORT))
		addr_format(&a->host4, server);
	else
		addr_port_format(&a->host4, a->ctl.dns_port_be, server);
	v = next_step(r);
	return err ? err
		   : add_words(v, (const char *[]){"resolvectl", "dns", device, server, NULL});
}

static int resolvconf_step(const struct agent *a, struct host_resolver *r, const char *option)
{
	char record[32];

	snprintf(record, sizeof(record), "lo.ax-%s", a->inst->name);
	return add_words(next_step(r), (const char *[]){"resolvconf", option, record, NULL});
}

static int resolvconf_input(const struct agent *a, struct host_resolver *r)
{
	char ip[ADDR_STRLEN];

	r->input = memfd_create("resolvconf", MFD_CLOEXEC);
	if (r->input < 0)
		return -errno;
	if (dprintf(r->input, "nameserver %s\nsearch %s\n", addr_format(&a->host4, ip),
		    a->config.dns_domain) < 0)
		return -EIO;
	return lseek(r->input, 0, SEEK_SET) < 0 ? -errno : 0;
}

static void mark_path(const struct agent *a, char ret[96])
{
	snprintf(ret, 96, "%s/resolvconf", a->inst->run_dir);
}

static bool is_marked(const struct agent *a)
{
	char path[96];

	mark_path(a, path);
	return access(path, F_OK) == 0;
}

/* --- the link --- */

static void close_device(struct agent *a)
{
	unsigned ifindex;

	if (a->nl && nl_link_index(a->nl, a->inst->dns_device, &ifindex) == 0)
		nl_link_del(a->nl, ifindex);
}

static int open_device(struct agent *a)
{
	autoclose int netns = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	unsigned ifindex = 0, peer = 0;
	uint8_t mac[6];
	int r;

	close_device(a);
	agent_mac(a, mac);
	r = netns < 0 ? -errno
		      : nl_link_add_veth(a->nl, a->inst->dns_device, a->inst->dns_peer, netns, mac,
					 0, &ifindex);
	r = r ? r : nl_link_index(a->nl, a->inst->dns_peer, &peer);
	/* (it must be up for the other end to be) */
	r = r ? r : nl_link_set_up(a->nl, peer);
	return r ? r : nl_addr_add(a->nl, ifindex, &a->host4, 32);
}

/* --- running --- */

static void try_later(struct agent *a, struct host_resolver *r)
{
	r->again_ns = time_mono_ns() + RETRY_NS;
	a->timers_stale = true;
}

/* Its process group too: resolvconf is a script. */
static void kill_step(struct host_resolver *r)
{
	kill(-r->pid, SIGKILL);
	kill(r->pid, SIGKILL);
	r->killed = true;
	r->kill_ns = 0;
}

static void failed(struct agent *a, struct host_resolver *r, const char *why)
{
	snprintf(r->why, sizeof(r->why), "%s", why);
	if (!r->complained)
		log_error("agent.host-names: %s cannot be told of the agent's DNS: %s",
			  r->undoing || r->begun == HOST_NAMES_RESOLVCONF ? "resolvconf"
									  : "systemd-resolved",
			  why);
	r->complained = true;
	forget_steps(r);
	/* the next agent tries that again */
	if (r->undoing)
		r->holds = HOST_NAMES_OFF;
	else
		close_device(a);
	try_later(a, r);
}

/* The step that runs: how long it may depends on whether it is for what is wanted. */
static void limit_step(struct agent *a, struct host_resolver *r)
{
	bool wanted = r->undoing ? r->want != HOST_NAMES_RESOLVCONF : r->want == r->begun;

	if (!r->pid || r->killed)
		return;
	r->kill_ns = r->started_ns + (wanted ? STEP_S : UNWANTED_S) * NS_PER_S;
	a->timers_stale = true;
}

static void start_step(struct agent *a, struct host_resolver *r)
{
	const struct strv *command = &r->steps[r->next];
	struct command_run run = {.kind = "program",
				  .name = command->v[0],
				  .user = "root",
				  .command = command,
				  .netns = -1,
				  .input = r->input < 0 ? 0 : r->input};
	int pid;

	close_fd(&r->output);
	r->output = run.output = memfd_create("output", MFD_CLOEXEC);
	pid = r->output < 0 ? -errno : command_start(a, &run);
	if (pid < 0) {
		failed(a, r, strerror(-pid));
		return;
	}
	r->pid = pid;
	r->killed = false;
	r->started_ns = time_mono_ns();
	limit_step(a, r);
	r->next++;
}

static int prepare(struct agent *a, struct host_resolver *r)
{
	autoclose int mark = -1;
	char path[96];
	int err;

	mark_path(a, path);
	if (r->undoing)
		return resolvconf_step(a, r, "-d");
	if (r->want == HOST_NAMES_RESOLVED) {
		err = open_device(a);
		return err ? err : resolved_steps(a, r);
	}
	mark = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	err = mark < 0 ? -errno : resolvconf_input(a, r);
	return err ? err : resolvconf_step(a, r, "-a");
}

static void begin(struct agent *a, struct host_resolver *r)
{
	struct error e = {0};
	int err;

	forget_steps(r);
	r->begun = r->undoing ? HOST_NAMES_OFF : r->want;
	if (!r->undoing && host_resolver_check(a, &a->config, &e)) {
		failed(a, r, e.text);
		return;
	}
	err = prepare(a, r);
	if (err)
		failed(a, r, strerror(-err));
	else
		start_step(a, r);
}

static void done(struct agent *a, struct host_resolver *r)
{
	char path[96];

	forget_steps(r);
	r->complained = false;
	r->why[0] = 0;
	r->holds = r->begun;
	mark_path(a, path);
	if (r->undoing)
		unlink(path);
}

/* One thing after the other, until what holds is what is wanted. */
static void advance(struct agent *a, struct host_resolver *r)
{
	if (r->pid || r->again_ns || r->holds == r->want)
		return;
	if (r->holds == HOST_NAMES_RESOLVED) {
		close_device(a);
		r->holds = HOST_NAMES_OFF;
	}
	r->undoing = r->holds == HOST_NAMES_RESOLVCONF;
	if (r->undoing || r->want != HOST_NAMES_OFF)
		begin(a, r);
}

/* What has failed is not wanted any more: what is does not have to wait for another attempt. */
static void go_elsewhere(struct agent *a, struct host_resolver *r)
{
	if (r->want == r->begun)
		return;
	if (r->begun == HOST_NAMES_RESOLVCONF) /* which may have come to something all the same */
		r->holds = HOST_NAMES_RESOLVCONF;
	if (r->want == HOST_NAMES_OFF)
		r->why[0] = 0;
	r->again_ns = 0;
	r->complained = false;
	advance(a, r);
}

static void step_ended(struct agent *a, struct host_resolver *r, int status)
{
	const struct strv *step = &r->steps[r->next - 1];
	char text[OUTPUT_MAX] = "", why[OUTPUT_MAX];
	ssize_t n;

	r->pid = 0;
	r->kill_ns = 0;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
		if (r->next < r->n_steps) {
			start_step(a, r);
			return;
		}
		done(a, r);
		advance(a, r);
		return;
	}
	n = pread(r->output, text, sizeof(text) - 1, 0);
	text[n > 0 ? n : 0] = 0;
	text[strcspn(text, "\n")] = 0;
	snprintf(why, sizeof(why), "'%s %s' had not ended after %llu s and was killed", step->v[0],
		 step->v[1], (unsigned long long)((time_mono_ns() - r->started_ns) / NS_PER_S));
	failed(a, r, r->killed ? why : *text ? text : "its program failed");
	go_elsewhere(a, r);
}

bool host_resolver_reap(struct agent *a, int pid, int status)
{
	struct host_resolver *r = a->host_resolver;

	if (!r || !r->pid || r->pid != pid)
		return false;
	step_ended(a, r, status);
	return true;
}

void host_resolver_due(struct agent *a, uint64_t now_ns)
{
	struct host_resolver *r = a->host_resolver;

	if (r && r->kill_ns && now_ns >= r->kill_ns)
		kill_step(r);
	if (!r || !r->again_ns || now_ns < r->again_ns)
		return;
	r->again_ns = 0;
	advance(a, r);
}

uint64_t host_resolver_deadline(const struct agent *a)
{
	const struct host_resolver *r = a->host_resolver;

	return !r ? 0 : r->pid ? r->kill_ns : r->again_ns;
}

enum host_resolver_state host_resolver_state(const struct agent *a, const char **why)
{
	const struct host_resolver *r = a->host_resolver;

	*why = r && r->why[0] ? r->why : NULL;
	if (!r || (r->want == HOST_NAMES_OFF && r->holds == HOST_NAMES_OFF && !r->pid))
		return HOST_RESOLVER_OFF;
	if (r->holds == r->want && !r->pid)
		return HOST_RESOLVER_TOLD;
	return *why ? HOST_RESOLVER_FAILED : HOST_RESOLVER_WORKING;
}

static struct host_resolver *get(struct agent *a, bool wanted)
{
	struct host_resolver *r = a->host_resolver;

	if (r || (!wanted && !is_marked(a)))
		return r;
	r = a->host_resolver = calloc(1, sizeof(*r));
	if (!r) {
		log_error("agent.host-names: out of memory");
		return NULL;
	}
	r->input = r->output = -1;
	return r;
}

void host_resolver_set(struct agent *a, enum host_names how)
{
	bool first = !a->host_resolver;
	struct host_resolver *r = get(a, is_one(how));

	if (!r)
		return;
	how = is_one(how) ? how : HOST_NAMES_OFF;
	/* (an earlier agent's: the same is written anew, as it may have been another address) */
	if (first && how != HOST_NAMES_RESOLVCONF && is_marked(a))
		r->holds = HOST_NAMES_RESOLVCONF;
	if (r->want != how) {
		r->want = how;
		r->complained = false;
		r->again_ns = 0;
		r->why[0] = 0;
		limit_step(a, r);
	}
	advance(a, r);
}

/* --- the end --- */

static void wait_for_step(struct agent *a, struct host_resolver *r, int most_ms)
{
	const struct timespec moment = {.tv_nsec = 5 * 1000 * 1000};
	int status;

	for (int ms = 0; r->pid && ms < most_ms; ms += 5) {
		int pid = waitpid(r->pid, &status, WNOHANG);

		if (pid)
			step_ended(a, r, pid > 0 ? status : 0);
		else
			nanosleep(&moment, NULL);
	}
	if (!r->pid)
		return;
	kill_step(r);
	waitpid(r->pid, &status, 0);
	r->pid = 0;
}

void host_resolver_remove(struct agent *a)
{
	struct host_resolver *r = get(a, false);

	if (r) {
		r->n_steps = r->next; /* no more of what has begun */
		r->want = HOST_NAMES_OFF;
		wait_for_step(a, r, BEGUN_MS);
		r->again_ns = 0;
		if (is_marked(a))
			r->holds = HOST_NAMES_RESOLVCONF;
		advance(a, r);
		wait_for_step(a, r, END_MS);
		forget_steps(r);
		free(r);
		a->host_resolver = NULL;
	}
	close_device(a);
}
