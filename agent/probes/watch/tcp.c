// SPDX-License-Identifier: GPL-2.0-or-later
#include "probes/watch/priv.h"
#include "probes/watch/tcp.h"
#include "tcp.skel.h"

/* What cannot be used is no failure: connections then show where they went to. */
static void reuse_asked(struct tcp *skel, const char *path)
{
	autoclose int fd = path ? bpf_obj_get(path) : -1;

	if (fd >= 0)
		bpf_map__reuse_fd(skel->maps.asked, fd);
}

int watch_tcp_load(const struct watch_options *o, const struct watch_tcp_options *x,
		   struct watch **ret, struct error *e)
{
	struct tcp *skel = tcp__open();

	if (!skel)
		return watch_not_opened("tcp", e);
	skel->rodata->wanted.live = x->live;
	reuse_asked(skel, x->asked);
	bpf_program__set_autoattach(skel->progs.ax_tcp_before, false);
	bpf_program__set_autoattach(skel->progs.ax_tcp_open, false);
	bpf_program__set_autoattach(skel->progs.ax_tcp_orphans, false);
	return watch_load(&(struct watch_parts){.skel = skel,
						.skeleton = skel->skeleton,
						.config = (void *)&skel->rodata->watch},
			  o, ret, e);
}

static int iterate(struct watch *w, const char *program, struct error *e)
{
	struct bpf_program *p = bpf_object__find_program_by_name(watch_object(w), program);
	struct bpf_link *link = bpf_program__attach_iter(p, NULL);
	autoclose int fd = link ? bpf_iter_create(bpf_link__fd(link)) : -1;
	char buf[64];
	ssize_t n = fd < 0 ? -1 : 1;
	int err = errno;

	while (n > 0 || (n < 0 && fd >= 0 && (err == EAGAIN || err == EINTR))) {
		n = read(fd, buf, sizeof(buf));
		err = errno;
	}
	bpf_link__destroy(link);
	return n < 0 ? error_set(e, -err, "the sockets of processes cannot be read: %s",
				 strerror(err))
		     : 0;
}

int watch_tcp_before(struct watch *w, struct error *e)
{
	return iterate(w, "ax_tcp_before", e);
}

int watch_tcp_open(struct watch *w, struct error *e)
{
	int r = iterate(w, "ax_tcp_open", e);

	return r < 0 ? r : iterate(w, "ax_tcp_orphans", e);
}
