// SPDX-License-Identifier: GPL-2.0-or-later
#include <inttypes.h>

#include "tools/trace/ready/scripts.h"

/* What is counted apart, before other keys. */
static const char *whose(const struct tally_view *v)
{
	return v->by == AX_TALLY_PROCESS ? "pid comm " : v->by == AX_TALLY_APP ? "app " : "";
}

/* --- system calls --- */

void script_syscalls(const struct tally_view *v, FILE *f)
{
	const char *who = whose(v);

	fputs("tracepoint:raw_syscalls:sys_enter {\n"
	      "\tset thread.call = id + 1;\n"
	      "\tset thread.since = nsecs\n"
	      "}\n"
	      "tracepoint:raw_syscalls:sys_exit if thread.call {\n",
	      f);
	fprintf(f, "\tstats nsecs-thread.since by %scall=(thread.call-1):syscall as calls;\n", who);
	if (v->hist)
		fprintf(f,
			"\t"
			"hist nsecs-thread.since by %scall=(thread.call-1):syscall as times;\n",
			who);
	fprintf(f,
		"\tcount by %scall=(thread.call-1):syscall ret as errors if ret < 0 && ret >= "
		"-4095;\n",
		who);
	fputs("\tset thread.call = 0\n}\n", f);
}

/* --- signals --- */

/* System calls that send signals, and their arguments. */
static const struct {
	const char *name, *to;
} senders[] = {
	{"kill", "args.pid"},
	{"tkill", "args.pid"},
	{"tgkill", "tgid"},
	{"rt_sigqueueinfo", "args.pid"},
	{"rt_tgsigqueueinfo", "tgid"},
	{"pidfd_send_signal", "pidfd"},
};

static void refused_signals(int signal, FILE *f)
{
	for (size_t i = 0; i < ARRAY_SIZE(senders); i++) {
		fprintf(f, "tracepoint:syscalls:sys_enter_%s ", senders[i].name);
		if (signal)
			fprintf(f, "if sig == %d ", signal);
		fprintf(f,
			"{\n\tset thread.sig = sig;\n\tset thread.to = %s\n}\n"
			"tracepoint:syscalls:sys_exit_%s {\n"
			"\twatch sig=thread.sig to=thread.to:s32 ret if ret < 0 && thread.sig;\n"
			"\tset thread.sig = 0\n}\n",
			senders[i].to, senders[i].name);
	}
}

void script_signals(const struct ready *r, int signal, bool failed, FILE *f)
{
	const char *and = "";

	if (r->args.command)
		fputs("# what others send to the command is not seen by this\n", f);
	fprintf(f, "tracepoint:signal:signal_generate%s", r->whom.n ? " anywhere" : "");
	if (signal || r->whom.n)
		fputs(" if ", f);
	if (signal) {
		fprintf(f, "sig == %d", signal);
		and = " && ";
	}
	for (size_t i = 0; i < r->whom.n; i++)
		fprintf(f, "%spid == %u || args.pid == %u",
			i	 ? " || "
			: signal ? " && ("
				 : "",
			r->whom.v[i], r->whom.v[i]);
	fputs(r->whom.n && *and? ") {\n" : " {\n", f);
	fputs("\twatch sig code result sender=pid from=comm to=args.pid receiver=args.comm\n}\n",
	      f);
	if (failed)
		refused_signals(signal, f);
}

/* --- files --- */

#define FILE_OF(fd) "$task->files->fdt->fd[" fd "]"
#define REGULAR(fd) "(" FILE_OF(fd) "->f_inode->i_mode & 0xf000) == 0x8000"

static const struct {
	const char *name, *reads, *writes; /* their descriptors; NULL: it does not */
} ways[] = {
	{"read", "fd", NULL},
	{"pread64", "fd", NULL},
	{"readv", "fd", NULL},
	{"preadv", "fd", NULL},
	{"preadv2", "fd", NULL},
	{"write", NULL, "fd"},
	{"pwrite64", NULL, "fd"},
	{"writev", NULL, "fd"},
	{"pwritev", NULL, "fd"},
	{"pwritev2", NULL, "fd"},
	{"sendfile64", "in_fd", "out_fd"},
	{"splice", "fd_in", "fd_out"},
	{"copy_file_range", "fd_in", "fd_out"},
};
#if defined(__aarch64__)
static const char *const opens[] = {"openat", "openat2"};
#else
static const char *const opens[] = {"open", "creat", "openat", "openat2"};
#endif

