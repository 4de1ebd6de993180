// SPDX-License-Identifier: GPL-2.0-or-later
/* Traces of builds: damaged ones, names of files through everything that changes them, programs,
 * steps and what they need. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "probes/build/compile.h"
#include "probes/build/deps.h"
#include "probes/build/graph.h"
#include "probes/build/makedb.h"
#include "probes/build/needs.h"
#include "probes/build/path.h"
#include "tests/lib/build_trace.h"

#define MAKE  10
#define SHELL 11
#define CC    12

static void read_it(struct build_trace *t, struct build *b)
{
	struct error e = {0};

	build_trace_end(t);
	if (build_read(b, t->v, t->len, &e) < 0)
		fail_msg("%s", e.text);
	assert_true(b->whole);
}

static const struct build_node *file(const struct build *b, const char *path)
{
	const struct build_node *found = NULL;

	for (size_t i = 0; i < b->n_nodes; i++)
		if (streq(b->nodes[i].path, path) && (!found || !b->nodes[i].gone))
			found = &b->nodes[i];
	if (!found)
		fail_msg("there is no %s", path);
	return found;
}

static void call(struct build_trace *t, uint32_t type, const char *name, const char *name2)
{
	build_trace_call(t, MAKE,
			 &(struct build_trace_call){.type = type, .name = name, .name2 = name2});
}

/* --- paths --- */

static void assert_join(const char *dir, const char *name, const char *expected)
{
	autofree char *path = path_join(dir, name, strlen(name));

	assert_string_equal(path, expected);
}

static void test_paths(void **state)
{
	autofree char *deep = path_of_names("c\0b", 4, true), *root = path_of_names("", 0, false);

	(void)state;
	assert_join("/a/b", "c", "/a/b/c");
	assert_join("/a/b", "../c/./d//e", "/a/c/d/e");
	assert_join("/a", "/x/../..", "/");
	assert_join("/a", "", "/a");
	assert_join(NULL, "x", "/x");
	assert_join("/", "x/", "/x");
	assert_string_equal(deep, "/.../b/c");
	assert_string_equal(root, "/");
	assert_true(path_below("/a/b", "/a") && path_below("/a", "/a") && path_below("/a", "/"));
	assert_false(path_below("/ab", "/a"));
	assert_true(path_is_system("/usr/include/stdio.h"));
	assert_false(path_is_system("/usr/src/x.c") || path_is_system("/usrx"));
}

/* --- damaged traces --- */

static void test_every_length(void **state)
{
	struct build_trace t;
	struct build b;
	size_t ends = 0;

	(void)state;
	build_trace_begin(&t, MAKE);
	build_trace_exec(&t, MAKE, "/p", "/bin/make all");
	build_trace_open(&t, MAKE, O_RDONLY, "/p/Makefile");
	build_trace_end(&t);
	for (size_t len = 0; len <= t.len; len++) {
		autofree uint8_t *copy = malloc(len ? len : 1); /* so that sanitizers see its end */
		struct error e = {0};
		int r;

		memcpy(copy, t.v, len);
		r = build_read(&b, copy, len, &e);
		if (r < 0)
			assert_true(*e.text && len < sizeof(struct ax_build_file));
		else
			assert_true(b.whole == (len == t.len) && b.whole == !*b.incomplete);
		ends += r == 0;
		build_free(&b);
	}
	assert_int_equal(ends, t.len - sizeof(struct ax_build_file) + 1);
	build_trace_free(&t);
}

static void assert_refused(struct build_trace *t, size_t at, uint32_t value, const char *why)
{
	uint32_t before;
	struct error e = {0};
	struct build b;

	memcpy(&before, t->v + at, sizeof(before));
	memcpy(t->v + at, &value, sizeof(value));
	assert_int_equal(build_read(&b, t->v, t->len, &e), -EINVAL);
	if (!strstr(e.text, why))
		fail_msg("'%s' does not say '%s'", e.text, why);
	memcpy(t->v + at, &before, sizeof(before));
	build_free(&b);
}

