/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The agent: start, the loop, the end. Apps and traffic do not depend on it being there. */
#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>

#include "daemon/agent.h"
#include "allot/policy.h"
#include "allot/pool.h"
#include "apps/adopt.h"
#include "apps/anchors.h"
#include "apps/apps.h"
#include "apps/devices.h"
#include "apps/door.h"
#include "apps/flush.h"
#include "apps/held.h"
#include "apps/linger.h"
#include "apps/needs.h"
#include "apps/on_connect.h"
#include "apps/spawn.h"
#include "apps/squat.h"
#include "apps/sweep.h"
#include "apps/watch.h"
#include "machine/cgroup.h"
#include "cluster/cluster.h"
#include "control/group.h"
#include "machine/instance.h"
#include "base/log.h"
#include "machine/mounts.h"
#include "base/loop.h"
#include "base/work.h"
#include "config/config.h"
#include "control/server.h"
#include "daemon/config_file.h"
#include "daemon/host_names.h"
#include "daemon/names_zone.h"
#include "daemon/network.h"
#include "daemon/notify.h"
#include "daemon/reconcile.h"
#include "daemon/requests.h"
#include "datapath/datapath.h"
#include "dns/dns.h"
#include "etcd/etcd.h"
#include "health/health.h"
#include "ingress/ingress.h"
#include "net/netlink.h"
#include "probes/named/named.h"
#include "registry/app_table.h"
#include "registry/declared.h"
#include "registry/events.h"
#include "registry/in_force.h"
#include "registry/names_outside.h"
#include "registry/names.h"
#include "registry/service_table.h"
#include "registry/parties.h"
#include "registry/others.h"
#include "registry/remotes.h"
#include "registry/service_device.h"
#include "registry/state.h"
#include "registry/verdict_names.h"
#include "registry/vips.h"
#include "sections/added_rules.h"
#include "sections/added_services.h"
#include "sections/shared_services.h"
#include "sections/host_resolver.h"
#include "sections/probes_section.h"
#include "sections/services_section.h"
#include "sections/check_commands.h"
#include "sections/triggers.h"
#include "sections/xdp_section.h"
#include "services/across.h"
#include "services/checks.h"
#include "services/near.h"
#include "services/passive.h"
#include "services/ramp.h"
#include "services/removed.h"
#include "services/affinity.h"
#include "services/drain.h"
#include "services/services.h"
#include "splice/gate.h"
#include "splice/splice.h"

struct daemon {
	struct agent a;
	int lock_fd;
	struct loop_item signals, timer;
	bool quit;
};

/* --- timers --- */

static void arm_timer(struct daemon *d)
{
	uint64_t next = 0, now = time_mono_ns();
	struct itimerspec ts = {0};
	const uint64_t at[] = {apps_deadline(&d->a),
			       linger_deadline(&d->a),
			       spawn_deadline(&d->a),
			       devices_deadline(&d->a),
			       squat_deadline(&d->a),
			       held_deadline(&d->a),
			       drains_deadline(&d->a),
			       host_names_deadline(&d->a),
			       on_connect_deadline(&d->a),
			       d->a.ramps_at_ns,
			       d->a.near.at_ns,
			       d->a.others_at_ns,
			       names_outside_deadline(&d->a),
			       ingress_deadline(&d->a),
			       verdict_names_deadline(&d->a),
			       d->a.failing_at_ns,
			       d->a.checks_sweep_at_ns,
			       d->a.affinity_at_ns,
			       host_resolver_deadline(&d->a),
			       cluster_deadline(&d->a)};

	for (size_t i = 0; i < ARRAY_SIZE(at); i++)
		if (at[i] && (!next || at[i] < next))
			next = at[i];
	if (next) {
		uint64_t left = next > now ? next - now : 1;

		ts.it_value.tv_sec = (time_t)(left / 1000000000);
		ts.it_value.tv_nsec = (long)(left % 1000000000);
	}
	timerfd_settime(d->timer.fd, 0, &ts, NULL);
	d->a.timers_stale = false;
}

