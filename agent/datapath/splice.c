/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Loading splicing's programs, attaching and pinning them, taking over what an earlier agent has
 * pinned: map_<name> and link_ax_splice_ops stand beside the dataplane's pins.
 */
#include <fcntl.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include "datapath/splice_priv.h"
#include "splicing.skel.h"

#define OPS_LINK "link_ax_splice_ops"
#define TOO_OLD	 "before Linux 6.5 connections cannot join while they are open"
#define UNTOLD	 "before Linux 6.3 nobody tells how large messages are"
#define NEEDS	 "Linux 6.5, BTF"
#define WITHOUT	 "connections between apps are not spliced"

static const char *const programs[] = {"ax_splice_ops",	  "ax_splice_msg",   "ax_splice_conns",
				       "ax_splice_join",  "ax_splice_sizes", "ax_splice_members",
				       "ax_splice_agent", "ax_splice_stuck"};

/* What outlives the agent. Members go on with the program that they joined with: its events are to
 * be read by whoever comes next. */
static const char *const kept[] = {"splice_members", "splice_ends",  "splice_ctl",
				   "splice_apps",    "splice_count", "splice_events"};

/* With this function came the iterator that holds sockets in a way in which maps can take them. */
static bool can_join(void)
{
	struct btf *btf = btf__load_vmlinux_btf();
	bool found = btf && btf__find_by_name_kind(btf, "bpf_sock_destroy", BTF_KIND_FUNC) > 0;

	btf__free(btf);
	return found;
}

int datapath_splice_supported(struct error *e)
{
	return can_join() ? 0 : error_set(e, -EOPNOTSUPP, "%s", TOO_OLD);
}

/* --- loading --- */

static struct bpf_map *map_of(struct splice *s, const char *name)
{
	return bpf_object__find_map_by_name(s->skel->obj, name);
}

static void pin_path(const struct datapath *dp, const char *name, char path[PIN_PATH_MAX])
{
	snprintf(path, PIN_PATH_MAX, "%s/map_%s", dp->pin_dir, name);
}

static int reuse_pinned(struct splice *s, const char *name, struct error *e)
{
	struct bpf_map *map = map_of(s, name);
	struct bpf_map_info info = {0};
	uint32_t len = sizeof(info);
	char path[PIN_PATH_MAX];
	autoclose int fd = -1;
	int r;

	pin_path(s->dp, name, path);
	fd = bpf_obj_get(path);
	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0 || bpf_obj_get_info_by_fd(fd, &info, &len))
		return error_set(e, -errno, "the pinned map %s cannot be read: %s", path,
				 strerror(errno));
	if (info.value_size != bpf_map__value_size(map) || info.key_size != bpf_map__key_size(map))
		return error_set(e, -EPROTO,
				 "the pinned map %s has another version's layout: stop the apps "
				 "and run 'ax agent --flush' once",
				 path);
	r = bpf_map__reuse_fd(map, fd);
	return r ? error_set(e, r, "the pinned map %s cannot be reused: %s", path, strerror(-r))
		 : 0;
}

static int reuse_maps(struct splice *s, struct error *e)
{
	int r;

	for (size_t i = 0; i < ARRAY_SIZE(kept); i++) {
		r = reuse_pinned(s, kept[i], e);
		if (r)
			return r;
	}
	r = bpf_map__reuse_fd(s->skel->maps.vips, s->dp->map[MAP_VIPS]);
	r = r ? r : bpf_map__reuse_fd(s->skel->maps.asked, s->dp->map[MAP_ASKED]);
	return r ? error_set(e, r, "the dataplane's maps cannot be used for splicing: %s",
			     strerror(-r))
		 : 0;
}

int splice_object_open(struct splice *s, struct error *e)
{
	datapath_log_libbpf();
	s->skel = splicing__open();
	if (!s->skel)
		return error_set(e, -errno, "libbpf cannot open splicing's programs: %s",
				 strerror(errno));
	bpf_program__set_autoload(s->skel->progs.ax_splice_sizes, splice_sizes_told());
	return 0;
}

int splice_object_load(struct splice *s, struct error *e)
{
	int r = splicing__load(s->skel);

	return r ? error_set(e, r, "the kernel refuses to splice (%s): see 'ax doctor'",
			     datapath_last_word()[0] ? datapath_last_word() : strerror(-r))
		 : 0;
}

static int load(struct splice *s, uint32_t members_max, struct error *e)
{
	int r = splice_object_open(s, e);

	if (r)
		return r;
	bpf_map__set_max_entries(s->skel->maps.splice_tuples, 1); /* the gate's */
	if (members_max)
		bpf_map__set_max_entries(s->skel->maps.splice_members, members_max);
	r = reuse_maps(s, e);
	return r ? r : splice_object_load(s, e);
}