static void test_damaged(void **state)
{
	const size_t first = sizeof(struct ax_build_file);
	struct build_trace t;

	(void)state;
	build_trace_begin(&t, MAKE);
	build_trace_open(&t, MAKE, O_RDONLY, "/p/Makefile");
	build_trace_end(&t);
	assert_refused(&t, 0, 0, "no trace of a build");
	assert_refused(&t, 8, 0x04030201, "another byte order");
	assert_refused(&t, 12, 2, "version 2");
	assert_refused(&t, first, 4, "too short");
	assert_refused(&t, first, 40, "too short for its kind");
	assert_refused(&t, first + 4 + 8, 99, "no such kind");
	assert_refused(&t, first + 4 + offsetof(struct ax_build_path, len), 1000, "longer than");
	build_trace_free(&t);
}

/* --- files --- */

static void test_names(void **state)
{
	struct build_trace t;
	struct build b;

	(void)state;
	build_trace_begin(&t, MAKE);
	build_trace_exec(&t, MAKE, "/p", "/bin/make");
	build_trace_open(&t, MAKE, O_WRONLY | O_CREAT, "/p/a.tmp");
	call(&t, AX_BUILD_RENAME, "a.tmp", "./a");
	build_trace_call(&t, MAKE,
			 &(struct build_trace_call){
				 .type = AX_BUILD_CHDIR, .name = "sub", .real = "/p/sub"});
	call(&t, AX_BUILD_LINK, "../a", "b");
	call(&t, AX_BUILD_SYMLINK, "nowhere", "c");
	build_trace_call(
		&t, MAKE,
		&(struct build_trace_call){.type = AX_BUILD_UNLINK, .name = "old", .dir = "/q"});
	build_trace_call(&t, MAKE,
			 &(struct build_trace_call){.type = AX_BUILD_TRUNCATE, .dir = "/q/fd"});
	build_trace_call(
		&t, MAKE,
		&(struct build_trace_call){.type = AX_BUILD_MKDIR, .name = "no", .ret = -EEXIST});
	read_it(&t, &b);
	assert_string_equal(file(&b, "/p/a")->born, "/p/a.tmp");
	assert_true(file(&b, "/p/a")->made);
	assert_ptr_equal(&b.nodes[file(&b, "/p/sub/b")->same], file(&b, "/p/a"));
	assert_true(file(&b, "/p/sub/c")->made);
	assert_true(file(&b, "/q/old")->gone);
	assert_true(file(&b, "/q/fd")->made);
	assert_string_equal(b.events[b.n_events - 1].path, "/p/sub/no");
	assert_int_equal(b.events[b.n_events - 1].file, BUILD_NONE);
	build_free(&b);
	build_trace_free(&t);
}

static void test_made_anew(void **state)
{
	struct build_trace t;
	struct build b;
	size_t n = 0;

	(void)state;
	build_trace_begin(&t, MAKE);
	build_trace_exec(&t, MAKE, "/p", "/bin/make");
	for (int i = 0; i < 2; i++) {
		build_trace_open(&t, MAKE, O_WRONLY | O_CREAT | O_TRUNC, "/p/x");
		call(&t, AX_BUILD_UNLINK, "x", NULL);
	}
	call(&t, AX_BUILD_MKDIR, "d", NULL);
	build_trace_open(&t, MAKE, O_WRONLY | O_CREAT, "/p/d/in");
	call(&t, AX_BUILD_RENAME, "d", "e");
	build_trace_open(&t, MAKE, O_RDONLY, "/p/e/in");
	build_trace_open(&t, MAKE, O_WRONLY | O_CREAT, "/p/new");
	build_trace_open(&t, MAKE, O_RDONLY, "/p/kept");
	call(&t, AX_BUILD_RENAME, "new", "kept");
	read_it(&t, &b);
	for (size_t i = 0; i < b.n_nodes; i++)
		n += streq(b.nodes[i].path, "/p/x");
	assert_int_equal(n, 2);
	assert_string_equal(file(&b, "/p/e/in")->born, "/p/d/in");
	assert_int_equal(file(&b, "/p/e/in")->n, 2);
	assert_string_equal(file(&b, "/p/kept")->born, "/p/new");
	build_free(&b);
	build_trace_free(&t);
}

