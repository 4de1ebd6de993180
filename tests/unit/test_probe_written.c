// SPDX-License-Identifier: GPL-2.0-or-later
/* Functions and types as they are declared, statements of source files, and types that are given
 * for a program that has none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <elf.h>

#include "probes/types/btf.h"
#include "probes/types/c_names.h"
#include "probes/types/given.h"
#include "tests/lib/probe_programs.h"

#define KERNEL_BTF "/sys/kernel/btf/vmlinux"

static const char header[] =
	"#include <stddef.h>\n"
	"typedef struct { int x, y; } point_t;\n"
	"struct node { const char *name; struct node *next; point_t at; };\n"
	"enum color { RED, GREEN };\n"
	"long add(int n, const char *why);\n"
	"const char *const *names(const volatile int *p, char *const q, size_t n);\n"
	"void each(struct node *list, int (*f)(void *arg, const struct node *n), void *arg);\n"
	"int log_all(const char *format, ...);\n"
	"unsigned char nothing(void);\n"
	"double scale(double by);\n";

static const char source[] =
	"#include \"lib.h\"\n"
	"volatile int sink;\n"
	"#define NOINLINE __attribute__((noinline))\n"
	"NOINLINE long add(int n, const char *why)\n"
	"{\n"
	"	int x = n * 2;\n" /* 6 */
	"	sink = x;\n"
	"	sink = *why;\n"
	"	x = sink;\n"
	"	sink = 1;\n" /* 10 */
	"	return x;\n"
	"}\n"
	"NOINLINE const char *const *names(const volatile int *p, char *const q, size_t n)\n"
	"{ sink = *p + *q + (int)n; return 0; }\n"
	"NOINLINE void each(struct node *list, int (*f)(void *arg, const struct node *n), void "
	"*arg)\n"
	"{ for (; list; list = list->next) f(arg, list); }\n"
	"NOINLINE enum color paint(union { int i; float f; } *u, point_t p, int table[2][3])\n"
	"{ sink = u->i + p.x + table[1][2]; return GREEN; }\n"
	"NOINLINE int log_all(const char *format, ...) { sink = *format; return 0; }\n"
	"NOINLINE unsigned char nothing(void) { return (unsigned char)sink; }\n"
	"NOINLINE double scale(double by) { return by * sink; }\n"
	"int main(int argc, char **argv)\n"
	"{\n"
	"	int t[2][3] = {{argc}};\n"
	"	point_t p = {1, 2};\n"
	"	add(3, argv[0]); names(&argc, argv[0], 3); each(0, 0, 0); paint((void *)t, p, t);\n"
	"	return log_all(\"\", nothing(), scale(2));\n"
	"}\n";

static int build(void **state)
{
	int r = build_dir_make(state);

	if (r)
		return r;
	build_source("lib.h", header);
	build_source("lib.c", source);
	return 0;
}

/* --- declarations --- */

static const struct {
	const char *name, *want;
} prototypes[] = {
	{"add", "long add(int n, const char *why)"},
	{"names", "const char *const *names(const volatile int *p, char *const q, size_t n)"},
	{"each", "void each(struct node *list, int (*f)(void *, const struct node *), void *arg)"},
	{"paint", "enum color paint(union {...} *u, point_t p, int (*table)[3])"},
	{"log_all", "int log_all(const char *format, ...)"},
	{"nothing", "unsigned char nothing(void)"},
	{"scale", "double scale(double by)"},
};

/* clang says "long" where gcc says "long int". */
static void unify(char *text)
{
	char *at;

	while ((at = strstr(text, "long int")))
		memmove(at + 4, at + 8, strlen(at + 8) + 1);
}

static void check_prototypes(const char *file)
{
	struct binary *b = open_built(file);
	CLEANUP(dwarf_freep) struct dwarf *d = NULL;

	assert_int_equal(dwarf_new(binary_path(b), &d), 0);
	for (size_t i = 0; i < ARRAY_SIZE(prototypes); i++) {
		struct symbol s = symbol_of(b, prototypes[i].name);
		struct error e = {0};
		struct prototype p;
		char text[512];

		if (dwarf_prototype(d, s.offset, &p, &e))
			fail_msg("%s: %s", prototypes[i].name, e.text);
		prototype_write(&p, NULL, text, sizeof(text));
		unify(text);
		if (!streq(text, prototypes[i].want))
			fail_msg("%s: got '%s', expected '%s'", file, text, prototypes[i].want);
		assert_true(strstr(p.source, "lib.c") && p.line > 2);
		/* a few bytes on no function begins */
		assert_int_equal(dwarf_prototype(d, s.offset + 1, &p, &e), -ENOENT);
	}
	binary_close(b);
}

