/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The agent: start, the loop, the end. Apps and traffic do not depend on it being there. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>

#include "daemon/agent.h"
#include "base/address.h"
#include "base/cgroup.h"
#include "base/instance.h"
#include "base/log.h"
#include "base/loop.h"
#include "config/config.h"
#include "config/parse.h"
#include "daemon/adopt.h"
#include "daemon/app_table.h"
#include "daemon/apps.h"
#include "daemon/control_server.h"
#include "daemon/declared.h"
#include "daemon/devices.h"
#include "daemon/events.h"
#include "daemon/flush.h"
#include "daemon/health.h"
#include "daemon/instance_ctl.h"
#include "daemon/linger.h"
#include "daemon/names.h"
#include "daemon/names_zone.h"
#include "daemon/needs.h"
#include "daemon/policy.h"
#include "daemon/pool.h"
#include "daemon/probes_section.h"
#include "daemon/reconcile.h"
#include "daemon/service_device.h"
#include "daemon/services.h"
#include "daemon/spawn.h"
#include "daemon/state.h"
#include "daemon/sweep.h"
#include "daemon/triggers.h"
#include "daemon/vips.h"
#include "daemon/xdp_section.h"
#include "datapath/datapath.h"
#include "dns/dns.h"
#include "launch/group.h"
#include "net/netlink.h"
#include "probes/named/named.h"
#include "yaml/errors.h"

/* --- telling systemd (sd_notify(3)), without its library --- */

static void notify(const char *text)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	autoclose int fd = -1;
	size_t len = path ? strlen(path) : 0;

	if (!len || len >= sizeof(sun.sun_path) || (path[0] != '/' && path[0] != '@'))
		return;
	memcpy(sun.sun_path, path, len);
	if (path[0] == '@') /* the abstract namespace */
		sun.sun_path[0] = 0;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd >= 0)
		sendto(fd, text, strlen(text), MSG_NOSIGNAL, (struct sockaddr *)&sun,
		       (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len));
}

/* --- timers --- */

static void arm_timer(struct agent *a)
{
	uint64_t next = 0, now = time_mono_ns();
	uint64_t spawn = spawn_deadline(a), devices = devices_deadline(a);
	struct itimerspec ts = {0};

	for (const struct app *app = a->apps; app; app = app->next)
		if (app->kill_at_ns && (!next || app->kill_at_ns < next))
			next = app->kill_at_ns;
	if (spawn && (!next || spawn < next))
		next = spawn;
	for (const struct app *app = a->lingering; app; app = app->next)
		if (!next || app->linger_check_ns < next)
			next = app->linger_check_ns;
	if (devices && (!next || devices < next))
		next = devices;
	if (next) {
		uint64_t left = next > now ? next - now : 1;

		ts.it_value.tv_sec = (time_t)(left / 1000000000);
		ts.it_value.tv_nsec = (long)(left % 1000000000);
	}
	timerfd_settime(a->timer.fd, 0, &ts, NULL);
	a->timers_stale = false;
}

static void on_timer(struct agent *a)
{
	uint64_t n, now;

	if (read(a->timer.fd, &n, sizeof(n)) < 0)
		return;
	now = time_mono_ns();
	for (struct app *app = a->apps; app; app = app->next) {
		if (!app->kill_at_ns || app->kill_at_ns > now)
			continue;
		app->kill_at_ns = 0;
		log_warn("app %s (%u) does not end by itself and is killed", app->spec.name,
			 app->id);
		cgroup_signal(app->cgroup, SIGKILL);
	}
	spawn_due(a, now);
	linger_due(a, now);
	devices_due(a, now);
	a->timers_stale = true;
}

/* --- what apps need of the machine --- */

/* --- start --- */