/* Two files that took each other's names are both there, and nobody removed one. */
static void test_exchange(void **state)
{
	const struct build_node *n;
	struct build_trace t;
	struct build b;

	(void)state;
	build_trace_begin(&t, MAKE);
	build_trace_exec(&t, MAKE, "/p", "/bin/make");
	build_trace_open(&t, MAKE, O_WRONLY | O_CREAT, "/p/a");
	build_trace_open(&t, MAKE, O_RDONLY, "/p/b");
	build_trace_call(&t, MAKE,
			 &(struct build_trace_call){
				 .type = AX_BUILD_RENAME, .name = "a", .name2 = "b", .flags = 2});
	read_it(&t, &b);
	n = file(&b, "/p/a");
	assert_false(n->gone);
	assert_true(n->made);
	assert_string_equal(n->born, "/p/b");
	assert_int_equal(n->n, 2);
	assert_int_equal(b.uses[n->first + 1].access, BUILD_MOVE);
	n = file(&b, "/p/b");
	assert_string_equal(n->born, "/p/a");
	assert_int_equal(b.uses[n->first + 1].access, BUILD_MOVE);
	build_free(&b);
	build_trace_free(&t);
}

/* --- programs --- */

/* Records of two CPUs may come the other way round. */
static void test_programs(void **state)
{
	struct build_trace t;
	struct build b;

	(void)state;
	build_trace_begin(&t, MAKE);
	build_trace_exec(&t, MAKE, "/p", "/bin/make -j2");
	t.time += 10;
	build_trace_open(&t, SHELL, O_WRONLY | O_CREAT, "/p/out");
	t.time -= 5;
	build_trace_fork(&t, MAKE, SHELL);
	t.time += 10;
	build_trace_exec(&t, SHELL, "/p", "/bin/cat in");
	build_trace_open(&t, SHELL, O_RDONLY, "/p/in");
	build_trace_exit(&t, SHELL, 256);
	build_trace_fork(&t, MAKE, SHELL); /* the number is another process's now */
	build_trace_exit(&t, SHELL, 0);
	read_it(&t, &b);
	assert_int_equal(b.n_cmds, 5);
	assert_int_equal(b.cmds[2].parent, 1);
	assert_int_equal(build_actor(&b, 2), 3);
	assert_string_equal(build_cmd_name(&b, 2), "make");
	assert_string_equal(build_cmd_name(&b, 3), "cat");
	assert_string_equal(build_arg(&b.cmds[3], 1), "in");
	assert_null(build_arg(&b.cmds[3], 2));
	assert_string_equal(build_env(&b.cmds[3], "PATH"), "/bin");
	assert_true(b.cmds[3].complete && b.cmds[3].ended && !b.cmds[4].executed);
	assert_int_equal(b.cmds[3].status, 256);
	assert_int_equal(b.uses[file(&b, "/p/out")->first].cmd, 3);
	build_free(&b);
	build_trace_free(&t);
}

static void test_missing_piece(void **state)
{
	const uint64_t offset = 8192;
	struct ax_exec_piece piece;
	struct build_trace t;
	struct build b;
	uint8_t *at;

	(void)state;
	build_trace_begin(&t, MAKE);
	build_trace_exec(&t, MAKE, "/p", "/bin/make all");
	/* the second record is the arguments; its first piece was lost */
	at = t.v + sizeof(struct ax_build_file) + 4 + sizeof(piece) + 10 + 4;
	memcpy(&piece, at, sizeof(piece));
	assert_int_equal(piece.what, AX_EXEC_ARGV);
	memcpy(at + offsetof(struct ax_exec_piece, offset), &offset, sizeof(offset));
	read_it(&t, &b);
	assert_false(b.cmds[1].complete);
	assert_string_equal(build_cmd_name(&b, 1), "make");
	build_free(&b);
	build_trace_free(&t);
}

/* --- steps --- */

/* make runs a shell, which runs a compiler: it reads x.c, x.h and a file of its own. Then a linker.
 */
