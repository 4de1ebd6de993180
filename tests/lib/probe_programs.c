// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/lib/probe_programs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

char build_dir[] = "/tmp/ax-probe.XXXXXX";

int build_dir_make(void **state)
{
	(void)state;
	return mkdtemp(build_dir) ? 0 : -1;
}

int build_dir_remove(void **state)
{
	char cmd[64];

	(void)state;
	snprintf(cmd, sizeof(cmd), "rm -rf %s", build_dir);
	return system(cmd);
}

void PRINTF(1, 2) build_run(const char *fmt, ...)
{
	char cmd[4096];
	int n = snprintf(cmd, sizeof(cmd), "cd %s && ", build_dir);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(cmd + n, sizeof(cmd) - (size_t)n, fmt, ap);
	va_end(ap);
	if (system(cmd) != 0)
		fail_msg("failed: %s", cmd);
}

void build_source(const char *name, const char *text)
{
	char path[PATH_MAX];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", build_dir, name);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

struct binary *open_built(const char *name)
{
	char path[PATH_MAX];
	struct error e = {0};
	struct binary *b = NULL;

	snprintf(path, sizeof(path), "%s/%s", build_dir, name);
	if (binary_open(path, 0, &b, &e))
		fail_msg("%s", e.text);
	return b;
}

static int remember_symbol(void *arg, const struct symbol *s)
{
	*(struct symbol *)arg = *s;
	return 1;
}

struct symbol symbol_of(struct binary *b, const char *name)
{
	struct error e = {0};
	struct symbol s = {0};

	if (binary_functions(b, name, remember_symbol, &s, &e) != 1)
		fail_msg("%s: %s", name, e.text);
	return s;
}

#ifdef __x86_64__
static uint64_t load_bias(pid_t pid, struct binary *b, uint64_t address, uint64_t offset)
{
	char maps[64], line[PATH_MAX];
	unsigned long long from, to, file_offset;
	uint64_t found = 0;
	FILE *f;

	snprintf(maps, sizeof(maps), "/proc/%d/maps", (int)pid);
	f = fopen(maps, "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%llx-%llx r-xp %llx", &from, &to, &file_offset) == 3 &&
		    strstr(line, binary_path(b)) && offset >= file_offset &&
		    offset - file_offset < to - from)
			found = from + (offset - file_offset) - address;
	}
	fclose(f);
	return found;
}

void stopped_kill(struct stopped *s)
{
	kill(s->pid, SIGKILL);
	assert_int_equal(waitpid(s->pid, NULL, 0), s->pid);
}

/* Until it comes to a breakpoint. Other signals are its own: Go's runtime sends itself SIGURG. */
static int continue_to_trap(pid_t pid)
{
	long signal = 0;
	int status;

	do {
		ptrace(PTRACE_CONT, pid, NULL, signal);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		signal = WIFSTOPPED(status) ? WSTOPSIG(status) : 0;
	} while (signal && signal != SIGTRAP);
	return status;
}

struct stopped stop_at(struct binary *b, uint64_t address, uint64_t offset)
{
	struct stopped s = {.pid = fork()};
	int status;

	assert_true(s.pid >= 0);
	if (!s.pid) {
		/* only the first thread is traced: Go's main stays in it unless it is preempted */
		setenv("GODEBUG", "asyncpreemptoff=1", 1);
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		execl(binary_path(b), binary_path(b), NULL);
		_exit(127);
	}
	assert_int_equal(waitpid(s.pid, &status, 0), s.pid);
	assert_true(WIFSTOPPED(status));
	s.bias = load_bias(s.pid, b, address, offset);
	s.at = address + s.bias;
	s.word = ptrace(PTRACE_PEEKTEXT, s.pid, (void *)s.at, NULL);
	ptrace(PTRACE_POKETEXT, s.pid, (void *)s.at, (void *)((s.word & ~0xffl) | 0xcc));
	status = continue_to_trap(s.pid);
	if (!WIFSTOPPED(status) || WSTOPSIG(status) != SIGTRAP)
		fail_msg("the program did not come to 0x%lx (status %x)", address, status);
	ptrace(PTRACE_GETREGS, s.pid, NULL, &s.regs);
	s.regs.rip--;
	assert_int_equal(s.regs.rip, s.at);
	return s;
}

uint64_t peek(const struct stopped *s, uint64_t address)
{
	return (uint64_t)ptrace(PTRACE_PEEKDATA, s->pid, (void *)address, NULL);
}
#endif
