// SPDX-License-Identifier: GPL-2.0-or-later
#include <linux/perf_event.h>
#include <sys/syscall.h>

#include "probes/watch/hypercall.h"
#include "probes/watch/priv.h"
#include "hypercall.skel.h"

int watch_hypercall_load(const struct watch_options *o, const struct ax_hypercall_config *wanted,
			 struct watch **ret, struct error *e)
{
	struct hypercall *skel = hypercall__open();

	if (!skel)
		return watch_not_opened("hypercall", e);
	memcpy((void *)&skel->rodata->wanted, wanted, sizeof(*wanted));
	bpf_program__set_autoload(skel->progs.ax_kvm_step, false);
	bpf_program__set_autoload(skel->progs.ax_kvm_hypercall, !wanted->all || wanted->live);
	return watch_load(&(struct watch_parts){.skel = skel,
						.skeleton = skel->skeleton,
						.config = (void *)&skel->rodata->watch},
			  o, ret, e);
}

/* By a perf event of one processor, which makes the program see those of all. */
static int attach(struct bpf_program *p, uint32_t id, struct bpf_link **ret)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_TRACEPOINT,
		.size = sizeof(attr),
		.config = id,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC), r;

	if (fd < 0)
		return -errno;
	*ret = bpf_program__attach_perf_event(p, fd);
	if (*ret)
		return 0;
	r = -errno;
	close(fd);
	return r;
}

int watch_hypercall_attach(struct watch *w, const struct watch_hypercall_places *p, struct error *e)
{
	struct hypercall *skel = watch_skeleton(w);
	libbpf_print_fn_t print = watch_quiet();
	int r = attach(skel->progs.ax_kvm_entry, p->entry, &skel->links.ax_kvm_entry);

	if (r == 0 && bpf_program__autoload(skel->progs.ax_kvm_hypercall))
		r = attach(skel->progs.ax_kvm_hypercall, p->hypercall,
			   &skel->links.ax_kvm_hypercall);
	if (r == 0)
		r = attach(skel->progs.ax_kvm_exit, p->exit, &skel->links.ax_kvm_exit);
	libbpf_set_print(print);
	return r < 0 ? error_set(e, r, "the tracepoints of KVM cannot be attached to: %s",
				 strerror(-r))
		     : 0;
}

ssize_t watch_hypercall_table(struct watch *w, struct watch_hypercall_row **ret, struct error *e)
{
	int map = bpf_object__find_map_fd_by_name(watch_object(w), "hypercalls");
	struct watch_hypercall_row *v = NULL;
	struct ax_hypercall_key key;
	void *last = NULL;
	size_t n = 0, size = 0;

	while (n < WATCH_HYPERCALL_ROWS && bpf_map_get_next_key(map, last, &key) == 0) {
		if (n == size) {
			struct watch_hypercall_row *more;

			size = size ? 2 * size : 64;
			more = realloc(v, size * sizeof(*v));
			if (!more) {
				free(v);
				return error_set(e, -ENOMEM, "out of memory");
			}
			v = more;
		}
		v[n].key = key;
		if (bpf_map_lookup_elem(map, &key, &v[n].cell) == 0)
			n++;
		last = &key;
	}
	*ret = v;
	return (ssize_t)n;
}