static void put_steps(struct build_trace *t)
{
	build_trace_begin(t, MAKE);
	build_trace_exec(t, MAKE, "/p", "/bin/make");
	build_trace_fork(t, MAKE, SHELL);
	build_trace_exec(t, SHELL, "/p", "/bin/sh -c x");
	build_trace_fork(t, SHELL, CC);
	build_trace_exec(t, CC, "/p", "/bin/gcc -c -o x.o x.c");
	build_trace_open(t, CC, O_RDONLY, "/p/x.c");
	build_trace_open(t, CC, O_RDONLY, "/p/x.h");
	build_trace_open(t, CC, O_RDWR | O_CREAT | O_TRUNC, "/tmp/x.s");
	build_trace_open(t, CC, O_RDONLY, "/tmp/x.s");
	build_trace_call(t, CC,
			 &(struct build_trace_call){.type = AX_BUILD_UNLINK, .name = "/tmp/x.s"});
	build_trace_open(t, CC, O_WRONLY | O_CREAT | O_TRUNC, "/p/x.o");
	build_trace_exit(t, CC, 0);
	build_trace_exit(t, SHELL, 0);
	build_trace_fork(t, MAKE, 20);
	build_trace_exec(t, 20, "/p", "/bin/gcc -o x x.o");
	build_trace_open(t, 20, O_RDONLY, "/p/x.o");
	build_trace_open(t, 20, O_RDWR | O_CREAT | O_TRUNC, "/p/x");
	build_trace_exit(t, 20, 0);
}

static void test_steps(void **state)
{
	struct build_steps steps;
	struct build_trace t;
	struct build b;
	size_t inputs = 0, outputs = 0;

	(void)state;
	put_steps(&t);
	read_it(&t, &b);
	assert_int_equal(build_steps_make(&b, &steps), 0);
	for (size_t i = 0; i < steps.n; i++) {
		const char *name = build_cmd_name(&b, steps.v[i].step);

		if (build_is_input(&b, &steps.v[i]))
			inputs += streq(name, "sh") ? 1 : streq(name, "gcc") ? 100 : 10000;
		if (build_is_output(&b, &steps.v[i]))
			outputs += streq(name, "sh") ? 1 : 100;
	}
	/* besides files, a step reads its programs: sh and gcc; gcc */
	assert_int_equal(inputs, 10000 + 200 + 4);
	assert_int_equal(outputs, 101);
	assert_true(build_is_read(&b, (uint32_t)(file(&b, "/p/x.o") - b.nodes)));
	assert_false(build_is_read(&b, (uint32_t)(file(&b, "/p/x") - b.nodes)));
	free(steps.v);
	build_free(&b);
	build_trace_free(&t);
}

/* Nobody starts steps: a shell runs a compiler's driver, and that what compiles and what assembles,
 * which hand on a file that is gone at the end. */
static void put_driver(struct build_trace *t, const char *first, const char *driver)
{
	build_trace_begin(t, MAKE);
	build_trace_exec(t, MAKE, "/p", first);
	build_trace_fork(t, MAKE, SHELL);
	build_trace_exec(t, SHELL, "/p", driver);
	for (uint32_t pid = CC; pid < CC + 2; pid++) {
		build_trace_fork(t, SHELL, pid);
		build_trace_exec(t, pid, "/p", pid == CC ? "/lib/cc1 x.c" : "/bin/as");
		build_trace_open(t, pid, O_RDONLY, pid == CC ? "/p/x.c" : "/tmp/x.s");
		build_trace_open(t, pid, O_WRONLY | O_CREAT | O_TRUNC,
				 pid == CC ? "/tmp/x.s" : "/p/x.o");
		build_trace_exit(t, pid, 0);
	}
	build_trace_call(t, SHELL,
			 &(struct build_trace_call){.type = AX_BUILD_UNLINK, .name = "/tmp/x.s"});
}

static void assert_step(const char *first, const char *driver, const char *expected)
{
	struct build_trace t;
	struct build b;
	uint32_t step;

	put_driver(&t, first, driver);
	read_it(&t, &b);
	step = build_step(&b, b.uses[file(&b, "/p/x.o")->first].cmd);
	assert_string_equal(build_cmd_name(&b, step), expected);
	assert_int_equal(build_step(&b, b.uses[file(&b, "/p/x.c")->first].cmd), step);
	build_free(&b);
	build_trace_free(&t);
}

