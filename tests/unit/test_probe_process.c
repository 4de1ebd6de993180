// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Names of addresses of real processes: programs and libraries, opened late, deleted, in a root of
 * their own, ended, replaced by exec; code that a process made itself; and the kernel.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "probes/process/process.h"
#include "tests/lib/probe_programs.h"

/* Says where its functions are, and does what it is told by letters. */
static const char target[] =
	"#include <dlfcn.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n"
	"#include <sys/mman.h>\n#include <unistd.h>\n"
	"namespace shop { template <class T> __attribute__((noinline)) T total(T a, int b)\n"
	"{ return a * b + getpid(); } }\n"
	"extern \"C\" __attribute__((noinline)) int plain(int a) { return a + getpid(); }\n"
	"static void say(const void *p) { printf(\"%p\\n\", p); fflush(stdout); }\n"
	"static void *made;\n"
	"static void *own(char *name) {\n"
	"	void *p = mmap(0, 8192, PROT_READ | PROT_WRITE | PROT_EXEC,\n"
	"		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);\n"
	"	FILE *f = fopen(name, \"a\");\n"
	"	fprintf(f, \"%lx 40 first one\\n%lx 40 LazyCompile:~work app.js:3\\n\", (long)p,\n"
	"		(long)p + 64);\n"
	"	fprintf(f, \"nonsense\\n%lx 20 second\\n%lx zz bad\\n%lx 40 cut\", (long)p, "
	"(long)p,\n"
	"		(long)p + 128);\n"
	"	fclose(f);\n	return made = p; }\n"
	"int main(int argc, char **argv) {\n"
	"	char c, name[64]; void *lib;\n"
	"	say((void *)shop::total<long>); say((void *)plain);\n"
	"	if (argc > 2) return plain(1);\n"
	"	while (read(0, &c, 1) == 1) switch (c) {\n"
	"	case 'g': say(dlsym(RTLD_DEFAULT, \"getenv\")); break;\n"
	"	case 'l': lib = dlopen(\"./libmore.so\", RTLD_NOW); say(dlsym(lib, \"more\")); "
	"break;\n"
	"	case 'm': say(mmap(0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)); "
	"break;\n"
	"	case 'j': snprintf(name, 64, \"/tmp/perf-%d.map\", (int)getpid()); "
	"say(own(name));\n"
	"		break;\n"
	"	case 'u': munmap(made, 8192); say(made); break;\n"
	"	case 'x': execl(argv[0], argv[0], (char *)0); break; }\n"
	"	return 0; }\n";

struct child {
	pid_t pid;
	int to;
	FILE *from;
	uint64_t total, plain;
};

static uint64_t heard(struct child *c)
{
	unsigned long long v;

	assert_int_equal(fscanf(c->from, "%llx", &v), 1);
	return v;
}

