// SPDX-License-Identifier: GPL-2.0-or-later
/* The directory of ax trace jit: jit-PID.dump, which perf knows, and index.jsonl. */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "tools/trace/jit/jit.h"

static int make_file(const struct jit_dir *d, const char *path, const char *name, struct error *e)
{
	int fd = openat(d->fd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);

	return fd >= 0 ? fd
		       : error_set(e, -errno, "'%.200s/%s' cannot be made: %s", path, name,
				   strerror(errno));
}

int jit_dir_make(struct jit_dir *d, const char *path, struct error *e)
{
	char name[32];
	int fd, r;

	if (mkdir(path, 0700) < 0)
		return errno == EEXIST
			       ? error_set(e, -EEXIST,
					   "'%.200s' is there already: -o names a directory that "
					   "is to be made",
					   path)
			       : error_set(e, -errno, "the directory '%.200s' cannot be made: %s",
					   path, strerror(errno));
	d->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (d->fd < 0)
		return error_set(e, -errno, "'%.200s' cannot be opened: %s", path, strerror(errno));
	fd = make_file(d, path, "index.jsonl", e);
	if (fd < 0)
		return fd;
	r = trace_out_open(&d->index, fd);
	if (r < 0)
		return error_set(e, r, "out of memory");
	snprintf(name, sizeof(name), "jit-%d.dump", (int)getpid());
	d->dump_fd = make_file(d, path, name, e);
	if (d->dump_fd < 0)
		return d->dump_fd;
	r = jitdump_begin(&d->dump, d->dump_fd, (uint32_t)getpid(), time_mono_ns());
	if (r < 0)
		return error_set(e, r, "'%.200s/%s' cannot be written: %s", path, name,
				 strerror(-r));
	/* by which perf record learns of the file, as from other programs that write one */
	d->marker = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, d->dump_fd, 0);
	if (d->marker == MAP_FAILED)
		d->marker = NULL;
	return 0;
}

void jit_dir_close(struct jit_dir *d)
{
	if (d->marker)
		munmap(d->marker, 4096);
	d->marker = NULL;
	if (d->index.buf)
		trace_out_close(&d->index);
	close_fd(&d->dump_fd);
	close_fd(&d->fd);
}

/* --- lines --- */

void jit_dir_flush(struct jit_dir *d)
{
	d->index_size += d->index.n;
	trace_out_flush(&d->index);
}

/* A line is never flushed in its middle, so that its bytes are counted. */
void jit_dir_begin(struct jit_dir *d, const char *event, uint64_t time_ns, uint32_t pid,
		   uint32_t tid)
{
	if (d->index.n > TRACE_OUT_SIZE / 2)
		jit_dir_flush(d);
	d->full = d->index_size + d->index.n >= d->index_max;
	d->left_out += d->full;
	if (!d->full)
		trace_out_printf(&d->index,
				 "{\"time_ns\":%llu,\"event\":\"%s\",\"pid\":%u,\"tid\":%u",
				 (unsigned long long)time_ns, event, pid, tid);
}

void jit_dir_number(struct jit_dir *d, const char *key, uint64_t v)
{
	if (!d->full)
		trace_out_printf(&d->index, ",\"%s\":%llu", key, (unsigned long long)v);
}

void jit_dir_hex(struct jit_dir *d, const char *key, uint64_t v)
{
	if (!d->full)
		trace_out_printf(&d->index, ",\"%s\":\"0x%llx\"", key, (unsigned long long)v);
}

void jit_dir_text(struct jit_dir *d, const char *key, const char *v)
{
	if (d->full)
		return;
	trace_out_printf(&d->index, ",\"%s\":", key);
	trace_out_json(&d->index, v, strlen(v));
}

void jit_dir_end(struct jit_dir *d)
{
	if (!d->full)
		trace_out_text(&d->index, "}\n");
}