static void test_steps_of_drivers(void **state)
{
	(void)state;
	assert_step("/bin/bash build.sh", "/bin/gcc -c x.c", "gcc");
	assert_step("/bin/python3 setup.py", "x86_64-linux-gnu-gcc-12 -c x.c",
		    "x86_64-linux-gnu-gcc-12");
	assert_step("/bin/ccache gcc -c x.c", "/bin/gcc -c x.c", "ccache");
	assert_step("/bin/gcc -c x.c", "/lib/other", "gcc");
	assert_step("/bin/bash build.sh", "/bin/rustc x.c", "rustc");
	/* who starts steps comes first */
	assert_step("/bin/make", "/bin/gcc -c x.c", "gcc");
	assert_step("/bin/make", "/bin/sh -c x", "sh");
}

/* --- graphs --- */

static const char *name_all(void *arg, const struct build_node *n)
{
	(void)arg;
	return path_is_system(n->path) ? NULL : n->path;
}

/* --- what a command needs, to be repeated alone --- */

static void remove_file(struct build_trace *t, uint32_t type, const char *name)
{
	call(t, type, name, NULL);
}

/* make makes a directory with a list, cc reads that, a list of others, one that is older, its own
 * output and what another made; all but the last is removed. */
static void put_needs(struct build_trace *t)
{
	build_trace_begin(t, MAKE);
	build_trace_exec(t, MAKE, "/p", "/bin/make");
	call(t, AX_BUILD_MKDIR, "/t/scratch", NULL);
	build_trace_open(t, MAKE, O_WRONLY | O_CREAT | O_TRUNC, "/t/scratch/list");
	build_trace_fork(t, MAKE, SHELL);
	build_trace_exec(t, SHELL, "/p", "/bin/gen");
	build_trace_open(t, SHELL, O_WRONLY | O_CREAT | O_TRUNC, "/p/generated");
	build_trace_open(t, SHELL, O_WRONLY | O_CREAT | O_TRUNC, "/p/left");
	build_trace_exit(t, SHELL, 0);
	build_trace_fork(t, MAKE, CC);
	build_trace_exec(t, CC, "/p", "/bin/cc x.c");
	build_trace_open(t, CC, O_RDONLY, "/p/x.c");
	build_trace_open(t, CC, O_RDONLY, "/p/left");
	build_trace_open(t, CC, O_RDONLY, "/p/older");
	build_trace_open(t, CC, O_RDONLY, "/p/generated");
	build_trace_open(t, CC, O_RDONLY, "/t/scratch/list");
	build_trace_open(t, CC, O_WRONLY | O_CREAT | O_TRUNC, "/t/scratch/x.s");
	build_trace_open(t, CC, O_RDONLY, "/t/scratch/x.s");
	build_trace_exit(t, CC, 0);
	remove_file(t, AX_BUILD_UNLINK, "/p/older");
	remove_file(t, AX_BUILD_UNLINK, "/p/generated");
	remove_file(t, AX_BUILD_UNLINK, "/t/scratch/list");
	remove_file(t, AX_BUILD_UNLINK, "/t/scratch/x.s");
	remove_file(t, AX_BUILD_RMDIR, "/t/scratch");
}

static void test_needs(void **state)
{
	static const struct {
		const char *path;
		enum build_need_from from;
		uint32_t maker; /* its number, 0: none */
	} expected[] = {
		{"/t/scratch/list", BUILD_NEED_ABOVE, MAKE},
		{"/p/generated", BUILD_NEED_OTHER, SHELL},
		{"/p/older", BUILD_NEED_BEFORE, 0},
		{"/p/left", BUILD_NEED_LEFT, 0},
	};
	struct build_needs needs;
	struct build_trace t;
	struct build b;
	uint32_t cc = 0;

	(void)state;
	put_needs(&t);
	read_it(&t, &b);
	while (b.cmds[cc].pid != CC || !b.cmds[cc].executed)
		cc++;
	assert_int_equal(build_needs_make(&b, cc, &needs), 0);
	assert_int_equal(needs.n, ARRAY_SIZE(expected));
	for (size_t i = 0; i < needs.n; i++) {
		uint32_t maker = needs.v[i].maker;

		assert_string_equal(needs.v[i].path, expected[i].path);
		assert_int_equal(needs.v[i].from, expected[i].from);
		assert_int_equal(maker == BUILD_NONE ? 0 : b.cmds[maker].pid, expected[i].maker);
	}
	assert_int_equal(needs.n_dirs, 1);
	assert_memory_equal(needs.dirs[0], "/t/scratch", needs.dirs_len[0]);
	build_needs_free(&needs);
	/* make itself did all that */
	assert_int_equal(build_needs_make(&b, 1, &needs), 0);
	assert_int_equal(needs.n, 0);
	assert_int_equal(needs.n_dirs, 0);
	build_needs_free(&needs);
	build_free(&b);
	build_trace_free(&t);
}

