// SPDX-License-Identifier: GPL-2.0-or-later
#include <elf.h>
#include <sys/uio.h>

#include "probes/jit/priv.h"

#if defined(__x86_64__)
#define MACHINE EM_X86_64
#elif defined(__aarch64__)
#define MACHINE EM_AARCH64
#else
#error "the number of this architecture in ELF files is not known"
#endif

static int put_all(struct jitdump_writer *w, struct iovec *v, int n)
{
	while (n) {
		ssize_t done = writev(w->fd, v, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return done < 0 ? -errno : -EIO;
		w->size += (uint64_t)done;
		while (n && (size_t)done >= v->iov_len) {
			done -= (ssize_t)v->iov_len;
			v++;
			n--;
		}
		if (n) {
			v->iov_base = (char *)v->iov_base + done;
			v->iov_len -= (size_t)done;
		}
	}
	return 0;
}

int jitdump_begin(struct jitdump_writer *w, int fd, uint32_t pid, uint64_t time_ns)
{
	struct jitdump_header h = {.magic = JITDUMP_MAGIC,
				   .version = JITDUMP_VERSION,
				   .total_size = sizeof(h),
				   .machine = MACHINE,
				   .pid = pid,
				   .time_ns = time_ns};
	struct iovec v = {&h, sizeof(h)};

	*w = (struct jitdump_writer){.fd = fd};
	return put_all(w, &v, 1);
}

int jitdump_put(struct jitdump_writer *w, struct jitdump_code *c, const char *name,
		const void *bytes)
{
	size_t name_len = strlen(name) + 1;
	struct jitdump_load l = {
		.p = {.id = JITDUMP_LOAD,
		      .total_size = (uint32_t)(sizeof(l) + name_len + c->size),
		      .time_ns = c->time_ns},
		.pid = c->pid,
		.tid = c->tid,
		.vma = c->address,
		.address = c->address,
		.size = c->size,
		.index = w->n,
	};
	struct iovec v[] = {{&l, sizeof(l)},
			    {(void *)(uintptr_t)name, name_len},
			    {(void *)(uintptr_t)bytes, c->size}};
	int r;

	if (c->size > JIT_CODE_MAX)
		return -EFBIG;
	c->index = w->n++;
	c->offset = w->size + sizeof(l) + name_len;
	r = put_all(w, v, ARRAY_SIZE(v));
	return r;
}
