/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Running iterators over sockets. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "datapath/priv.h"
#include "net/netlink.h"

#define RECORDS 32

static int open_iter(void *arg)
{
	int fd = bpf_iter_create(*(int *)arg);

	return fd < 0 ? -errno : fd;
}

int datapath_iter_each(const struct bpf_link *iter, int netns_fd, size_t size,
		       int (*f)(void *arg, const void *record), void *arg)
{
	autofree char *records = NULL;
	autoclose int fd = -1;
	size_t have = 0;
	int link;

	if (!iter)
		return -EOPNOTSUPP;
	link = bpf_link__fd(iter);
	records = malloc(RECORDS * size);
	if (!records)
		return -ENOMEM;
	/* the iterator keeps the namespace in which it was opened */
	fd = netns_fd < 0 ? open_iter(&link) : netns_call(netns_fd, open_iter, &link);
	if (fd < 0)
		return fd;
	for (;;) {
		ssize_t n = read(fd, records + have, RECORDS * size - have);
		size_t whole;

		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n <= 0)
			return n < 0 ? -errno : 0;
		have += (size_t)n;
		whole = have / size;
		for (size_t i = 0; i < whole; i++) {
			int r = f(arg, records + i * size);

			if (r)
				return r;
		}
		have -= whole * size;
		memmove(records, records + whole * size, have);
	}
}