static struct child start(const char *path, const char *root)
{
	int in[2], out[2];
	struct child c;

	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	c.pid = fork();
	assert_true(c.pid >= 0);
	if (!c.pid) {
		dup2(in[0], 0);
		dup2(out[1], 1);
		if (chdir(build_dir) || (root && chroot(root)))
			_exit(126);
		execl(path, path, (char *)NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	c.to = in[1];
	c.from = fdopen(out[0], "r");
	assert_non_null(c.from);
	c.total = heard(&c);
	c.plain = heard(&c);
	return c;
}

static uint64_t ask(struct child *c, char what)
{
	assert_int_equal(write(c->to, &what, 1), 1);
	return heard(c);
}

static void end(struct child *c)
{
	int status;

	close(c->to);
	assert_int_equal(waitpid(c->pid, &status, 0), c->pid);
	assert_int_equal(status, 0);
	fclose(c->from);
}

static struct processes *new_processes(void)
{
	struct processes *p = NULL;

	assert_int_equal(processes_new(&p), 0);
	return p;
}

static void check_name(struct processes *p, int pid, uint64_t address, const char *want)
{
	struct place_name n;
	char text[256] = "unknown";
	int r = processes_symbolise(p, pid, address, &n);

	if (r == 0)
		place_name_text(&n, text, sizeof(text));
	else
		assert_int_equal(r, -ENOENT);
	if (!streq(text, want))
		fail_msg("0x%lx is %s, not %s", (unsigned long)address, text, want);
}

static int build(void **state)
{
	if (build_dir_make(state))
		return -1;
	build_source("target.cc", target);
	build_source("more.c", "int more(int a) { return a * 3; }\n");
	build_run("g++ -O1 target.cc -o target -ldl");
	build_run("g++ -O1 -static target.cc -o fixed -ldl 2>/dev/null");
	build_run("gcc -O1 -shared -fPIC more.c -o libmore.so");
	return 0;
}

static void functions_of_a_process(void **state)
{
	struct processes *p = new_processes();
	struct child c = start("./target", NULL);

	(void)state;
	check_name(p, c.pid, c.plain, "plain (target)");
	check_name(p, c.pid, c.plain + 2, "plain+0x2 (target)");
	check_name(p, c.pid, c.total + 1, "shop::total<long>+0x1 (target)");
	check_name(p, c.pid, ask(&c, 'g') + 3, "getenv+0x3 (libc.so.6)");
	/* what it opened since */
	check_name(p, c.pid, ask(&c, 'l') + 1, "more+0x1 (libmore.so)");
	check_name(p, c.pid, 16, "unknown");
	/* a mapping that is no code */
	check_name(p, c.pid, ask(&c, 'm'), "unknown");
	end(&c);
	processes_free(p);
}

/* Nothing of it is looked up before it has ended. */
static void after_it_ended(void **state)
{
	struct processes *p = new_processes();
	struct child c = start("./target", NULL);
	uint64_t getenv_at = ask(&c, 'g');

	(void)state;
	processes_note(p, c.pid);
	end(&c);
	check_name(p, c.pid, c.plain + 2, "plain+0x2 (target)");
	check_name(p, c.pid, getenv_at + 3, "getenv+0x3 (libc.so.6)");
	usleep(120000); /* it is looked again whether it is another one now */
	check_name(p, c.pid, c.plain + 2, "plain+0x2 (target)");
	processes_forget(p, c.pid);
	check_name(p, c.pid, c.plain + 2, "unknown");
	processes_free(p);
}

static void zombies(void **state)
{
	struct processes *p = new_processes();
	struct child c = start("./target", NULL);
	siginfo_t info;

	(void)state;
	processes_note(p, c.pid);
	close(c.to);
	assert_int_equal(waitid(P_PID, (id_t)c.pid, &info, WEXITED | WNOWAIT), 0);
	usleep(120000);
	check_name(p, c.pid, c.plain + 2, "plain+0x2 (target)");
	assert_int_equal(waitpid(c.pid, NULL, 0), c.pid);
	fclose(c.from);
	processes_free(p);
}

static void another_program_by_exec(void **state)
{
	struct processes *p = new_processes();
	struct child c = start("./target", NULL);
	uint64_t before = c.plain;

	(void)state;
	check_name(p, c.pid, before, "plain (target)");
	c.total = ask(&c, 'x');
	c.plain = heard(&c);
	usleep(120000);
	check_name(p, c.pid, c.plain + 1, "plain+0x1 (target)");
	/* addresses are random: the old ones mean nothing any more */
	if (before != c.plain)
		check_name(p, c.pid, before, "unknown");
	end(&c);
	processes_free(p);
}

static void replaced_and_deleted_files(void **state)
{
	struct processes *p = new_processes();
	struct child c;

	(void)state;
	if (geteuid() != 0) { /* only root is led to a file that was deleted */
		processes_free(p);
		skip();
	}
	build_run("cp target brief");
	c = start("./brief", NULL);
	build_run("rm brief && cp libmore.so brief");
	check_name(p, c.pid, c.plain + 2, "plain+0x2 (brief)");
	end(&c);
	check_name(p, c.pid, c.plain + 3, "plain+0x3 (brief)");
	processes_free(p);
}

/* The same path leads us to another file, or to none. */
static void a_root_of_its_own(void **state)
{
	struct processes *p = new_processes();
	struct child c;

	(void)state;
	if (geteuid() != 0) {
		processes_free(p);
		skip();
	}
	build_run("mkdir -p box && cp fixed box/run");
	c = start("/run", "box");
	processes_note(p, c.pid);
	build_run("rm box/run");
	end(&c);
	check_name(p, c.pid, c.plain + 2, "plain+0x2 (run)");
	check_name(p, c.pid, c.total, "shop::total<long> (run)");
	processes_free(p);
}

static void code_that_a_process_made(void **state)
{
	struct processes *p = new_processes();
	struct child c = start("./target", NULL);
	uint64_t code;
	char path[64];

	(void)state;
	processes_note(p, c.pid);
	code = ask(&c, 'j');
	check_name(p, c.pid, code + 68, "LazyCompile:~work app.js:3+0x4");
	check_name(p, c.pid, code + 4, "second+0x4"); /* the later line */
	check_name(p, c.pid, code + 0x30, "first one+0x30");
	check_name(p, c.pid, code + 4096, "unknown");
	/* the rest of a line that was cut, and more code */
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)c.pid);
	build_run("printf ' here\\n%lx 10 third\\n' >>%s", (unsigned long)code + 256, path);
	end(&c);
	usleep(20000);
	check_name(p, c.pid, code + 257, "third+0x1");
	check_name(p, c.pid, code + 128, "cut here");
	check_name(p, c.pid, code + 68, "LazyCompile:~work app.js:3+0x4");
	assert_int_equal(unlink(path), 0);
	processes_free(p);
}

/* A program that ends gives back its memory first, and stacks were taken before. */
static void code_that_is_unmapped(void **state)
{
	struct processes *p = new_processes();
	struct child c = start("./target", NULL);
	uint64_t code = ask(&c, 'j');
	char path[64];

	(void)state;
	processes_note(p, c.pid);
	assert_int_equal(ask(&c, 'u'), code);
	processes_note_again(p, c.pid);
	check_name(p, c.pid, code + 0x30, "first one+0x30");
	check_name(p, c.pid, c.plain + 2, "plain+0x2 (target)");
	end(&c);
	processes_note_again(p, c.pid);
	check_name(p, c.pid, code + 0x30, "first one+0x30");
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)c.pid);
	assert_int_equal(unlink(path), 0);
	processes_free(p);
}