static void functions_are_written_as_they_are_declared(void **state)
{
	static const char *const flags[] = {"-O0", "-O2", "-O2 -gdwarf-4"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
		build_run("gcc -w -g %s -o lib lib.c && clang -w -g %s -o clib lib.c", flags[i],
			  flags[i]);
		check_prototypes("lib");
		check_prototypes("clib");
	}
}

static void functions_of_cxx(void **state)
{
	struct error e = {0};
	struct prototype p;
	struct binary *b;
	CLEANUP(dwarf_freep) struct dwarf *d = NULL;
	char text[256];

	(void)state;
	build_source("c.cc", "struct box { int v; __attribute__((noinline)) int get(const box &o, "
			     "box &&r) const; };\n"
			     "int box::get(const box &o, box &&r) const { return v + o.v + r.v; }\n"
			     "int main() { box b{1}; return b.get(b, box{2}); }\n");
	build_run("g++ -g -O1 -o cxx c.cc");
	b = open_built("cxx");
	assert_int_equal(dwarf_new(binary_path(b), &d), 0);
	assert_int_equal(dwarf_prototype(d, symbol_of(b, "box::get*").offset, &p, &e), 0);
	prototype_write(&p, "box::get", text, sizeof(text));
	assert_string_equal(text, "int box::get(const box *const this, const box &o, box &&r)");
	binary_close(b);
}

/* What is too long is cut off, and nothing behind it is written. */
static void what_is_long_is_cut_off(void **state)
{
	struct prototype p = {.name = "f", .n = PROTOTYPE_PARAMETERS};
	char name[400], text[16];

	(void)state;
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	for (size_t i = 0; i < p.n; i++)
		p.parameters[i].name = name;
	memset(text, '!', sizeof(text));
	prototype_write(&p, NULL, text, 8);
	assert_string_equal(text, "void f(");
	assert_int_equal(text[8], '!');
	ctype_write(&p.returns, name, text, 8);
	assert_string_equal(text, "void xx");
}

static void functions_of_the_kernel(void **state)
{
	struct btf_types *b;
	struct error e = {0};
	struct prototype p;
	char text[256];

	(void)state;
	if (access(KERNEL_BTF, R_OK))
		skip();
	assert_int_equal(btf_types_new(&b), 0);
	/* also when many are looked for, one after the other */
	for (int i = 0; i < 12; i++) {
		assert_int_equal(btf_types_prototype(b, NULL, "vfs_read", &p, &e), 0);
		prototype_write(&p, NULL, text, sizeof(text));
		assert_string_equal(text, "ssize_t vfs_read(struct file *file, char *buf, "
					  "size_t count, loff_t *pos)");
		assert_int_equal(btf_types_prototype(b, NULL, "no_such_function", &p, &e), -ENOENT);
	}
	btf_types_free(b);
}

/* --- statements --- */

struct lines {
	uint32_t v[64];
	size_t n;
};

static int on_statement(void *arg, const struct dwarf_line *l)
{
	struct lines *x = arg;

	assert_true(x->n < 64);
	assert_true(!x->n || x->v[x->n - 1] <= l->line);
	x->v[x->n++] = l->line;
	return 0;
}

static bool has_line(const struct lines *x, uint32_t line)
{
	for (size_t i = 0; i < x->n; i++)
		if (x->v[i] == line)
			return true;
	return false;
}

static int on_source(void *arg, const char *path)
{
	*(bool *)arg |= strstr(path, "/lib.c") != NULL;
	return 0;
}

static void statements_of_a_file_and_of_a_function(void **state)
{
	struct lines all = {0}, add = {0};
	struct error e = {0};
	CLEANUP(dwarf_freep) struct dwarf *d = NULL;
	struct binary *b;
	bool found = false;

	(void)state;
	build_run("gcc -w -g -O0 -o lib lib.c");
	b = open_built("lib");
	assert_int_equal(dwarf_new(binary_path(b), &d), 0);
	assert_int_equal(dwarf_statements(d, "lib.c", NULL, on_statement, &all, &e), 0);
	assert_int_equal(dwarf_statements(d, "lib.c", "ad?", on_statement, &add, &e), 0);
	for (uint32_t line = 6; line <= 11; line++)
		assert_true(has_line(&all, line) && has_line(&add, line));
	assert_true(has_line(&all, 24));
	assert_false(has_line(&add, 24));
	assert_false(has_line(&all, 3));
	assert_int_equal(dwarf_statements(d, "lib.c", "none", on_statement, &add, &e), -ENOENT);
	assert_non_null(strstr(e.text, "is of a function none"));
	assert_int_equal(dwarf_statements(d, "no.c", NULL, on_statement, &add, &e), -ENOENT);
	assert_int_equal(dwarf_source_files(d, on_source, &found, &e), 0);
	assert_true(found);
	binary_close(b);
}