static void on_timer(struct daemon *d)
{
	struct agent *a = &d->a;
	uint64_t n, now;

	if (read(d->timer.fd, &n, sizeof(n)) < 0)
		return;
	now = time_mono_ns();
	apps_due(a, now);
	spawn_due(a, now);
	linger_due(a, now);
	devices_due(a, now);
	squat_due(a, now);
	drains_due(a, now);
	ramps_due(a, now);
	near_due(a, now);
	passive_due(a, now);
	check_commands_due(a, now);
	affinity_due(a, now);
	on_connect_due(a, now);
	ingress_due(a, now);
	cluster_due(a, now);
	if (across_due(a, now))
		cluster_addresses_taken(a);
	held_due(a, now);
	host_names_due(a, now);
	host_resolver_due(a, now);
	names_outside_due(a);
	verdict_names_due(a, now);
	a->timers_stale = true;
}

/* --- start --- */

/* How long to wait for a lock whose holder is dead: a child that it forked has the descriptor until
 * it executes something, on a busy machine a moment longer than its parent lives. */
#define LOCK_ORPHAN_TRIES 200 /* of 10 ms */

/* 0, or -EBUSY with the pid of who holds it ("" if it does not say). */
static int lock_or_holder(int fd, char *pid, size_t size)
{
	const struct timespec moment = {.tv_nsec = 10 * 1000 * 1000};

	for (int i = 0; flock(fd, LOCK_EX | LOCK_NB) < 0; i++) {
		ssize_t n = pread(fd, pid, size - 1, 0);

		pid[n > 0 ? n : 0] = 0;
		pid[strcspn(pid, "\n")] = 0;
		if (!*pid || i == LOCK_ORPHAN_TRIES || kill(atoi(pid), 0) == 0 || errno != ESRCH)
			return -EBUSY;
		nanosleep(&moment, NULL);
	}
	return 0;
}

static int take_lock(const struct instance *inst, int *fd, struct error *e)
{
	char pid[32];
	int r = mkdir_parents(inst->run_dir, 0755);
	gid_t ax;

	if (!r)
		r = mkdir_parents(inst->log_dir, 0750);
	if (r)
		return error_set(e, r, "cannot make %s: %s (run the agent as root)", inst->run_dir,
				 strerror(-r));
	/* its members read the logs: what is made in there belongs to the group */
	if (!group_id(AX_GROUP, &ax) &&
	    (chown(inst->log_dir, 0, ax) < 0 || chmod(inst->log_dir, 02750) < 0))
		log_debug("chown %s: %s", inst->log_dir, strerror(errno));
	/* 0600: whoever can open it can hold it, and keep an agent from starting */
	*fd = open(inst->lock_path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (*fd >= 0)
		fchmod(*fd, 0600);
	if (*fd < 0)
		return error_set(e, -errno, "cannot open %s: %s", inst->lock_path, strerror(errno));
	if (lock_or_holder(*fd, pid, sizeof(pid)))
		return error_set(e, -EBUSY,
				 "another agent of instance '%s' is running (pid %s): end it "
				 "first, or give this one another --instance",
				 inst->name, *pid ? pid : "?");
	snprintf(pid, sizeof(pid), "%d\n", (int)getpid());
	if (ftruncate(*fd, 0) < 0 || pwrite(*fd, pid, strlen(pid), 0) < 0)
		log_debug("%s: %s", inst->lock_path, strerror(errno));
	return 0;
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
	a->config.dns_forward = c->dns_forward;
	a->config.host_access = c->host_access;
	a->config.splice = c->splice;
	a->config.zone = c->zone ? strdup(c->zone) : NULL;
	free(a->config.dns_domain);
	a->config.dns_domain = strdup(c->dns_domain);
	a->config.socket = c->socket ? strdup(c->socket) : NULL;
	if (!a->config.dns_domain || (c->socket && !a->config.socket) ||
	    (c->zone && !a->config.zone))
		return error_set(e, -ENOMEM, "out of memory");
	/* --socket on the command line comes before the file */
	r = instance_init(&plain, a->inst->name, e);
	if (!r && c->socket && streq(plain.socket_path, a->inst->socket_path)) {
		if (strlen(c->socket) >= sizeof(a->own.socket_path))
			return error_set(e, -ENAMETOOLONG, "agent.socket is too long");
		snprintf(a->own.socket_path, sizeof(a->own.socket_path), "%s", c->socket);
	}
	r = r ? r : config_cluster_copy(&c->cluster, &a->config.cluster);
	r = r ? r : pool_init(&a->pool4, &c->pool4);
	r = r ? r : pool_init(&a->pool6, &c->pool6);
	return r ? r : cluster_open(a, &a->config.cluster, e);
}

static int add_item(struct agent *a, struct loop_item *item, enum loop_kind kind, int fd)
{
	if (fd < 0)
		return -errno;
	item->kind = kind;
	item->fd = fd;
	return loop_add(a->epoll, item, EPOLLIN);
}

static void take_signals(struct agent *a, sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGHUP);
	sigaddset(set, SIGCHLD);
	sigprocmask(SIG_BLOCK, set, &a->caller_mask);
	signal(SIGPIPE, SIG_IGN);
}