static void test_graph(void **state)
{
	struct build_graph_options o = {.name = name_all};
	struct build_graph g;
	struct build_trace t;
	struct build b;

	(void)state;
	put_steps(&t);
	read_it(&t, &b);
	assert_int_equal(build_graph_make(&b, &o, &g), 0);
	assert_int_equal(g.n_cmds, 2);
	assert_int_equal(g.n_files, 4); /* x.c x.h x.o x */
	assert_int_equal(g.n_edges, 5);
	build_graph_free(&g);
	o.processes = true;
	assert_int_equal(build_graph_make(&b, &o, &g), 0);
	assert_int_equal(g.n_cmds, 2);
	build_graph_free(&g);
	build_free(&b);
	build_trace_free(&t);
}

static const char *name_by_directory(void *arg, const struct build_node *n)
{
	return name_all(arg, n) && path_below(n->path, "/p/src") ? "/p/src/*" : name_all(arg, n);
}

static const char *group_of_compilers(void *arg, uint32_t cmd)
{
	const struct build *b = arg;

	return streq(build_cmd_name(b, cmd), "gcc") ? "gcc" : NULL;
}

/* Two compilers read the same header and each a source of its own: one box, one ellipse for the
 * three; cc, which is no gcc, stays what it is. */
static void test_groups(void **state)
{
	struct build_graph_options o = {.name = name_by_directory, .group = group_of_compilers};
	struct build_graph g;
	struct build_trace t;
	struct build b;

	(void)state;
	build_trace_begin(&t, MAKE);
	build_trace_exec(&t, MAKE, "/p", "/bin/make");
	for (uint32_t i = 0; i < 3; i++) {
		build_trace_fork(&t, MAKE, CC + i);
		build_trace_exec(&t, CC + i, "/p", i < 2 ? "/bin/gcc" : "/bin/cc");
		build_trace_open(&t, CC + i, O_RDONLY, "/p/src/x.h");
		build_trace_open(&t, CC + i, O_RDONLY, i ? "/p/src/1.c" : "/p/src/0.c");
		build_trace_open(&t, CC + i, O_WRONLY | O_CREAT | O_TRUNC, i ? "/p/1.o" : "/p/0.o");
		build_trace_exit(&t, CC + i, 0);
	}
	read_it(&t, &b);
	o.arg = &b;
	assert_int_equal(build_graph_make(&b, &o, &g), 0);
	assert_int_equal(g.n_cmds, 2);
	assert_int_equal(g.cmd_n[g.cmds[0]], 2);
	assert_int_equal(g.cmd_n[g.cmds[1]], 1);
	assert_int_equal(g.n_files, 3);
	for (size_t i = 0; i < g.n_files; i++) {
		bool sources = path_below(b.nodes[g.files[i]].path, "/p/src");

		assert_int_equal(g.file_n[g.files[i]], sources ? 3 : 1);
		assert_int_equal(g.made_n[g.files[i]], sources ? 0 : 1);
	}
	assert_int_equal(g.n_edges, 5); /* what gcc reads, and the two that it writes; cc's two */
	build_graph_free(&g);
	build_free(&b);
	build_trace_free(&t);
}

/* --- compilations --- */