/* --- attaching --- */

int splice_attach(struct splice *s, struct error *e)
{
	int members = bpf_map__fd(s->skel->maps.splice_members);
	int msg = bpf_program__fd(s->skel->progs.ax_splice_msg);

	/* in the place of an earlier agent's, for those that join from now on */
	if (bpf_prog_attach(msg, members, BPF_SK_MSG_VERDICT, 0))
		return error_set(e, -errno, "ax_splice_msg cannot be attached: %s",
				 strerror(errno));
	s->conns = bpf_program__attach_iter(s->skel->progs.ax_splice_conns, NULL);
	if (s->conns)
		s->join = bpf_program__attach_iter(s->skel->progs.ax_splice_join, NULL);
	return s->join ? 0
		       : error_set(e, -errno, "splicing's iterators cannot be attached: %s",
				   strerror(errno));
}

/* Before anything joins. */
static int attach_stuck(struct splice *s, struct error *e)
{
	s->stuck = bpf_program__attach(s->skel->progs.ax_splice_stuck);
	return s->stuck ? 0
			: error_set(e, -errno,
				    "nobody would tell of members that get no memory: "
				    "ax_splice_stuck cannot be attached: %s",
				    strerror(errno));
}

static int pin_maps(struct splice *s)
{
	for (size_t i = 0; i < ARRAY_SIZE(kept); i++) {
		char path[PIN_PATH_MAX];

		pin_path(s->dp, kept[i], path);
		if (bpf_obj_pin(bpf_map__fd(map_of(s, kept[i])), path) && errno != EEXIST)
			return -errno;
	}
	return 0;
}