static int open_loop(struct daemon *d, struct error *e)
{
	struct agent *a = &d->a;
	struct rlimit files;
	sigset_t set;
	int r;

	take_signals(a, &set);
	/* DNS clients and upstreams may need more than the usual 1024 */
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		a->caller_files = files;
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	a->epoll = loop_open();
	r = a->epoll < 0 ? a->epoll : 0;
	r = r ? r
	      : add_item(a, &d->signals, LOOP_SIGNAL,
			 signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
	r = r ? r
	      : add_item(a, &d->timer, LOOP_APP_TIMER,
			 timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
	return r ? error_set(e, r, "cannot set up the event loop: %s", strerror(-r)) : 0;
}

/* --- who tells whom: what lower rooms do not know of each other is tied together here --- */

static void on_app_gone(struct agent *a, struct app *app)
{
	requests_app_gone(a, app);
	on_connect_gone(a, app);
	spawn_app_gone(a, app);
}

/* Who waits may have a backend now. (Of one that apps form other nodes know from the apps.) */
static void on_service_changed(struct agent *a, const struct service *s)
{
	held_soon(a);
	xdp_section_service(a, s);
	if (s->conf)
		cluster_apps_changed(a);
}

static bool is_watching(void *arg, unsigned kind)
{
	return clients_watching(((struct agent *)arg)->control, kind) > 0;
}

static void send_event(void *arg, unsigned kind, json_t *event)
{
	clients_event(((struct agent *)arg)->control, kind, event);
}

static int open_parts(struct agent *a, struct error *e)
{
	const struct event_sink sink = {.watching = is_watching, .event = send_event, .arg = a};
	const struct health_ops health = {.open = checks_socket,
					  .start = check_command_start,
					  .changed = services_backend_changed,
					  .no_way = services_backend_no_way,
					  .why_no_way = services_no_way,
					  .arg = a};
	int r;

	a->hooks.app_gone = on_app_gone;
	a->hooks.awaited = held_awaited;
	a->hooks.knocked = on_connect_knocked;
	a->hooks.failing = passive_failing;
	a->hooks.servers = cluster_apps_changed;
	a->hooks.listeners = near_listeners_changed;
	a->hooks.service_address = cluster_service_address;
	a->hooks.service_changed = on_service_changed;
	a->hooks.nodes = needs_egress;
	a->hooks.shared_config = shared_apply;
	a->health = health_open(a->epoll, a->cgroup, &health);
	r = a->health ? 0 : -ENOMEM;
	r = r ? r : app_table_open(a);
	r = r ? r : work_open(a->epoll, &a->work);
	r = r ? r : work_open(a->epoll, &a->reads);
	r = r ? r : needs_open(a);
	r = r ? r : names_outside_open(a);
	r = r ? r : ingress_open(a);
	r = r ? r : xdp_section_open(a);
	r = r ? r : watches_open(a);
	r = r ? r : events_open(a, &sink);
	r = r ? r : splice_open(a);
	return r ? error_set(e, r, "cannot set up the agent: %s", strerror(-r)) : 0;
}

static int listen_for_clients(struct agent *a, struct error *e)
{
	const struct control_ops ops = {.request = request_handle,
					.gone = request_client_gone,
					.free_kept = request_free_kept,
					.arg = a,
					.work = a->reads};

	return control_listen(a->epoll, a->own.socket_path, &ops, &a->control, e);
}

static int open_machine(struct daemon *d, const struct config *next, struct error *e)
{
	struct agent *a = &d->a;
	unsigned made = 0;
	bool fresh;
	int r = take_agent_section(a, next, e);

	r = r ? r : open_loop(d, e);
	r = r ? r : cgroup_root(a->inst, a->cgroup, &made, e);
	r = r ? r : open_parts(a, e);
	r = r ? r : datapath_open(a->inst, a->cgroup, &a->dp, &fresh, e);
	if (r)
		cgroup_root_undo(a->cgroup, made);
	r = r ? r : network_open(a, e);
	return r ? r : names_open(a, e);
}

/* From here on traffic of a former agent's apps is touched: nothing is told to the kernel that is
 * not what it will be in the end. */
static int take_over(struct agent *a, const struct config *next, struct error *e)
{
	int r;

	service_device_adopt(a);
	ingress_adopt(a);
	r = parties_adopt(a);
	added_read(a, next);
	r = r ? r : added_rules_read(a, next, e);
	shared_read(a, next);
	r = r ? r : adopt_rules(a, next, e);
	return r ? r : adopt_apps(a, e);
}

/* What an agent has open by itself (126: maps and programs, mostly), and as much for those it
 * talks to. */
#define FILES_MIN 256

static int check_files(struct error *e)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) || files.rlim_max >= FILES_MIN)
		return 0;
	return error_set(e, -EMFILE,
			 "an agent needs %d descriptors at least, and may have %llu: raise the "
			 "limit (LimitNOFILE=, ulimit -Hn)",
			 FILES_MIN, (unsigned long long)files.rlim_max);
}

