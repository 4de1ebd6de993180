/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Addresses as names: of values that are symbols, and of stacks. */
#include <time.h>

#include "probe.h"
#include "tools/trace/show/show.h"
#include "probes/process/process.h"

#define NAME_SIZE 1024
/* A command has its libraries after less than a millisecond mostly. */
#define COMMAND_LOOKS 20
#define COMMAND_NS    150000

/* A probe, and where in its process it is. */
struct hit {
	uint32_t probe;
	uint64_t address;
};

bool trace_is_stack(const struct fetch_shown *shown)
{
	return shown->type == VALUE_USER_STACK || shown->type == VALUE_KERNEL_STACK;
}

static struct processes *names_of(struct trace *t)
{
	if (!t->names && processes_new(&t->names) < 0)
		t->names = NULL;
	return t->names;
}

void trace_note_process(struct trace *t, uint32_t pid)
{
	struct processes *names = names_of(t);

	if (names)
		processes_note(names, (int)pid);
}

void trace_forget_process(struct trace *t, uint32_t pid)
{
	if (t->names)
		processes_forget(t->names, (int)pid);
}

static const struct fetch_shown *key_with_process(const struct trace *t)
{
	const struct fetch *f = trace_table_fetch(t);

	for (size_t i = 0; i < f->n_keys; i++)
		if (f->keys[i].type == VALUE_USER_STACK || f->keys[i].type == VALUE_SYMBOL)
			return &f->keys[i];
	return NULL;
}

static bool has_process(const struct fetch_shown *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (v[i].type == VALUE_USER_STACK || v[i].type == VALUE_SYMBOL)
			return true;
	return false;
}

/* A short command may have ended when its first record is read. */
void trace_note_command(struct trace *t, int pid)
{
	const struct fetch *f = session_fetch(t->session, 0);
	const struct timespec pause = {.tv_nsec = COMMAND_NS};
	struct processes *names;

	if (!has_process(f->values, f->n_values) && !has_process(f->keys, f->n_keys))
		return;
	names = names_of(t);
	for (int i = 0; names && i < COMMAND_LOOKS; i++) {
		processes_note_again(names, pid);
		nanosleep(&pause, NULL);
	}
}

bool trace_table_has_names(const struct trace *t)
{
	return key_with_process(t) != NULL;
}

/* What a JIT compiler maps comes later than the program. Of many processes, only some are looked at
 * again: the others when they are asked for, if they are still there. */
#define LOOK_AGAIN_MAX 16

void trace_note_table(struct trace *t)
{
	const struct fetch_shown *k = key_with_process(t);
	struct processes *names = names_of(t);
	struct session_table table;
	uint64_t last = 0;
	int looks = 0;

	if (!k || !names || trace_read_table(t, &table) < 0)
		return;
	for (size_t i = 0; i < table.n; i++) {
		uint64_t pid = table.v[i].key[k->word + 1];

		if (pid == last)
			continue;
		last = pid;
		if (looks++ < LOOK_AGAIN_MAX)
			processes_note_again(names, (int)pid);
		else
			processes_note(names, (int)pid);
	}
	session_table_free(&table);
}

void trace_names_free(struct trace *t)
{
	if (t->names)
		processes_free(t->names);
	trace_stacks_free(t);
}

/* What is in the probed file can be named without the process, which may have ended already. */
static int name_near(struct trace *t, const struct hit *hit, uint64_t address,
		     struct place_name *ret)
{
	const struct session_probe *p;
	const char *path;
	struct symbol s;

	if (!hit || hit->probe >= session_n_probes(t->session))
		return -ENOENT;
	p = session_probe(t->session, hit->probe);
	path = session_path(t->session, p);
	if (!path || session_symbolise(t->session, hit->probe, hit->address, &address, &s) < 0)
		return -ENOENT;
	*ret = (struct place_name){.function = s.demangled ? s.demangled : s.name,
				   .offset = address - s.address,
				   .file = path};
	return 0;
}

static void write_name(struct trace *t, uint32_t pid, const struct hit *hit, uint64_t address,
		       bool kernel, bool returns, char to[NAME_SIZE])
{
	struct place_name n = {.offset = address};
	struct processes *names = names_of(t);
	int r = -ENOMEM;

	/* an address to return to may be behind the end of the function that calls */
	if (names && kernel)
		r = processes_kernel(names, address - returns, &n);
	else if (names && pid)
		r = processes_symbolise(names, (int)pid, address - returns, &n);
	if (r < 0 && !kernel)
		r = name_near(t, hit, address - returns, &n);
	if (r == 0)
		n.offset += returns;
	else
		n = (struct place_name){.offset = address};
	place_name_text(&n, to, NAME_SIZE);
}

static void put_name(struct trace *t, const char *name)
{
	if (t->json)
		trace_out_json(&t->out, name, strlen(name));
	else
		trace_out_safe(&t->out, name, strlen(name));
}