/* What another user, or a link, put there is not believed. */
static void foreign_maps(void **state)
{
	struct processes *p = new_processes();
	struct child c;
	uint64_t code;
	char path[64];

	(void)state;
	if (geteuid() != 0) {
		processes_free(p);
		skip();
	}
	c = start("./target", NULL);
	code = ask(&c, 'j');
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)c.pid);
	assert_int_equal(chown(path, 65534, 65534), 0);
	check_name(p, c.pid, code + 68, "unknown");
	build_run("mv %s map && ln -s %s/map %s && chown 0:0 map", path, build_dir, path);
	usleep(20000);
	check_name(p, c.pid, code + 68, "unknown");
	assert_int_equal(unlink(path), 0);
	end(&c);
	processes_free(p);
}

/* More than are remembered, and one of them for long. */
static void many_processes(void **state)
{
	struct processes *p = new_processes();
	struct child c = start("./target", NULL);

	(void)state;
	check_name(p, c.pid, c.plain, "plain (target)");
	for (int i = 0; i < 6000; i++) {
		processes_note(p, 0x3fff0000 + i); /* no process has such a number */
		if (i % 100 == 0)
			processes_note(p, c.pid);
	}
	end(&c);
	check_name(p, c.pid, c.plain, "plain (target)");
	processes_free(p);
}

static void the_vdso(void **state)
{
	struct processes *p = new_processes();
	struct place_name n = {0};
	unsigned long long from = 0, to = 0;
	char line[PATH_MAX];
	FILE *f = fopen("/proc/self/maps", "r");
	unsigned named = 0;

	(void)state;
	while (fgets(line, sizeof(line), f))
		if (strstr(line, "[vdso]"))
			sscanf(line, "%llx-%llx", &from, &to);
	fclose(f);
	if (!to) {
		processes_free(p);
		skip();
	}
	for (uint64_t at = from; at < to; at += 16) {
		assert_int_equal(processes_symbolise(p, getpid(), at, &n), 0);
		assert_string_equal(n.file, "[vdso]");
		named += n.function && strstr(n.function, "clock_gettime") != NULL;
	}
	assert_true(named > 0);
	processes_free(p);
}

static void functions_of_the_kernel(void **state)
{
	struct processes *p = new_processes();
	struct place_name n;
	char line[512], name[256], text[300];
	unsigned long long address, found = 0;
	FILE *f = fopen("/proc/kallsyms", "r");
	char type;

	(void)state;
	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "%llx %c %255s", &address, &type, name) == 3 &&
		    streq(name, "vfs_read"))
			found = address;
	fclose(f);
	assert_int_equal(processes_kernel(p, 0x1000, &n), -ENOENT);
	assert_true(n.offset == 0x1000 && !n.function);
	if (!found) {
		processes_free(p);
		skip(); /* hidden from who is not root */
	}
	assert_int_equal(processes_kernel(p, found + 4, &n), 0);
	place_name_text(&n, text, sizeof(text));
	assert_string_equal(text, "vfs_read+0x4");
	assert_int_equal(processes_kernel(p, found, &n), 0);
	place_name_text(&n, text, sizeof(text));
	assert_string_equal(text, "vfs_read");
	assert_int_equal(processes_kernel(p, ~0ull, &n), -ENOENT);
	processes_free(p);
}

static void texts(void **state)
{
	char text[64];

	(void)state;
	place_name_text(&(struct place_name){.offset = 0x12, .file = "/lib/x.so"}, text,
			sizeof(text));
	assert_string_equal(text, "0x12 (x.so)");
	place_name_text(&(struct place_name){.offset = 0x7f00}, text, sizeof(text));
	assert_string_equal(text, "0x7f00");
	place_name_text(&(struct place_name){.function = "f", .file = "[vdso]"}, text,
			sizeof(text));
	assert_string_equal(text, "f ([vdso])");
	place_name_text(&(struct place_name){.function = "function", .offset = 1}, text, 5);
	assert_string_equal(text, "func");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions_of_a_process),
		cmocka_unit_test(after_it_ended),
		cmocka_unit_test(zombies),
		cmocka_unit_test(another_program_by_exec),
		cmocka_unit_test(replaced_and_deleted_files),
		cmocka_unit_test(a_root_of_its_own),
		cmocka_unit_test(code_that_a_process_made),
		cmocka_unit_test(code_that_is_unmapped),
		cmocka_unit_test(foreign_maps),
		cmocka_unit_test(many_processes),
		cmocka_unit_test(the_vdso),
		cmocka_unit_test(functions_of_the_kernel),
		cmocka_unit_test(texts),
	};

	return cmocka_run_group_tests_name("probe_process", tests, build, build_dir_remove);
}