static int take_lock(struct agent *a, struct error *e)
{
	char pid[32];
	int r = mkdir_parents(a->inst->run_dir, 0755);
	gid_t ax;

	if (!r)
		r = mkdir_parents(a->inst->log_dir, 0750);
	if (r)
		return error_set(e, r, "cannot make %s: %s (run the agent as root)",
				 a->inst->run_dir, strerror(-r));
	/* its members read the logs: what is made in there belongs to the group */
	if (!group_id(AX_GROUP, &ax) &&
	    (chown(a->inst->log_dir, 0, ax) < 0 || chmod(a->inst->log_dir, 02750) < 0))
		log_debug("chown %s: %s", a->inst->log_dir, strerror(errno));
	/* 0600: whoever can open it can hold it, and keep an agent from starting */
	a->lock_fd = open(a->inst->lock_path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (a->lock_fd >= 0)
		fchmod(a->lock_fd, 0600);
	if (a->lock_fd < 0)
		return error_set(e, -errno, "cannot open %s: %s", a->inst->lock_path,
				 strerror(errno));
	if (flock(a->lock_fd, LOCK_EX | LOCK_NB) < 0) {
		ssize_t n = read(a->lock_fd, pid, sizeof(pid) - 1);

		pid[n > 0 ? n : 0] = 0;
		pid[strcspn(pid, "\n")] = 0;
		return error_set(e, -EBUSY,
				 "another agent of instance '%s' is running (pid %s): end it "
				 "first, or give this one another --instance",
				 a->inst->name, *pid ? pid : "?");
	}
	snprintf(pid, sizeof(pid), "%d\n", (int)getpid());
	if (ftruncate(a->lock_fd, 0) < 0 || pwrite(a->lock_fd, pid, strlen(pid), 0) < 0)
		log_debug("%s: %s", a->inst->lock_path, strerror(errno));
	return 0;
}

/* The config that holds: the file, or what was applied since, if the file is still the one that
 * the last agent had read. An agent that died must not undo an apply; an edited file must win. */
static int read_config(struct agent *a, char **text, const char **path, struct error *e)
{
	static char applied[128];
	struct stat file, kept;
	int r;

	snprintf(applied, sizeof(applied), "%s/applied.yaml", a->inst->run_dir);
	*path = a->config_path;
	if (stat(applied, &kept) == 0 &&
	    (!a->config_path || (stat(a->config_path, &file) == 0 &&
				 (file.st_mtim.tv_sec < kept.st_mtim.tv_sec ||
				  (file.st_mtim.tv_sec == kept.st_mtim.tv_sec &&
				   file.st_mtim.tv_nsec <= kept.st_mtim.tv_nsec))))) {
		log_info("using the config that was applied last (%s)", applied);
		*path = applied;
	}
	if (!*path) {
		*text = strdup("");
		return *text ? 0 : error_set(e, -ENOMEM, "out of memory");
	}
	r = file_read(*path, 64u << 20, text);
	return r ? error_set(e, r, "cannot read the config %s: %s", *path, strerror(-r)) : 0;
}

static int parse_config(struct agent *a, struct config *ret, struct error *e)
{
	CLEANUP(config_errors_free) struct config_errors errs = {0};
	autofree char *text = NULL;
	const char *path;
	int r = read_config(a, &text, &path, e);

	if (r)
		return r;
	r = config_parse(text, strlen(text), ret, &errs);
	if (!r)
		return 0;
	config_errors_print(&errs, path, stderr);
	return error_set(e, r, "the config %s has errors: the agent does not start", path);
}

/* The agent section holds from the start; the rest is applied when the dataplane stands. */
static int take_agent_section(struct agent *a, const struct config *c, struct error *e)
{
	struct instance plain;
	int r = config_init(&a->config);

	if (r)
		return error_set(e, r, "out of memory");
	a->config.pool4 = c->pool4;
	a->config.pool6 = c->pool6;
	a->config.dns = c->dns;
	a->config.host_access = c->host_access;
	free(a->config.dns_domain);
	a->config.dns_domain = strdup(c->dns_domain);
	a->config.socket = c->socket ? strdup(c->socket) : NULL;
	if (!a->config.dns_domain || (c->socket && !a->config.socket))
		return error_set(e, -ENOMEM, "out of memory");
	/* --socket on the command line comes before the file */
	r = instance_init(&plain, a->inst->name, e);
	if (!r && c->socket && streq(plain.socket_path, a->inst->socket_path)) {
		if (strlen(c->socket) >= sizeof(a->own.socket_path))
			return error_set(e, -ENAMETOOLONG, "agent.socket is too long");
		snprintf(a->own.socket_path, sizeof(a->own.socket_path), "%s", c->socket);
	}
	r = r ? r : pool_init(&a->pool4, &c->pool4);
	return r ? r : pool_init(&a->pool6, &c->pool6);
}

static int own_address(struct agent *a, const struct ax_addr *addr, struct error *e)
{
	struct vip *v;

	if (addr_is_zero(addr))
		return 0;
	v = vip_get(a, addr);
	if (!v)
		return error_set(e, -ENOMEM, "out of memory");
	v->host = true;
	return vip_sync(a, v, e);
}

/* The anchor for v6-only wildcard binds of apps without IPv6 (ctl.h): a /96 of its own. */
static int open_anchor(struct agent *a)
{
	struct nl_route r = {.local = true, .ifindex = a->lo, .metric = a->inst->route_metric};

	r.dst.len = 96;
	agent_anchor_prefix(a->inst, &r.dst.addr);
	a->ctl.anchor6 = r.dst.addr;
	return nl_route_add(a->nl, &r);
}

/* Where the ports begin that the kernel gives to clients. */
static uint32_t ephemeral_first(void)
{
	autofree char *text = NULL;
	long n = 0;

	if (file_read("/proc/sys/net/ipv4/ip_local_port_range", 64, &text) == 0)
		n = strtol(text, NULL, 10);
	return n > 0 && n < 65536 ? (uint32_t)n : 32768;
}

static int open_network(struct agent *a, struct error *e)
{
	autoclose int netns = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	int r = netns < 0 ? -errno : netns_cookie(netns, &a->netns_cookie);

	r = r ? r : nl_open(&a->nl);

	if (!r)
		r = nl_link_index(a->nl, "lo", &a->lo);
	if (!r)
		r = nl_link_set_up(a->nl, a->lo);
	if (r)
		return error_set(e, r, "cannot talk to the kernel's routing: %s (run as root)",
				 strerror(-r));
	a->host4 = pool_host(&a->pool4);
	if (open_anchor(a) == 0) {
		a->has_ipv6 = true;
		a->host6 = a->pool6.size ? pool_host(&a->pool6) : a->ctl.anchor6;
		if (!a->pool6.size)
			a->host6.w[2] = htonl(1); /* beside the anchor's /96 */
	} else {
		memset(&a->ctl.anchor6, 0, sizeof(a->ctl.anchor6));
	}
	a->ctl.ephemeral_first = ephemeral_first();
	a->ctl.host4 = a->host4;
	a->ctl.host6 = a->host6;
	a->ctl.host_access = a->config.host_access;
	r = own_address(a, &a->host4, e);
	return r ? r : own_address(a, &a->host6, e);
}

static int add_item(struct agent *a, struct loop_item *item, enum loop_kind kind, int fd)
{
	if (fd < 0)
		return -errno;
	item->kind = kind;
	item->fd = fd;
	return loop_add(a->epoll, item, EPOLLIN);
}

static int open_loop(struct agent *a, struct error *e)
{
	struct rlimit files;
	sigset_t set;
	int r;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, &a->caller_mask);
	signal(SIGPIPE, SIG_IGN);
	/* DNS clients and upstreams may need more than the usual 1024 */
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		a->caller_files = files;
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	a->ring.kind = LOOP_EVENT_RING;
	a->ring.fd = -1;
	a->epoll = loop_open();
	r = a->epoll < 0 ? a->epoll : 0;
	r = r ? r
	      : add_item(a, &a->signals, LOOP_SIGNAL,
			 signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
	r = r ? r : add_item(a, &a->inotify, LOOP_CGROUP, inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
	r = r ? r
	      : add_item(a, &a->timer, LOOP_APP_TIMER,
			 timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
	r = r ? r
	      : add_item(a, &a->ring_timer, LOOP_EVENT_TIMER,
			 timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
	return r ? error_set(e, r, "cannot set up the event loop: %s", strerror(-r)) : 0;
}

static int start(struct agent *a, struct error *e)
{
	struct config next;
	json_t *diff = NULL;
	bool fresh, holds;
	int r = take_lock(a, e);

	r = r ? r : parse_config(a, &next, e);
	if (r)
		return r;
	r = take_agent_section(a, &next, e);
	r = r ? r : open_loop(a, e);
	r = r ? r : cgroup_root(a->inst, a->cgroup, e);
	r = r ? r : datapath_open(a->inst, a->cgroup, &a->dp, &fresh, e);
	r = r ? r : open_network(a, e);
	r = r ? r : names_open(a, e);
	if (r) {
		config_free(&next);
		return r;
	}
	/* From here on traffic of a former agent's apps is touched: nothing is told to the kernel
	 * that is not what it will be in the end. */
	policy_load(&a->policy, a->cgroup);
	a->policy.rules = next.rules;
	a->policy.n_rules = next.n_rules;
	a->ctl.rule_allow = policy_allow_mask(&a->policy);
	service_device_adopt(a);
	r = agent_tell_ctl(a);
	r = r ? r : adopt_apps(a, e);
	if (r) {
		config_free(&next);
		return r;
	}
	a->starting = true;
	health_load(a);
	xdp_section_load(a);
	if (reconcile(a, &next, false, &diff, &holds, e))
		log_error("%s", e->text); /* an agent that does most of it beats none */
	a->starting = false;
	health_loaded(a);
	json_decref(diff);
	if (!holds)
		return -ENOMEM;
	reconcile_adopted(a);
	policy_release(&a->policy, a->cgroup);
	datapath_hold(a->dp, a->holding);
	r = sweep(a, e);
	if (!r && a->ctl.service_ifindex && !a->service_routes)
		service_device_close(a);
	r = r ? r : needs_egress(a, e);
	if (!r && events_open(a))
		log_warn("events of this kernel's dataplane cannot be read: see 'ax doctor'");
	return r ? r : control_listen(a, e);
}

/* --- the loop --- */

static void reload(struct agent *a)
{
	struct error e = {0};
	int r;

	if (!a->config_path) {
		log_info("SIGHUP: the agent was started without a config file");
		return;
	}
	notify("RELOADING=1");
	r = reconcile_file(a, a->config_path, &e);
	if (r) {
		log_error("%s", e.text);
	} else {
		char applied[128];

		/* the file holds again */
		snprintf(applied, sizeof(applied), "%s/applied.yaml", a->inst->run_dir);
		unlink(applied);
		log_info("the config %s is applied", a->config_path);
	}
	notify("READY=1");
}

static void reap(struct agent *a)
{
	int pid, status;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		if (!triggers_reap(a, pid, status))
			spawn_reap(a, pid, status);
}

static void on_signal(struct agent *a)
{
	struct signalfd_siginfo si;

	while (read(a->signals.fd, &si, sizeof(si)) == sizeof(si)) {
		switch (si.ssi_signo) {
		case SIGCHLD:
			reap(a);
			break;
		case SIGHUP:
			reload(a);
			break;
		default:
			a->quit = true;
		}
	}
}

/* The kernel dropped notices: any app may have ended. */
static void check_all(struct agent *a)
{
	struct app *next;

	for (struct app *app = a->apps; app; app = next) {
		next = app->next;
		app_check(a, app);
	}
}

static void on_cgroup(struct agent *a)
{
	char buf[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
	ssize_t n = read(a->inotify.fd, buf, sizeof(buf));

	for (char *p = buf; n > 0 && p < buf + n;) {
		struct inotify_event *ev = (struct inotify_event *)(void *)p;
		struct app *app = app_by_watch(a, ev->wd);

		p += sizeof(*ev) + ev->len;
		if (ev->mask & IN_Q_OVERFLOW)
			check_all(a);
		if (app)
			app_check(a, app);
	}
}

static void on_launcher(struct agent *a, struct loop_item *item)
{
	struct app *app = LOOP_OWNER(item, struct app, launcher);

	loop_del(a->epoll, item);
	close_fd(&item->fd);
	app_check(a, app);
}

static void dispatch(struct agent *a, struct loop_item *item, uint32_t events)
{
	switch (item->kind) {
	case LOOP_SIGNAL:
		on_signal(a);
		break;
	case LOOP_CONTROL_LISTEN:
		control_on_listen(a);
		break;
	case LOOP_CONTROL_CLIENT:
		control_on_client(a, client_of(item), events);
		break;
	case LOOP_CGROUP:
		on_cgroup(a);
		break;
	case LOOP_LAUNCHER:
		on_launcher(a, item);
		break;
	case LOOP_APP_TIMER:
		on_timer(a);
		break;
	case LOOP_EVENT_RING:
		events_on_ring(a);
		break;
	case LOOP_EVENT_TIMER:
		events_on_timer(a);
		break;
	case LOOP_DNS_UDP:
		dns_on_udp(item);
		break;
	case LOOP_DNS_LISTEN:
		dns_on_listen(item);
		break;
	case LOOP_DNS_CLIENT:
		dns_on_client(item, events);
		break;
	case LOOP_DNS_UPSTREAM:
		dns_on_upstream(item, events);
		break;
	case LOOP_DNS_TIMER:
		dns_on_timer(item);
		break;
	case LOOP_HEALTH:
		health_on_socket(a, item);
		break;
	case LOOP_HEALTH_TIMER:
		health_on_timer(a);
		break;
	case LOOP_LINK:
		xdp_section_on_link(a);
		break;
	case LOOP_XDP_TIMER:
		xdp_section_on_timer(a);
		break;
	case LOOP_TRIGGERS:
		xdp_section_on_triggers(a, item);
		break;
	}
}

/* --- end --- */

/* Memory only: apps, tables, routes and links stay for the next agent. */
static void agent_free(struct agent *a)
{
	clients_close_all(a);
	dns_server_close(a->dns);
	while (a->apps) {
		struct app *app = a->apps;

		a->apps = app->next;
		app_free(app);
	}
	while (a->lingering) {
		struct app *app = a->lingering;

		a->lingering = app->next;
		app_free(app);
	}
	services_free_all(a);
	spawn_free_all(a);
	triggers_free(a);
	xdp_section_free(a);
	probes_free(a);
	vip_free_all(a);
	name_free_all(a);
	declared_free_all(a);
	policy_free(&a->policy);
	devices_free(a);
	free(a->health_was);
	free(a->anchors.used);
	pool_free(&a->pool4);
	pool_free(&a->pool6);
	config_free(&a->config);
	datapath_close(a->dp);
	nl_closep(&a->nl);
	close_fd(&a->signals.fd);
	close_fd(&a->inotify.fd);
	close_fd(&a->timer.fd);
	close_fd(&a->ring_timer.fd);
	close_fd(&a->health_timer.fd);
	close_fd(&a->listen.fd);
	close_fd(&a->epoll);
	close_fd(&a->lock_fd);
}

static int flush(struct agent *a)
{
	struct error e = {0};

	if (take_lock(a, &e) || xdp_section_flush(a->inst, &e) || named_flush(a->inst, &e) ||
	    flush_instance(a->inst, &e)) {
		log_error("%s", e.text);
		return 1;
	}
	return 0;
}

int agent_run(const struct agent_options *o)
{
	struct agent a = {.inst = o->inst,
			  .own = *o->inst,
			  .config_path = o->config_path,
			  .epoll = -1,
			  .lock_fd = -1,
			  .since = time(NULL),
			  .next_service = 1};
	struct error e = {0};
	int status = 0;

	a.signals.fd = a.listen.fd = a.inotify.fd = a.timer.fd = a.ring.fd = a.ring_timer.fd = -1;
	a.health_timer.fd = a.links.fd = a.xdp_timer.fd = -1;
	if (o->flush) {
		status = flush(&a);
		close_fd(&a.lock_fd);
		return status;
	}
	if (start(&a, &e)) {
		log_error("%s", e.text[0] ? e.text : "the agent cannot start");
		status = 1;
		a.quit = true;
	} else {
		log_info("ax %s, instance %s: ready at %s", AX_VERSION, a.inst->name,
			 a.own.socket_path);
		notify("READY=1");
	}
	while (!a.quit) {
		struct loop_item *item;
		uint32_t events;
		int r;

		if (a.timers_stale)
			arm_timer(&a);
		r = loop_wait(a.epoll, &item, &events);
		if (r) {
			log_error("the event loop failed: %s", strerror(-r));
			status = 1;
			break;
		}
		dispatch(&a, item, events);
	}
	if (!status) {
		notify("STOPPING=1");
		unlink(a.own.socket_path);
	}
	agent_free(&a);
	return status;
}