static void begin_way(const char *call, const char *way, const char *fd, bool all, FILE *f)
{
	fprintf(f, "tracepoint:syscalls:sys_enter_%s", call);
	if (!all)
		fprintf(f, " if (" FILE_OF("%s") "->f_inode->i_mode & 0xf000) == 0x8000", fd);
	fprintf(f, " {\n\tset thread.%s = %s + 1;\n\tset thread.since = nsecs\n}\n", way, fd);
}

/* The file by its device and number, with the last part of its name. */
static void put_file(const struct tally_view *v, const char *fd, FILE *f)
{
	static const char *const parts[] = {"file", "device", "inode"};
	static const char *const members[] = {"->f_path.dentry->d_name.name:string",
					      "->f_inode->i_sb->s_dev", "->f_inode->i_ino"};

	/* (a key has four parts) */
	fputs(v->by == AX_TALLY_PROCESS ? "pid" : v->by == AX_TALLY_APP ? "app" : "", f);
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		fprintf(f, "%s%s=" FILE_OF("%s") "%s", i || v->by ? " " : "", parts[i], fd,
			members[i]);
}

static void end_way(const struct tally_view *v, const char *way, FILE *f)
{
	char fd[32];

	snprintf(fd, sizeof(fd), "thread.%s-1", way);
	fprintf(f, "tracepoint:raw_syscalls:sys_exit if thread.%s {\n\tstats ret by ", way);
	put_file(v, fd, f);
	fprintf(f, " as %s if ret >= 0;\n\tstats nsecs-thread.since by ", way);
	put_file(v, fd, f);
	fputs(" as times if ret >= -511;\n\tcount by ", f);
	put_file(v, fd, f);
	fprintf(f, " as failed if ret < 0 && ret >= -511;\n\tset thread.%s = 0\n}\n", way);
}

void script_files(const struct tally_view *v, bool all, FILE *f)
{
	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		if (ways[i].reads)
			begin_way(ways[i].name, "reads", ways[i].reads, all, f);
		if (ways[i].writes)
			begin_way(ways[i].name, "writes", ways[i].writes, all, f);
	}
	end_way(v, "reads", f);
	end_way(v, "writes", f);
	for (size_t i = 0; i < ARRAY_SIZE(opens); i++) {
		fprintf(f, "tracepoint:syscalls:sys_exit_%s if ret >= 0%s {\n\tcount by ", opens[i],
			all ? "" : " && " REGULAR("ret"));
		put_file(v, "ret", f);
		fputs(" as opens\n}\n", f);
	}
}

/* --- waiting for mutexes --- */

#define COMMAND "(op & 0x7f)"
#define HELD                                                                  \
	"(val == 2 || (val & 0x80000000) != 0 && (val & 0x3fffffff) != 0 && " \
	"(val & 0x3fffffff) != 0x3fffffff)"

void script_locks(uint64_t least_ns, bool all, bool hist, FILE *f)
{
	fputs("# callers are found by frame pointers here\n"
	      "tracepoint:syscalls:sys_enter_futex if " COMMAND " == 6 || " COMMAND
	      " == 13 || (" COMMAND " == 0 || " COMMAND " == 9)",
	      f);
	fputs(all ? "" : " && " HELD, f);
	fputs(" {\n\tset thread.lock = uaddr;\n\tset thread.since = nsecs\n}\n"
	      "tracepoint:syscalls:sys_exit_futex if thread.lock {\n",
	      f);
	for (int i = 0; i <= hist; i++) {
		fprintf(f, "\t%s nsecs-thread.since by pid comm lock=thread.lock:x64 ustack as %s",
			i ? "hist" : "stats", i ? "times" : "waits");
		if (least_ns)
			fprintf(f, " if nsecs-thread.since >= %" PRIu64, least_ns);
		fputs(";\n", f);
	}
	fputs("\tset thread.lock = 0\n}\n", f);
}

