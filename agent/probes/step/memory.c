// SPDX-License-Identifier: GPL-2.0-or-later
/* Registers and memory of a thread that waits. */
#include <elf.h>
#include <fcntl.h>
#include <sys/uio.h>

#include "probes/step/priv.h"

#if defined(__aarch64__)
#define IP_WORD	       32
#define REGISTER_BYTES 272
#define VECTORS_OFFSET 0 /* in struct user_fpsimd_state */
#else
#define IP_WORD	       16
#define REGISTER_BYTES 216 /* struct user_regs_struct: 21 words of struct pt_regs, and 6 more */
#define VECTORS_OFFSET 160 /* in struct user_fpregs_struct */
#endif
#define VECTOR_BYTES (STEP_VECTORS * 16)
_Static_assert(REGISTER_BYTES <= STEP_VECTORS_AT * sizeof(uint64_t), "vectors are behind them");

static void get_vectors(int tid, struct step_registers *ret)
{
	char state[VECTORS_OFFSET + VECTOR_BYTES];
	struct iovec v = {.iov_base = state, .iov_len = sizeof(state)};

	if (ptrace(PTRACE_GETREGSET, tid, NT_PRFPREG, &v) == 0 && v.iov_len == sizeof(state))
		memcpy(&ret->v[STEP_VECTORS_AT], state + VECTORS_OFFSET, VECTOR_BYTES);
}

int step_get_registers(int tid, struct step_registers *ret)
{
	struct iovec v = {.iov_base = ret->v, .iov_len = STEP_VECTORS_AT * sizeof(ret->v[0])};

	*ret = (struct step_registers){0};
	if (ptrace(PTRACE_GETREGSET, tid, NT_PRSTATUS, &v))
		return -errno;
	ret->bytes = v.iov_len;
	if (v.iov_len < REGISTER_BYTES)
		return -ENOTSUP;
	get_vectors(tid, ret);
	return 0;
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

int step_mappings(int pid, int (*f)(void *arg, const struct step_mapping *m), void *arg)
{
	autofree char *line = NULL;
	autofile FILE *maps = NULL;
	size_t size = 0;
	char path[64];
	int r = 0;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	maps = fopen(path, "re");
	while (maps && r == 0 && getline(&line, &size, maps) >= 0) {
		unsigned long long from, to, offset;
		struct step_mapping m;
		char rights[8];
		int at = 0;

		line[strcspn(line, "\n")] = 0;
		if (sscanf(line, "%llx-%llx %7s %llx %*s %*s %n", &from, &to, rights, &offset,
			   &at) != 4 ||
		    !at)
			continue;
		m = (struct step_mapping){.from = from,
					  .to = to,
					  .offset = offset,
					  .writable = rights[1] == 'w',
					  .executable = rights[2] == 'x'};
		snprintf(m.path, sizeof(m.path), "%s", line + at);
		r = f(arg, &m);
	}
	return r;
}

struct search {
	uint64_t address;
	struct step_mapping *ret;
};

static int on_mapping(void *arg, const struct step_mapping *m)
{
	const struct search *s = arg;

	if (s->address < m->from || s->address >= m->to)
		return 0;
	*s->ret = *m;
	return 1;
}

int step_mapping(int pid, uint64_t address, struct step_mapping *ret)
{
	struct search s = {address, ret};

	return step_mappings(pid, on_mapping, &s) ? 0 : -ENOENT;
}