/* The upper half of all addresses is the kernel's, on every machine that ax runs on. */
void trace_put_symbol(struct trace *t, uint32_t pid, uint64_t address)
{
	char name[NAME_SIZE];

	write_name(t, pid, NULL, address, address >> 63, false, name);
	put_name(t, name);
}

/* Before a function has made its frame, that of its caller is passed over. Newer kernels see some
 * of these cases themselves (6.11). */
static int add_caller(uint64_t addresses[TRACE_FRAMES], int n, uint64_t caller)
{
	if (!caller || n < 1 || n == TRACE_FRAMES || (n > 1 && addresses[1] == caller))
		return n;
	memmove(&addresses[2], &addresses[1], (size_t)(n - 1) * sizeof(*addresses));
	addresses[1] = caller;
	return n + 1;
}

/* What the kernel has between a place and the programs there, and these themselves. */
static bool is_tracer(const char *function)
{
	static const char *const beginnings[] = {
		"bpf_prog_",	      "bpf_trace_run",	  "__bpf_trace_",    "__traceiter_",
		"perf_trace_",	      "perf_syscall_",	  "perf_call_bpf_",  "trace_call_bpf",
		"kprobe_multi_link_", "kprobe_",	  "kretprobe_",	     "fprobe_",
		"rethook_",	      "arch_rethook_",	  "ftrace_",	     "__ftrace_",
		"function_stack_",    "aggr_pre_handler", "opt_pre_handler", "optimized_callback",
		"exc_int3",	      "asm_exc_int3",	  "do_int3",	     "uprobe_",
		"uretprobe_",	      "__uprobe_",	  "handler_chain",   "handle_swbp",
		"bpf_get_stackid",
	};

	for (size_t i = 0; i < ARRAY_SIZE(beginnings); i++)
		if (starts_with(function, beginnings[i]))
			return true;
	return false;
}

/* How many frames of a call stack of the kernel come before those of the place that is probed. */
static int tracer_frames(struct trace *t, const uint64_t *addresses, int n)
{
	struct processes *names = names_of(t);
	struct place_name name;

	for (int i = 0; names && i < n; i++)
		if (processes_kernel(names, addresses[i] - (i > 0), &name) < 0 ||
		    !is_tracer(name.function))
			return i;
	return 0;
}

/* The kernel goes by frame pointers: a function that keeps something else in that register, as
 * those of the C library do, is followed by whatever that points to. What is behind the last
 * address of code is no caller. Code is not known of a process that ended before it was looked at,
 * and of one of which even the probed place is not known, code came later. */
static int user_frames(struct trace *t, uint32_t pid, const uint64_t *addresses, int n)
{
	struct processes *names = pid ? names_of(t) : NULL;
	int last = n;

	if (n < 1 || !names || !processes_has_code(names, (int)pid, addresses[0]))
		return n;
	while (last > 1 && !processes_has_code(names, (int)pid, addresses[last - 1] - 1))
		last--;
	return last;
}

static int addresses_of(struct trace *t, uint64_t id, uint64_t caller,
			uint64_t addresses[TRACE_FRAMES])
{
	int n = -ENOENT;

	if (id & AX_STACK_COPIED && names_of(t))
		n = trace_copied_stack(t, id, addresses, &id);
	if (n < 0)
		n = session_stack(t->session, id, addresses, TRACE_FRAMES);
	return add_caller(addresses, n, caller);
}

void trace_put_stack(struct trace *t, const struct fetch_shown *shown, uint32_t probe, uint32_t pid,
		     uint64_t id, uint64_t caller, const char *indent)
{
	bool kernel = shown->type == VALUE_KERNEL_STACK;
	uint64_t addresses[TRACE_FRAMES];
	char name[NAME_SIZE];
	int n = addresses_of(t, id, caller, addresses);
	/* a table's line does not say which probe it was, unless there is only one */
	struct hit hit = {.probe = probe, .address = n > 0 ? addresses[0] : 0};
	int first = kernel ? tracer_frames(t, addresses, n) : 0;
	bool known = n > 0 && !kernel && (probe != UINT32_MAX || session_n_probes(t->session) == 1);

	if (known && probe == UINT32_MAX)
		hit.probe = 0;
	if (!kernel)
		n = user_frames(t, pid, addresses, n);
	if (t->json)
		trace_out_char(&t->out, '[');
	else if (n <= 0)
		trace_out_printf(&t->out, "%s(no stack)\n", indent);
	for (int i = first; i < n; i++) {
		write_name(t, pid, known ? &hit : NULL, addresses[i], kernel, i > 0, name);
		trace_out_text(&t->out, !t->json ? indent : i > first ? "," : "");
		put_name(t, name);
		if (!t->json)
			trace_out_char(&t->out, '\n');
	}
	if (t->json)
		trace_out_char(&t->out, ']');
}