static void lines_at_which_a_variable_has_a_value(void **state)
{
	CLEANUP(dwarf_freep) struct dwarf *d = NULL;
	struct binary *b;
	uint32_t below, above;

	(void)state;
	build_run("gcc -w -g -O2 -o lib lib.c");
	b = open_built("lib");
	assert_int_equal(dwarf_new(binary_path(b), &d), 0);
	dwarf_lines_with(d, "lib.c", 9, "x", &below, &above);
	assert_true(below >= 6 && below <= 8);
	assert_true(!above || (above > 9 && above <= 11));
	dwarf_lines_with(d, "lib.c", 9, "no", &below, &above);
	assert_true(!below && !above);
	binary_close(b);
}

/* --- types that are given --- */

static int collect(void *arg, const struct dwarf_variable *v)
{
	char *text = arg, type[80];
	size_t len = strlen(text);

	ctype_write(&v->type, v->name, type, sizeof(type));
	snprintf(text + len, 400 - len, "%s%s in %s", len ? ", " : "", type,
		 v->where.n_items ? v->where.items[0].reg : "?");
	return 0;
}

static void expect_given(const char *file, const char *function, const char *want)
{
	CLEANUP(given_types_freep) struct given_types *g = NULL;
	struct dwarf_variable v = {0};
	struct error e = {0};
	char path[256], text[400] = "";

	snprintf(path, sizeof(path), "%s/%s", build_dir, file);
	if (given_types_open(path, &g, &e) ||
	    given_types_parameters(g, EM_X86_64, function, collect, text, &e))
		fail_msg("%s: %s", file, e.text);
	assert_string_equal(text, want);
	assert_int_equal(given_types_return(g, EM_X86_64, function, &v, &e), 0);
	assert_int_equal(given_types_parameters(g, EM_X86_64, "nosuch", collect, text, &e),
			 -ENOENT);
	assert_non_null(strstr(e.text, "nosuch"));
}

static void types_come_from_other_files(void **state)
{
	(void)state;
	build_run("gcc -w -g -O2 -c -o lib.o lib.c");
	build_run("gcc -w -g -O2 -shared -fPIC -o lib.so lib.c");
	build_run("clang -w -g -O2 -c -o clib.o lib.c");
	/* declarations only: of what is used, whose names of parameters are in the header */
	build_run("echo '#include \"lib.h\"\nvoid *used[] = {add, names, each};' >used.c &&"
		  /* what a cache has may be of another directory */
		  " CCACHE_DISABLE=1 gcc -w -g -c used.c");
	expect_given("lib.o", "add", "int n in di, const char *why in si");
	expect_given("clib.o", "add", "int n in di, const char *why in si");
	expect_given("lib.so", "names",
		     "const volatile int *p in di, char *const q in si, size_t n in dx");
	expect_given("used.o", "add", "int n in di, const char *why in si");
	expect_given("used.o", "each",
		     "struct node *list in di, int (*f)(void *, const struct node *) in si, "
		     "void *arg in dx");
	/* by its number one would be called as the other one is */
	build_run("echo 'long odd(int arg1, long);' >odd.h &&"
		  " echo '#include \"odd.h\"\nvoid *used[] = {odd};' >odd.c &&"
		  " CCACHE_DISABLE=1 gcc -w -g -c odd.c");
	expect_given("odd.o", "odd", "int arg0 in di, long int arg1 in si");
	build_run("mv lib.h away.h");
	expect_given("used.o", "add", "int arg0 in di, const char *arg1 in si");
	build_run("mv away.h lib.h");
}

static void types_come_from_btf(void **state)
{
	CLEANUP(given_types_freep) struct given_types *g = NULL;
	struct error e = {0};
	char text[400] = "";

	(void)state;
	if (access(KERNEL_BTF, R_OK))
		skip();
	assert_int_equal(given_types_open(KERNEL_BTF, &g, &e), 0);
	assert_int_equal(given_types_parameters(g, EM_X86_64, "vfs_read", collect, text, &e), 0);
	assert_string_equal(text, "struct file *file in di, char *buf in si, size_t count in dx, "
				  "loff_t *pos in cx");
}