static int start(struct daemon *d, struct error *e)
{
	struct agent *a = &d->a;
	struct config_next next;
	json_t *diff = NULL;
	bool holds;
	int r = check_files(e);

	r = r ? r : mount_check(e);
	r = r ? r : take_lock(a->inst, &d->lock_fd, e);
	r = r ? r : config_file_read(a->inst, a->config_path, &next, e);
	if (r)
		return r;
	r = open_machine(d, &next.config, e);
	if (!r)
		cluster_prepare(a);
	r = r ? r : take_over(a, &next.config, e);
	if (r) {
		config_next_free(&next);
		return r;
	}
	a->starting = true;
	check_commands_flush(a->cgroup);
	drains_load(a);
	xdp_section_load(a);
	if (reconcile(a, &next, false, &diff, &holds, e))
		log_error("%s", e->text); /* an agent that does most of it beats none */
	a->starting = false;
	health_loaded(a->health);
	json_decref(diff);
	if (!holds)
		return -ENOMEM;
	added_load(a);
	shared_load(a);
	reconcile_adopted(a);
	parties_release(a);
	needs_hold_anew(a);
	needs_straight(a);
	if (removed_while_away(a))
		log_warn("connections through services that were removed while no agent ran may go "
			 "on");
	r = sweep(a, e);
	if (!r)
		service_device_settle(a);
	r = r ? r : needs_egress(a, e);
	if (!r && events_read(a))
		log_warn("events of this kernel's dataplane cannot be read: see 'ax doctor'");
	cluster_config_holds(a, shared_source(a));
	if (!r)
		cluster_start(a);
	return r ? r : listen_for_clients(a, e);
}

/* --- the loop --- */

