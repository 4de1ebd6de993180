// SPDX-License-Identifier: GPL-2.0-or-later
/* Registers and memory of a thread that waits. */
#include <elf.h>
#include <fcntl.h>
#include <sys/uio.h>

#include "probes/step/priv.h"

#if defined(__aarch64__)
#define IP_WORD	       32
#define REGISTER_BYTES 272
#else
#define IP_WORD	       16
#define REGISTER_BYTES 216 /* struct user_regs_struct: 21 words of struct pt_regs, and 6 more */
#endif

int step_get_registers(int tid, struct step_registers *ret)
{
	struct iovec v = {.iov_base = ret->v, .iov_len = sizeof(ret->v)};

	*ret = (struct step_registers){0};
	if (ptrace(PTRACE_GETREGSET, tid, NT_PRSTATUS, &v))
		return -errno;
	ret->bytes = v.iov_len;
	return v.iov_len >= REGISTER_BYTES ? 0 : -ENOTSUP;
}

int step_set_registers(int tid, const struct step_registers *r)
{
	struct step_registers copy = *r;
	struct iovec v = {.iov_base = copy.v, .iov_len = r->bytes};

	return ptrace(PTRACE_SETREGSET, tid, NT_PRSTATUS, &v) ? -errno : 0;
}

uint64_t step_ip(const struct step_registers *r)
{
	return r->v[IP_WORD];
}

static struct iovec remote(uint64_t address, size_t len)
{
	void *p;

	memcpy(&p, &address, sizeof(p));
	return (struct iovec){.iov_base = p, .iov_len = len};
}

static int result(ssize_t n, size_t len)
{
	if (n < 0)
		return errno == ESRCH ? -ESRCH : -EFAULT;
	return (size_t)n == len ? 0 : -EFAULT;
}

int step_read(int tid, uint64_t address, void *to, size_t len)
{
	struct iovec own = {.iov_base = to, .iov_len = len}, its = remote(address, len);

	return result(process_vm_readv(tid, &own, 1, &its, 1, 0), len);
}

int step_write(int tid, uint64_t address, const void *from, size_t len)
{
	struct iovec own = {.iov_len = len}, its = remote(address, len);

	memcpy(&own.iov_base, &from, sizeof(from));
	return result(process_vm_writev(tid, &own, 1, &its, 1, 0), len);
}

int step_memory(int tid)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/mem", tid);
	fd = open(path, O_RDWR | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int step_read_memory(int memory, uint64_t address, void *to, size_t len)
{
	return result(pread(memory, to, len, (off_t)address), len);
}

/* The file writes to all that is mapped, as for a debugger. */
static bool may_write(int pid, uint64_t address, size_t len)
{
	struct step_mapping m;

	return step_mapping(pid, address, &m) == 0 && m.writable &&
	       (address + len <= m.to || may_write(pid, m.to, address + len - m.to));
}

int step_write_memory(int memory, int pid, uint64_t address, const void *from, size_t len)
{
	if (!may_write(pid, address, len))
		return -EFAULT;
	return result(pwrite(memory, from, len, (off_t)address), len);
}

int step_mapping(int pid, uint64_t address, struct step_mapping *ret)
{
	autofree char *line = NULL;
	autofile FILE *f = NULL;
	size_t size = 0;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	f = fopen(path, "re");
	while (f && getline(&line, &size, f) >= 0) {
		unsigned long long from, to, offset;
		char rights[8];
		int at = 0;

		line[strcspn(line, "\n")] = 0;
		if (sscanf(line, "%llx-%llx %7s %llx %*s %*s %n", &from, &to, rights, &offset,
			   &at) != 4 ||
		    !at || address < from || address >= to)
			continue;
		*ret = (struct step_mapping){
			.from = from, .to = to, .offset = offset, .writable = rights[1] == 'w'};
		snprintf(ret->path, sizeof(ret->path), "%s", line + at);
		return 0;
	}
	return -ENOENT;
}