/* --- memory --- */

static const struct {
	const char *name, *size;
	const char *piece; /* where what was allocated is told; NULL: it is returned */
} allocating[] = {
	{"malloc", "arg0@entry", NULL},
	{"calloc", "(arg0*arg1)@entry", NULL},
	{"memalign", "arg1@entry", NULL},
	{"aligned_alloc", "arg1@entry", NULL},
	{"valloc", "arg0@entry", NULL},
	{"pvalloc", "arg0@entry", NULL},
	{"posix_memalign", "arg2@entry", "*(arg0@entry)"},
	{"realloc", "arg1@entry", NULL},
	{"reallocarray", "(arg1*arg2)@entry", NULL},
};

static void take_piece(const char *piece, FILE *f)
{
	fprintf(f,
		"\tstats (0-map.size[%s]):s64 by map.where[%s]:ustack as left if map.size[%s];\n"
		"\tstats (0-1):s64 by map.where[%s]:ustack as pieces if map.size[%s];\n"
		"\tset map.size[%s] = 0;\n\tset map.where[%s] = 0",
		piece, piece, piece, piece, piece, piece, piece);
}

/* One function of the library may be at work for another. */
static void keep_piece(const char *piece, const char *size, FILE *f)
{
	fprintf(f,
		"\tstats %s:s64 by ustack as left if !map.size[%s];\n"
		"\tstats 1:s64 by ustack as pieces if !map.size[%s];\n"
		"\tset map.where[%s] = ustack if !map.size[%s];\n"
		"\tset map.size[%s] = %s if !map.size[%s]",
		size, piece, piece, piece, piece, piece, size, piece);
}

static void library_pieces(const char *file, FILE *f)
{
	for (size_t i = 0; i < ARRAY_SIZE(allocating); i++) {
		const char *name = allocating[i].name, *piece = allocating[i].piece;

		if (starts_with(name, "realloc")) {
			fprintf(f, "uprobe:%s:%s if map.size[arg0] {\n", file, name);
			take_piece("arg0", f);
			fputs("\n}\n", f);
		}
		fprintf(f, "uretprobe:%s:%s if %s && %s {\n", file, name,
			piece ? "!(retval & 0xffffffff)" : "retval", allocating[i].size);
		keep_piece(piece ? piece : "retval", allocating[i].size, f);
		fputs("\n}\n", f);
	}
	fprintf(f, "uprobe:%s:free if map.size[arg0] {\n", file);
	take_piece("arg0", f);
	fputs("\n}\n", f);
}

void script_malloc(const struct strv *files, FILE *f)
{
	if (!files->n)
		library_pieces("libc.so.6", f);
	for (size_t i = 0; i < files->n; i++)
		library_pieces(files->v[i], f);
}

/* --- TLS --- */

static const struct {
	const char *name, *when, *length;
	bool reads, gnutls;
} calls[] = {
	{"SSL_write", "retval > 0", "retval & 0x7fffffff", false, false},
	{"SSL_read", "retval > 0", "retval & 0x7fffffff", true, false},
	{"SSL_write_ex", "retval == 1", "*(arg3@entry)", false, false},
	{"SSL_read_ex", "retval == 1", "*(arg3@entry)", true, false},
	{"SSL_write_early_data", "retval == 1", "*(arg3@entry)", false, false},
	{"SSL_read_early_data", "retval > 0", "*(arg3@entry)", true, false},
	{"gnutls_record_send", "retval > 0", "retval", false, true},
	{"gnutls_record_send2", "retval > 0", "retval", false, true},
	{"gnutls_record_send_range", "retval > 0", "retval", false, true},
	{"gnutls_record_recv", "retval > 0", "retval", true, true},
	{"gnutls_record_recv_seq", "retval > 0", "retval", true, true},
};