static void reload(void *arg)
{
	struct agent *a = arg;
	struct error e = {0};
	int r;

	notify_systemd("RELOADING=1");
	r = reconcile_file(a, a->config_path, &e);
	if (r) {
		log_error("%s", e.text);
	} else {
		config_file_forget(a->inst);
		log_info("the config %s is applied", a->config_path);
	}
	notify_systemd("READY=1");
}

static void reap(struct agent *a)
{
	int pid, status;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		if (!health_reap(a->health, pid, status) && !triggers_reap(a, pid, status) &&
		    !host_resolver_reap(a, pid, status))
			spawn_reap(a, pid, status);
}

static void on_signal(struct daemon *d)
{
	struct signalfd_siginfo si;

	while (read(d->signals.fd, &si, sizeof(si)) == sizeof(si)) {
		switch (si.ssi_signo) {
		case SIGCHLD:
			reap(&d->a);
			break;
		case SIGHUP:
			if (!d->a.config_path)
				log_info("SIGHUP: the agent was started without a config file");
			else if (work_start(d->a.work, 0, reload, &d->a))
				log_error("SIGHUP: out of memory");
			break;
		default:
			d->quit = true;
		}
	}
}

static void dispatch(struct daemon *d, struct loop_item *item, uint32_t events)
{
	struct agent *a = &d->a;

	switch (item->kind) {
	case LOOP_SIGNAL:
		on_signal(d);
		break;
	case LOOP_CONTROL_LISTEN:
		control_on_listen(a->control);
		break;
	case LOOP_CONTROL_REST:
		control_on_rest(a->control);
		break;
	case LOOP_CONTROL_TURN:
		control_on_turn(a->control);
		break;
	case LOOP_CONTROL_CLIENT:
		control_on_client(item, events);
		break;
	case LOOP_CGROUP:
		watches_on_cgroup(a, app_check);
		break;
	case LOOP_LAUNCHER:
		watches_on_launcher(a, item, app_check);
		break;
	case LOOP_APP_TIMER:
		on_timer(d);
		break;
	case LOOP_EVENT_RING:
		events_on_ring(a);
		break;
	case LOOP_EVENT_TIMER:
		events_on_timer(a);
		break;
	case LOOP_DNS_UDP:
	case LOOP_DNS_LISTEN:
	case LOOP_DNS_CLIENT:
	case LOOP_DNS_UPSTREAM:
	case LOOP_DNS_TIMER:
		dns_on_loop(item, events);
		break;
	case LOOP_HEALTH:
		health_on_socket(a->health, item);
		break;
	case LOOP_HEALTH_TIMER:
		health_on_timer(a->health);
		break;
	case LOOP_LINK:
		xdp_section_on_link(a);
		break;
	case LOOP_TABLES:
		needs_on_tables(a);
		break;
	case LOOP_INGRESS:
		ingress_on_link(a);
		break;
	case LOOP_XDP_TIMER:
		xdp_section_on_timer(a);
		break;
	case LOOP_ETCD:
		etcd_on_socket(item, events);
		break;
	case LOOP_ETCD_TIMER:
		etcd_on_timer(item);
		break;
	case LOOP_WORK:
		work_on_loop(item);
		break;
	case LOOP_SPLICE_GATE:
		splice_on_gate(a);
		break;
	case LOOP_SPLICE_EVENTS:
		splice_on_events(a);
		break;
	case LOOP_SPLICE_BEAT:
		splice_on_beat(a);
		break;
	case LOOP_SPLICE_TIMER:
		splice_on_timer(a);
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
	control_server_close(a->control);
	work_close(a->work);
	work_close(a->reads);
	cluster_close(a);
	remote_free_all(a);
	splice_close(a);
	dns_server_close(a->dns);
	health_close(a->health);
	if (a->cgroup[0])
		check_commands_flush(a->cgroup);
	app_table_close(a);
	ingress_close(a);
	services_free_all(a);
	spawn_free_all(a);
	triggers_free(a);
	xdp_section_free(a);
	probes_free(a);
	vip_free_all(a);
	others_free(a);
	name_free_all(a);
	declared_free_all(a);
	names_outside_close(a);
	policy_free(&a->policy);
	in_force_free(a);
	devices_free(a);
	door_close(a);
	anchors_free(a);
	watches_close(a);
	events_close(a);
	needs_close(a);
	pool_free(&a->pool4);
	pool_free(&a->pool6);
	added_free(a);
	added_rules_free(a);
	shared_free(a);
	drains_free(a);
	config_free(&a->config);
	config_source_free(a->source);
	datapath_close(a->dp);
	nl_closep(&a->nl);
	close_fd(&a->epoll);
}

static int sweep_own(const struct instance *inst, struct error *e)
{
	char cgroup[4096];
	int r = cgroup_root(inst, cgroup, NULL, e);

	if (!r) {
		gate_sweep(cgroup);
		check_commands_flush(cgroup);
	}
	return r;
}

static int flush(struct daemon *d)
{
	const struct instance *inst = d->a.inst;
	struct error e = {0};

	int r = mount_check(&e) || take_lock(inst, &d->lock_fd, &e);

	if (!r) {
		getrlimit(RLIMIT_NOFILE, &d->a.caller_files);
		host_names_remove(&d->a); /* as long as it is known what is to be taken back */
		r = xdp_section_flush(inst, &e) || named_flush(inst, &e) || sweep_own(inst, &e) ||
		    flush_instance(inst, &e);
	}
	if (r)
		log_error("%s", e.text);
	return r;
}

static int run(struct daemon *d)
{
	struct agent *a = &d->a;

	/* what has begun is not left half done */
	while (!d->quit || !work_is_idle(a->work)) {
		struct loop_item *item;
		uint32_t events;
		int r;

		/* (the config that is being applied may not have them any more) */
		if (a->address_freed && work_is_idle(a->work)) {
			a->address_freed = false;
			declared_retry(a);
			on_connect_retry(a);
			services_section_retry(a);
			across_again(a);
		}
		if (a->name_added) {
			a->name_added = false;
			if (a->dns)
				dns_server_names_added(a->dns);
		}
		if (a->names_changed) {
			a->names_changed = false;
			host_names_changed(a);
			cluster_apps_changed(a);
		}
		if (a->splice_stale && work_is_idle(a->work)) {
			a->splice_stale = false;
			splice_update(a);
		}
		if (a->timers_stale)
			arm_timer(d);
		r = loop_wait(a->epoll, &item, &events);
		if (r) {
			log_error("the event loop failed: %s", strerror(-r));
			return 1;
		}
		dispatch(d, item, events);
	}
	return 0;
}

int agent_run(const struct agent_options *o)
{
	struct daemon d = {.a = {.inst = o->inst,
				 .own = *o->inst,
				 .config_path = o->config_path,
				 .epoll = -1,
				 .since_boot = time_boot_s(),
				 .next_service = 1},
			   .lock_fd = -1,
			   .signals.fd = -1,
			   .timer.fd = -1};
	struct error e = {0};
	int status;

	if (o->flush) {
		status = flush(&d);
		close_fd(&d.lock_fd);
		return status;
	}
	if (start(&d, &e)) {
		log_error("%s", e.text[0] ? e.text : "the agent cannot start");
		status = 1;
	} else {
		log_info("ax %s, instance %s: ready at %s", AX_VERSION, d.a.inst->name,
			 d.a.own.socket_path);
		notify_systemd("READY=1");
		d.a.splice_stale = true;
		d.a.names_changed = true; /* also where there are none: an earlier agent's go */
		status = run(&d);
	}
	if (!status) {
		verdict_names_keep(&d.a);
		host_names_remove(&d.a);
		notify_systemd("STOPPING=1");
		unlink(d.a.own.socket_path);
	}
	agent_free(&d.a);
	close_fd(&d.signals.fd);
	close_fd(&d.timer.fd);
	close_fd(&d.lock_fd);
	return status;
}