static void refuse(const char *path, int code, const char *why)
{
	struct given_types *g = NULL;
	struct error e = {0};

	assert_int_equal(given_types_open(path, &g, &e), code);
	if (!strstr(e.text, why))
		fail_msg("%s: %s", path, e.text);
}

static void files_without_types_are_refused(void **state)
{
	char path[256];

	(void)state;
	build_run("gcc -w -O2 -c -o plain.o lib.c && head -c 300 plain.o >cut");
	snprintf(path, sizeof(path), "%s/lib.h", build_dir);
	refuse(path, -EINVAL, "only a compiler knows");
	snprintf(path, sizeof(path), "%s/plain.o", build_dir);
	refuse(path, -ENODATA, "has no types");
	snprintf(path, sizeof(path), "%s/cut", build_dir);
	refuse(path, -ENODATA, "has no types");
	refuse(build_dir, -ENODATA, "has no types");
	refuse("/no/such/file", -ENOENT, "No such file");
}

/* --- calling conventions --- */

/* "n x0": in which registers the pieces of each parameter are. */
static int collect_pieces(void *arg, const struct dwarf_variable *v)
{
	char *text = arg;

	snprintf(text + strlen(text), 400 - strlen(text), "%s%s", *text ? ", " : "", v->name);
	for (size_t i = 0; i < v->where.n_pieces; i++) {
		const struct where_piece *p = &v->where.pieces[i];
		const char *at =
			p->kind == WHERE_NOWHERE ? p->vector : v->where.items[p->first].reg;

		snprintf(text + strlen(text), 400 - strlen(text), " %s%s",
			 p->kind == WHERE_MEMORY ? "@" : "", at ? at : "?");
	}
	return 0;
}

/* As gcc for both has them: what is all floating-point is in vector registers, on x86-64 by halves
 * and on arm64 by elements; what is mixed is so by halves on x86-64, and not at all on arm64. */
static void parameters_by_the_calling_convention(void **state)
{
	static const struct {
		const char *function, *x86, *arm64;
	} cases[] = {
		{"scalars", "a xmm0, n di, b xmm1", "a v0, n x0, b v1"},
		{"mixed", "m xmm0 di, k si", "m x0 x1, k x2"},
		{"packed", "m di, k si", "m x0, k x1"},
		{"pair", "m xmm0, d xmm1, k di", "m v0 v1, d v2, k x0"},
		{"many", "a xmm0 xmm1, b xmm2 xmm3, c xmm4 xmm5, d xmm6 xmm7, e @sp, k di",
		 "a v0 v1, b v2 v3, c v4 v5, d v6 v7, e @sp, k x0"},
	};
	CLEANUP(given_types_freep) struct given_types *g = NULL;
	struct error e = {0};
	char path[256];

	(void)state;
	build_run("echo 'struct mixed { double d; long n; }; struct packed { float f; int i; };"
		  "struct pair { float x, y; }; struct two { double x, y; };"
		  "long scalars(double a, long n, float b) { return n; }"
		  "long mixed(struct mixed m, long k) { return k; }"
		  "long packed(struct packed m, long k) { return k; }"
		  "long pair(struct pair m, double d, long k) { return k; }"
		  "long many(struct two a, struct two b, struct two c, struct two d, struct two e,"
		  " long k) { return k; }' >abi.c && gcc -w -g -c abi.c");
	snprintf(path, sizeof(path), "%s/abi.o", build_dir);
	assert_int_equal(given_types_open(path, &g, &e), 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char x86[400] = "", arm64[400] = "";

		given_types_parameters(g, EM_X86_64, cases[i].function, collect_pieces, x86, &e);
		given_types_parameters(g, EM_AARCH64, cases[i].function, collect_pieces, arm64, &e);
		assert_string_equal(x86, cases[i].x86);
		assert_string_equal(arm64, cases[i].arm64);
	}
}

/* --- types that Go's interfaces name (go/types.s) --- */

#define GO_TYPES     "tests/fuzz/corpus/fuzz_dwarf/go-types"
#define GO_TYPES_AT  0x401100
#define GO_ONLY_NAME 0x40