static void library_tls(const char *file, bool gnutls, enum script_bytes format, FILE *f)
{
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
		if (calls[i].gnutls != gnutls)
			continue;
		fprintf(f, "uretprobe:%s:%s if %s {\n\twatch %s=arg0@entry:x64 retval:%s", file,
			calls[i].name, calls[i].when, calls[i].reads ? "from" : "to",
			gnutls ? "s64" : "s32");
		if (format != SCRIPT_NO_BYTES)
			fprintf(f, " data=arg1@entry:%s[%s]",
				format == SCRIPT_HEX ? "buf" : "string", calls[i].length);
		fputs("\n}\n", f);
	}
}

void script_tls(const struct strv *files, enum script_bytes format, FILE *f)
{
	fputs("# these are secrets; at most 4096 bytes of each call\n", f);
	for (size_t i = 0; i < files->n; i++)
		library_tls(files->v[i], strstr(files->v[i], "gnutls"), format, f);
	if (files->n)
		return;
	library_tls("libssl.so.3", false, format, f);
	library_tls("libgnutls.so.30", true, format, f);
}

/* --- virtual machines --- */

void script_hypercalls(const struct script_hypercalls *x, FILE *f)
{
	const char *condition = x->all ? "thread.since" : "thread.since && thread.call";

	fputs("tracepoint:kvm:kvm_exit {\n\tset thread.since = nsecs;\n"
	      "\tset thread.reason = exit_reason;\n\tset thread.isa = isa;\n"
	      "\tset thread.call = 0\n}\n",
	      f);
	if (!x->all || x->live) {
		fputs("tracepoint:kvm:kvm_hypercall", f);
		if (x->only)
			fprintf(f, " if nr == %" PRIu64, x->nr);
		fputs(" {\n\tset thread.nr = nr;\n\tset thread.call = 1\n}\n", f);
	}
	fprintf(f, "tracepoint:kvm:kvm_entry if %s {\n", condition);
	if (x->live)
		fprintf(f,
			"\twatch vcpu=vcpu_id reason=thread.reason isa=thread.isa%s "
			"took=nsecs-thread.since\n",
			x->all ? "" : " nr=thread.nr");
	else if (x->all)
		fputs("\tstats nsecs-thread.since by pid vcpu=vcpu_id reason=thread.reason "
		      "isa=thread.isa as exits;\n"
		      "\t"
		      "hist nsecs-thread.since by pid vcpu=vcpu_id as times\n",
		      f);
	else
		fputs("\tstats nsecs-thread.since by pid vcpu=vcpu_id nr=thread.nr "
		      "reason=thread.reason as hypercalls;\n"
		      "\t"
		      "hist nsecs-thread.since by pid vcpu=vcpu_id as times\n",
		      f);
	fputs("}\ntracepoint:kvm:kvm_entry { set thread.since = 0 }\n", f);
}

/* --- files that are opened, commands that are executed --- */

void script_open(bool failed, FILE *f)
{
	for (size_t i = 0; i < ARRAY_SIZE(opens); i++) {
		bool flags = !streq(opens[i], "creat") && !streq(opens[i], "openat2");
		const char *name = streq(opens[i], "creat") ? "pathname" : "filename";

		fprintf(f, "tracepoint:syscalls:sys_enter_%s {\n\tset thread.name = %s:string;\n",
			opens[i], name);
		if (flags)
			fputs("\tset thread.flags = flags;\n", f);
		fprintf(f,
			"\tset thread.since = nsecs\n}\n"
			"tracepoint:syscalls:sys_exit_%s if thread.since%s {\n"
			"\twatch name=thread.name%s ret took=nsecs-thread.since;\n"
			"\tset thread.since = 0\n}\n",
			opens[i], failed ? " && ret < 0" : "",
			flags ? " flags=thread.flags:x32" : "");
	}
}

void script_exec(bool failed, FILE *f)
{
	fputs("# each argument ends with a NUL\n"
	      "tracepoint:sched:sched_process_exec {\n"
	      "\twatch ppid=$task->real_parent->tgid "
	      "words=$task->mm->arg_start:string[$task->mm->arg_end - $task->mm->arg_start]\n}\n",
	      f);
	if (failed)
		fputs("tracepoint:syscalls:sys_enter_execve { set thread.path = filename:string }\n"
		      "tracepoint:syscalls:sys_exit_execve if ret < 0 {\n"
		      "\twatch path=thread.path ret\n}\n",
		      f);
}