/* Our program under the pinned link, or a new link. */
static int attach_ops(struct splice *s)
{
	struct bpf_program *p = s->skel->progs.ax_splice_ops;
	autoclose int cgroup = -1;
	char path[PIN_PATH_MAX];
	struct bpf_link *link;
	int r;

	snprintf(path, sizeof(path), "%s/" OPS_LINK, s->dp->pin_dir);
	link = bpf_link__open(path);
	if (link) {
		r = bpf_link__update_program(link, p);
		bpf_link__destroy(link);
		if (!r)
			return 0;
		if (unlink(path) < 0) /* its cgroup is gone */
			return -errno;
	}
	cgroup = open(s->dp->cgroup_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (cgroup < 0)
		return -errno;
	link = bpf_program__attach_cgroup(p, cgroup);
	if (!link)
		return -errno;
	r = bpf_link__pin(link, path);
	bpf_link__destroy(link);
	return r;
}

/* The pin is all that holds it. */
static int detach_ops(const struct datapath *dp)
{
	char path[PIN_PATH_MAX];

	snprintf(path, sizeof(path), "%s/" OPS_LINK, dp->pin_dir);
	return unlink(path) < 0 && errno != ENOENT ? -errno : 0;
}

static int ctl_get(struct splice *s, struct ax_splice_ctl *ret)
{
	uint32_t zero = 0;

	return bpf_map_lookup_elem(bpf_map__fd(s->skel->maps.splice_ctl), &zero, ret) ? -errno : 0;
}

int splice_ctl_set(struct splice *s, bool redirect)
{
	struct ax_splice_ctl c;
	uint32_t zero = 0;
	int r = ctl_get(s, &c);

	if (r)
		return r;
	c.redirect = redirect;
	c.told_new = c.told_unread = 0;
	return bpf_map_update_elem(bpf_map__fd(s->skel->maps.splice_ctl), &zero, &c, BPF_ANY)
		       ? -errno
		       : 0;
}

/* What the programs told a dead agent nobody will read. */
static int listen_anew(struct splice *s)
{
	struct ax_splice_ctl c;
	int r = ctl_get(s, &c);

	return r ? r : splice_ctl_set(s, c.redirect);
}

int datapath_splice_open(struct datapath *dp, uint32_t members_max, struct splice **ret,
			 struct error *e)
{
	struct splice *s;
	int r = datapath_splice_supported(e);

	if (r)
		return r;
	s = calloc(1, sizeof(*s));
	if (!s)
		return error_set(e, -ENOMEM, "out of memory");
	s->dp = dp;
	r = load(s, members_max, e);
	r = r ? r : splice_attach(s, e);
	r = r ? r : attach_stuck(s, e);
	if (!r) {
		r = pin_maps(s);
		r = r ? r : listen_anew(s);
		r = r ? r : attach_ops(s);
		if (r)
			error_set(e, r, "splicing cannot be pinned in %s: %s", dp->pin_dir,
				  strerror(-r));
	}
	if (r)
		datapath_splice_close(s);
	else
		*ret = s;
	return r;
}

void datapath_splice_close(struct splice *s)
{
	if (!s)
		return;
	ring_buffer__free(s->ring);
	bpf_link__destroy(s->conns);
	bpf_link__destroy(s->join);
	bpf_link__destroy(s->sizes);
	bpf_link__destroy(s->stuck);
	splicing__destroy(s->skel);
	free(s);
}

int datapath_splice_stop(struct datapath *dp)
{
	struct ax_splice_ctl off = {0};
	char path[PIN_PATH_MAX];
	autoclose int fd = -1;
	uint32_t zero = 0;
	int r = detach_ops(dp);

	if (r)
		return r;
	pin_path(dp, "splice_ctl", path);
	fd = bpf_obj_get(path);
	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	return bpf_map_update_elem(fd, &zero, &off, BPF_ANY) ? -errno : 0;
}

int datapath_splice_doctor(int (*report)(void *arg, const struct feature_report *f), void *arg)
{
	bool joins = can_join();
	int r = 0;

	datapath_log_libbpf();
	for (size_t i = 0; i < ARRAY_SIZE(programs) && !r; i++) {
		struct feature_report f = {
			.name = programs[i] + strlen("ax_"), .cost = WITHOUT, .needs = NEEDS};
		struct splicing *skel = splicing__open();

		if (streq(programs[i], "ax_splice_sizes"))
			f.cost = "streams are not spliced";

		if (!skel)
			return -errno;
		datapath_try(skel->obj, programs[i], &f);
		splicing__destroy(skel);
		if (streq(programs[i], "ax_splice_join") && f.on && !joins) {
			f.on = false;
			snprintf(f.why, sizeof(f.why), "%s", TOO_OLD);
		}
		if (streq(programs[i], "ax_splice_sizes") && !f.on && !splice_sizes_told())
			snprintf(f.why, sizeof(f.why), "%s", UNTOLD);
		r = report(arg, &f);
	}
	return r;
}

/* --- what the agent says --- */

int datapath_splice_app_set(struct splice *s, uint32_t app, bool on)
{
	int fd = bpf_map__fd(s->skel->maps.splice_apps);
	uint32_t one = 1;

	if (on)
		return bpf_map_update_elem(fd, &app, &one, BPF_ANY) ? -errno : 0;
	return bpf_map_delete_elem(fd, &app) && errno != ENOENT ? -errno : 0;
}

int datapath_splice_apps_clear(struct splice *s)
{
	int fd = bpf_map__fd(s->skel->maps.splice_apps);
	uint32_t app;

	while (!bpf_map_get_next_key(fd, NULL, &app))
		if (bpf_map_delete_elem(fd, &app) && errno != ENOENT)
			return -errno;
	return errno == ENOENT ? 0 : -errno;
}

/* The members' programs see whether this process lives. */
static int become_agent(struct splice *s)
{
	LIBBPF_OPTS(bpf_test_run_opts, o);
	int r = bpf_prog_test_run_opts(bpf_program__fd(s->skel->progs.ax_splice_agent), &o);

	return r ? -errno : (int)o.retval;
}

int datapath_splice_redirect(struct splice *s, bool on)
{
	int r = on ? become_agent(s) : 0;

	return r ? r : splice_ctl_set(s, on);
}

/* --- events --- */

static int on_event(void *ctx, void *data, size_t size)
{
	struct splice *s = ctx;

	if (size >= sizeof(s->told))
		s->told |= *(const uint32_t *)data;
	return 0;
}

int datapath_splice_events_fd(struct splice *s)
{
	if (!s->ring)
		s->ring = ring_buffer__new(bpf_map__fd(s->skel->maps.splice_events), on_event, s,
					   NULL);
	return s->ring ? ring_buffer__epoll_fd(s->ring) : -errno;
}

int datapath_splice_events_read(struct splice *s)
{
	int r;

	if (!s->ring)
		return 0;
	s->told = 0;
	r = ring_buffer__consume(s->ring);
	return r < 0 ? r : (int)s->told;
}

int datapath_splice_rest(struct splice *s)
{
	return detach_ops(s->dp);
}

/* What was established until it is attached, the look that follows sees. */
int datapath_splice_listen(struct splice *s)
{
	int r = listen_anew(s);

	return r ? r : attach_ops(s);
}
