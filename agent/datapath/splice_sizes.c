/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How large the messages of connections are. */
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include "datapath/splice_priv.h"
#include "splicing.skel.h"

bool splice_sizes_told(void)
{
	struct btf *btf = btf__load_vmlinux_btf();
	bool found = btf && btf__find_by_name_kind(btf, "btf_trace_sock_send_length",
						   BTF_KIND_TYPEDEF) > 0;

	btf__free(btf);
	return found;
}

static void forget(int fd)
{
	uint64_t cookie;

	while (bpf_map_get_next_key(fd, NULL, &cookie) == 0)
		if (bpf_map_delete_elem(fd, &cookie))
			return;
}

int datapath_splice_sizes_begin(struct splice *s, const uint64_t *cookies, size_t n)
{
	int fd = bpf_map__fd(s->skel->maps.splice_sizes);

	datapath_splice_sizes_end(s);
	if (!bpf_program__autoload(s->skel->progs.ax_splice_sizes))
		return -EOPNOTSUPP;
	forget(fd);
	for (size_t i = 0; i < n && i < AX_SPLICE_SIZES_MAX; i++) {
		struct ax_splice_size none = {0};

		if (bpf_map_update_elem(fd, &cookies[i], &none, BPF_ANY))
			return -errno;
	}
	s->sizes = bpf_program__attach(s->skel->progs.ax_splice_sizes);
	return s->sizes ? 0 : -errno;
}

struct ax_splice_size datapath_splice_size(struct splice *s, uint64_t cookie)
{
	struct ax_splice_size size = {0};

	if (bpf_map_lookup_elem(bpf_map__fd(s->skel->maps.splice_sizes), &cookie, &size))
		return (struct ax_splice_size){0};
	return size;
}

void datapath_splice_sizes_end(struct splice *s)
{
	bpf_link__destroy(s->sizes);
	s->sizes = NULL;
}