static void types_by_what_go_knows_of_them(void **state)
{
	static const struct {
		uint64_t at;
		const char *name;
		enum ctype_kind kind;
	} cases[] = {
		{0x10, "int", CTYPE_INTEGER},
		{0x20, "main.point", CTYPE_STRUCT},
		{0x30, "*main.point", CTYPE_POINTER},
		{GO_ONLY_NAME, "map[int]int", CTYPE_VOID},
	};
	struct dwarf *d CLEANUP(dwarf_freep) = NULL;
	const char *name;
	struct ctype t;

	(void)state;
	assert_int_equal(dwarf_new(GO_TYPES, &d), 0);
	assert_int_equal(dwarf_load_go_types(d), 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(dwarf_go_type(d, GO_TYPES_AT + cases[i].at, &name, &t), 0);
		assert_string_equal(name, cases[i].name);
		assert_int_equal(t.kind, cases[i].kind);
	}
	/* in the midst of one, behind all, and nowhere */
	assert_int_equal(dwarf_go_type(d, GO_TYPES_AT + 0x18, &name, &t), -ENOENT);
	assert_int_equal(dwarf_go_type(d, GO_TYPES_AT + 0x1000, &name, &t), -ENOENT);
	assert_int_equal(dwarf_go_type(d, 0, &name, &t), -ENOENT);
}

/* A file of debug data anywhere is the program's, if it is of the same build; others are not. */
static void debug_data_of_the_same_build(void **state)
{
	struct error e = {0};
	struct binary *b;
	struct dwarf *d;
	char path[256];

	(void)state;
	build_run("gcc -w -g -O2 -Wl,--build-id -o full lib.c && strip -o bare full &&"
		  " gcc -w -g -O1 -Wl,--build-id -o other lib.c");
	b = open_built("bare");
	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/%s", build_dir, i ? "other" : "full");
		assert_int_equal(dwarf_new(binary_path(b), &d), 0);
		assert_int_equal(dwarf_look_in(d, path), 0);
		assert_int_equal(dwarf_load(d, &e), i ? -ENODATA : 0);
		dwarf_free(d);
	}
	binary_close(b);
}

/* --- names of parameters in the text of a header --- */

static void names_in_the_text_of_a_declaration(void **state)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
		{"int f(int n, const char *why);", "n why"},
		{"int f(int, const char *, size_t, struct s *, unsigned long);", "- - - - -"},
		{"int f(struct s *a, struct s b, enum e c, const t_t d, unsigned e);", "a b c d e"},
		{"int f(struct s, enum e, const t_t);", "- - -"},
		{"int f(int (*cb)(void *arg, int), char t[4], int (*m)[3]);", "cb t m"},
		{"void *f(/* int a, */ int b, // c\n int d);", "b d"},
		{"int f(int a __attribute__((unused)), int b);", "a b"},
		{"int f(const char *format, ...) __attribute__((format(printf, 1, 2)));", "format"},
		{"int f(void);", ""},
		{"int f();", ""},
		{"int f(void *);", "-"},
		{"int f(int a = g(1, 2), int b = 3);", "a b"},
		{"int g(int x), f(int y);", "y"},
		{"int\nf\n(int z);", "z"},
		{"/* f(int q) */ \"f(int r)\" int f(int s);", "s"},
		{"int g(int x);", "none"},
		{"int f(int x", "none"},
		{"\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\nint f(int x);", "none"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const char *text = cases[i].text;
		struct c_name v[8];
		char got[80] = "";
		int n = c_parameter_names(text, strlen(text), 1, "f", v, ARRAY_SIZE(v));

		for (int k = 0; k < n; k++)
			snprintf(got + strlen(got), sizeof(got) - strlen(got), "%s%.*s",
				 k ? " " : "", v[k].len ? (int)v[k].len : 1,
				 v[k].len ? v[k].s : "-");
		if (!streq(n < 0 ? "none" : got, cases[i].want))
			fail_msg("%s: got '%s' (%d), expected '%s'", text, got, n, cases[i].want);
	}
	assert_int_equal(c_parameter_names("f(int a)", 8, 2, "f", NULL, 0), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions_are_written_as_they_are_declared),
		cmocka_unit_test(functions_of_cxx),
		cmocka_unit_test(what_is_long_is_cut_off),
		cmocka_unit_test(functions_of_the_kernel),
		cmocka_unit_test(statements_of_a_file_and_of_a_function),
		cmocka_unit_test(lines_at_which_a_variable_has_a_value),
		cmocka_unit_test(types_come_from_other_files),
		cmocka_unit_test(parameters_by_the_calling_convention),
		cmocka_unit_test(types_by_what_go_knows_of_them),
		cmocka_unit_test(types_come_from_btf),
		cmocka_unit_test(files_without_types_are_refused),
		cmocka_unit_test(debug_data_of_the_same_build),
		cmocka_unit_test(names_in_the_text_of_a_declaration),
	};

	return cmocka_run_group_tests(tests, build, build_dir_remove);
}