static size_t compiles_of(const char *words, struct build_compile *first)
{
	autofree struct build_compile *v = NULL;
	struct build_trace t;
	struct build b;
	size_t n;

	build_trace_begin(&t, MAKE);
	build_trace_exec(&t, MAKE, "/p", words);
	build_trace_fork(&t, MAKE, CC);
	build_trace_exec(&t, CC, "/p", "/usr/bin/gcc -c a.c"); /* by a wrapper */
	read_it(&t, &b);
	assert_int_equal(build_compiles(&b, &v, &n), 0);
	if (n)
		*first = v[0];
	n = n && v[0].cmd == 1 ? n : 0;
	build_free(&b);
	build_trace_free(&t);
	return n;
}

static void test_compiles(void **state)
{
	struct build_compile c;

	(void)state;
	assert_int_equal(compiles_of("gcc -c ./a.c", &c), 1);
	assert_int_equal(compiles_of("ccache x86_64-linux-gnu-gcc-12 -c a.c", &c), 1);
	assert_int_equal(c.first, 1);
	assert_int_equal(compiles_of("clang++-14 -c a.c b.cc -I x.c -DX=y.c", &c), 2);
	assert_int_equal(compiles_of("cc -MD -MF a.d -MT x.c -c a.c", &c), 1);
	assert_int_equal(compiles_of("gcc -E a.c", &c), 0);
	assert_int_equal(compiles_of("gcc -MM a.c", &c), 0);
	assert_int_equal(compiles_of("gcc -o prog a.o", &c), 0);
	assert_int_equal(compiles_of("clang -cc1 a.c", &c), 0);
	assert_int_equal(compiles_of("cat a.c", &c), 0);
	assert_int_equal(compiles_of("gcc-ar a.c", &c), 0);
}

/* --- make -p --- */

static void test_makedb(void **state)
{
	static const char text[] = "gcc x: y\n"
				   "# Make data base, printed on Mon\n"
				   "CC = a: b\n"
				   "CURDIR := /p\n"
				   "define script\n"
				   "prog: inside\n"
				   "endef\n"
				   "%.o: %.c\n"
				   "#  commands\n"
				   "prog extra: x.o ../lib | order\n"
				   "\tgcc prog: y\n"
				   "x.o:: x.c sub/./x.h\n"
				   "x.o: CFLAGS := -g\n"
				   ".PHONY: all\n"
				   "# Finished Make data base on Mon\n"
				   "late: later\n"
				   "# Make data base, printed on Mon\n"
				   "CURDIR := /q\n"
				   "a: b\n";
	struct makedb *db;
	struct error e = {0};

	(void)state;
	assert_int_equal(makedb_read(text, strlen(text), &db, &e), 0);
	assert_true(makedb_target(db, "/p/prog"));
	assert_true(makedb_needs(db, "/p/x.o") && makedb_needs(db, "/lib"));
	assert_true(makedb_needs(db, "/p/x.c") && makedb_needs(db, "/p/sub/x.h"));
	assert_false(makedb_needs(db, "/p/order") || makedb_needs(db, "/p/inside"));
	assert_false(makedb_needs(db, "/p/extra"));
	assert_true(makedb_target(db, "/p/extra") && makedb_target(db, "/q/a"));
	assert_true(makedb_needs(db, "/q/b"));
	assert_false(makedb_needs(db, "/p/x.c"));
	assert_false(makedb_target(db, "/p/x.c") || makedb_target(db, "/p/late"));
	makedb_free(db);
	assert_int_equal(makedb_read("a: b\n", 5, &db, &e), -EINVAL);
	assert_non_null(strstr(e.text, "make -pq"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_paths),	      cmocka_unit_test(test_every_length),
		cmocka_unit_test(test_damaged),	      cmocka_unit_test(test_names),
		cmocka_unit_test(test_made_anew),     cmocka_unit_test(test_programs),
		cmocka_unit_test(test_missing_piece), cmocka_unit_test(test_steps),
		cmocka_unit_test(test_graph),	      cmocka_unit_test(test_compiles),
		cmocka_unit_test(test_makedb),	      cmocka_unit_test(test_steps_of_drivers),
		cmocka_unit_test(test_exchange),      cmocka_unit_test(test_needs),
		cmocka_unit_test(test_groups),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
