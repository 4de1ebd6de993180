// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What debug data says of programs, against what these programs have in their registers and memory:
 * each is built in several ways and stopped where a probe would be.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <elf.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "probes/types/dwarf.h"
#include "tests/lib/probe_fetch.h"

#ifdef __x86_64__
static const char program[] =
	"#include <string.h>\n"
	"#define NOINLINE __attribute__((noinline, noclone))\n"
	"struct inner { int x; short y; };\n"
	"struct node {\n"
	"	char tag; unsigned low : 3; int mid : 5; unsigned long high : 40;\n"
	"	struct inner in;\n"
	"	union { long u; unsigned char bytes[8]; };\n"
	"	const char *name; char text[12]; struct node *next;\n"
	"	struct inner list[3]; _Bool on; enum { RED, NEG = -2 } color;\n"
	"};\n"
	"struct pair { long a; const char *b; };\n"
	"struct big { long v[4]; };\n"
	"static int counter = 41;\n"
	"int shared = 7;\n"
	"volatile int sink;\n"
	"short table[2][3] = {{1, 2, 3}, {4, 5, -6}};\n"
	"static __thread int mine = 3;\n"
	"static inline __attribute__((always_inline)) int twice(int tv)\n"
	"{\n"
	"	sink = tv; /*@inlined*/\n"
	"	return tv * 2;\n"
	"}\n"
	"NOINLINE int work(int n, struct node *p, const char *s, signed char c, struct pair q,\n"
	"		  double d, unsigned short last, struct big b, long on_stack) /*@work*/\n"
	"{\n"
	"	int total = n;\n"
	"	for (int i = 0; i < 3; i++)\n"
	"		total += p->list[i].x; /*@loop*/\n"
	"	counter += total; /*@after*/\n"
	"	sink = total + (int)strlen(s) + c + (int)q.a + *q.b + (int)d + last + "
	"(int)b.v[1];\n"
	"	sink += (int)on_stack + mine++;\n"
	"	shared += twice(total); /*@call*/\n"
	"	__asm__ volatile(\"\" : : \"r\"(p) : \"memory\"); /* all of it is read */\n"
	"	return -total;\n"
	"}\n"
	"\n" /*@no code*/
	"NOINLINE struct pair make_pair(int k)\n"
	"{\n"
	"	struct pair r = {k, \"made\"};\n"
	"	sink = k;\n"
	"	return r;\n"
	"}\n"
	"NOINLINE struct big make_big(int k)\n"
	"{\n"
	"	struct big r = {{k, k + 1}};\n"
	"	sink = k;\n"
	"	{\n"
	"		volatile int k = 55;\n"
	"		sink = k; /*@block*/\n"
	"	}\n"
	"	return r;\n"
	"}\n"
	"NOINLINE const char *word(int k) { sink = k; return \"a word\"; }\n"
	"NOINLINE void nothing(int k) { sink = k; }\n"
	"NOINLINE _Bool truth(unsigned char k) { return k > 3; }\n"
	"int main(void)\n"
	"{\n"
	"	static struct node second = {.tag = 'z', .name = \"second\"};\n"
	"	struct node n = {.tag = 'q', .low = 5, .mid = -3, .high = 0x1234567890, .in = {-9, "
	"8},\n"
	"		.u = 0x0807060504030201, .name = \"node\", .text = \"text\", .next = "
	"&second,\n"
	"		.list = {{10, 1}, {20, -2}, {30, 3}}, .on = 1, .color = NEG};\n"
	"	struct pair q = make_pair(6);\n"
	"	struct big b = make_big(sink);\n"
	"	nothing(2);\n"
	"	sink = work(4, &n, word(3), -5, q, 2.5, 65535, b, -77) + truth(9);\n"
	"	return 0;\n"
	"}\n";

/* The number of the line that has this mark; 1 for the first one. */
static uint32_t line_of(const char *mark)
{
	const char *at = strstr(program, mark);
	uint32_t line = 1;

	assert_non_null(at);
	for (const char *s = program; s < at; s++)
		line += *s == '\n';
	return line;
}

struct places {
	uint64_t offsets[32];
	char functions[32][40], inlined[32][40];
	size_t n;
};

static int on_line(void *arg, const struct dwarf_line *l)
{
	struct places *p = arg;

	assert_true(p->n < 32);
	p->offsets[p->n] = l->offset;
	snprintf(p->functions[p->n], 40, "%s", l->function ? l->function : "");
	snprintf(p->inlined[p->n++], 40, "%s", l->inlined ? l->inlined : "");
	return 0;
}

static uint64_t address_of(struct binary *b, uint64_t offset)
{
	struct symbol s = {0};

	assert_int_equal(binary_symbolise(b, offset, &s), 0);
	return s.address + (offset - s.offset);
}

struct target {
	struct binary *b;
	struct dwarf *d;
};

static struct target open_target(const char *name)
{
	struct target t = {.b = open_built(name)};

	assert_int_equal(dwarf_new(binary_path(t.b), &t.d), 0);
	return t;
}

static void close_target(struct target *t)
{
	dwarf_free(t->d);
	binary_close(t->b);
}

/* Where the function that it is in goes on when it has returned. */
static void run_to_return(struct stopped *s)
{
	uint64_t to = peek(s, s->regs.rsp);
	long word = ptrace(PTRACE_PEEKTEXT, s->pid, (void *)to, NULL);
	struct user_regs_struct regs = s->regs;
	int status;

	ptrace(PTRACE_POKETEXT, s->pid, (void *)s->at, (void *)s->word);
	ptrace(PTRACE_POKETEXT, s->pid, (void *)to, (void *)((word & ~0xffl) | 0xcc));
	ptrace(PTRACE_SETREGS, s->pid, NULL, &regs);
	ptrace(PTRACE_CONT, s->pid, NULL, NULL);
	assert_int_equal(waitpid(s->pid, &status, 0), s->pid);
	assert_true(WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP);
	ptrace(PTRACE_GETREGS, s->pid, NULL, &s->regs);
	s->regs.rip--;
}

/* The text of the values, or the error's. */
static void fetch_at(struct target *t, const char *text, uint64_t offset, bool all, char *buf,
		     size_t size)
{
	struct probe_spec p = {0};
	struct fetch_texts texts = {0};
	struct fetch_place place = {
		.machine = EM_X86_64, .dwarf = t->d, .offset = offset, .all_parameters = all};
	struct fetch f = {0};
	struct error e = {0};
	struct fetch_run r = {0};
	struct stopped s;

	if (probe_parse(text, &p, &e))
		fail_msg("%s: %s", text, e.text);
	if (fetch_compile(&p, TRACE_WATCH, &place, &texts, &f, &e)) {
		snprintf(buf, size, "%s", e.text);
	} else {
		s = stop_at(t->b, address_of(t->b, offset), offset);
		r.s = &s;
		run_entry(&r, &f);
		if (p.kind == PROBE_URETPROBE)
			run_to_return(&s);
		run_values(&r, &f);
		snprintf(buf, size, "%s", r.text);
		if (f.n_values && f.values[0].gone)
			snprintf(buf, size, "%s", f.values[0].gone);
		stopped_kill(&s);
		fetch_free(&f);
	}
	fetch_texts_free(&texts);
	probe_spec_free(&p);
}

static uint64_t function_offset(struct target *t, const char *name)
{
	return symbol_of(t->b, name).offset;
}

static void expect_in(struct target *t, const char *probe, const char *args, const char *function,
		      bool all, const char *want)
{
	char text[512], got[4096];

	snprintf(text, sizeof(text), "%s:/x:%s %s", probe, function, args);
	fetch_at(t, text, function_offset(t, function), all, got, sizeof(got));
	if (!streq(got, want))
		fail_msg("%s of %s: got '%s', expected '%s'", text, binary_path(t->b), got, want);
}

/* What the caller put into registers and onto the stack. */
static void check_entry(struct target *t)
{
	expect_in(t, "uprobe", "n s c last on_stack q.a q.b b.v[1] b.v[0]:x64", "work", false,
		  "n=4 s=\"a word\" c=-5 last=65535 on_stack=-77 q.a=6 q.b=\"made\" b.v[1]=7 "
		  "b.v[0]=0x6");
	expect_in(t, "uprobe", "p->tag p->low p->mid p->high p->in.x p->in.y p->u", "work", false,
		  "p->tag='q' p->low=5 p->mid=-3 p->high=78187493520 p->in.x=-9 p->in.y=8 "
		  "p->u=578437695752307201");
	expect_in(t, "uprobe", "p->bytes[2] p->name p->text p->next->name p->next->tag", "work",
		  false,
		  "p->bytes[2]=3 p->name=\"node\" p->text=\"text\" p->next->name=\"second\" "
		  "p->next->tag='z'");
	expect_in(t, "uprobe",
		  "p->list[1].x p->list[n-2].y p->on p->color arg1->in *s s[2] p->bytes", "work",
		  false,
		  "p->list[1].x=20 p->list[n-2].y=3 p->on=1 p->color=-2 "
		  "arg1->in=f7ffffff08000000 *s='a' s[2]='w' p->bytes=0102030405060708");
	expect_in(t, "uprobe", "counter shared table[1][2] table[n-3][0]", "work", false,
		  "counter=41 shared=7 table[1][2]=-6 table[n-3][0]=4");
}

static void check_returns(struct target *t)
{
	expect_in(t, "uretprobe", "retval n@entry p@entry->tag counter@entry", "work", false,
		  "retval=-64 n@entry=4 p@entry->tag='q' counter@entry=41");
	expect_in(t, "uretprobe", "retval.a retval.b", "make_pair", false,
		  "retval.a=6 retval.b=\"made\"");
	expect_in(t, "uretprobe", "retval.v[1]", "make_big", false, "retval.v[1]=7");
	expect_in(t, "uretprobe", "retval", "word", false, "retval=\"a word\"");
	expect_in(t, "uretprobe", "retval", "truth", false, "retval=1");
	expect_in(t, "uretprobe", "", "nothing", true, "");
	expect_in(t, "uretprobe", "", "word", true, "retval=\"a word\"");
	expect_in(t, "uprobe", "", "truth", true, "k=9");
}

static void check_refusals(struct target *t)
{
	char got[4096];
	uint64_t work = function_offset(t, "work");

	fetch_at(t, "uprobe:/x:work zzz", work, false, got, sizeof(got));
	assert_non_null(strstr(got, "has no variable zzz here: expected one of n, p, s, c"));
	fetch_at(t, "uprobe:/x:work p->nam", work, false, got, sizeof(got));
	assert_non_null(strstr(got, "struct node has no member nam: did you mean 'name'?"));
	fetch_at(t, "uprobe:/x:work n->x", work, false, got, sizeof(got));
	assert_non_null(strstr(got, "has no members"));
	fetch_at(t, "uprobe:/x:work d", work, false, got, sizeof(got));
	assert_non_null(strstr(got, "floating-point"));
	fetch_at(t, "uprobe:/x:work mine", work, false, got, sizeof(got));
	if (!strstr(got, "variable of each thread"))
		fail_msg("%s", got);
	fetch_at(t, "uretprobe:/x:work n", work, false, got, sizeof(got));
	assert_non_null(strstr(got, "expected n@entry"));
}

/* A value, or that it is optimised away, which only may be where the compiler optimised. */
static void expect_local(struct target *t, const char *mark, const char *name, const char *want,
			 bool optimised)
{
	struct places at = {0};
	struct error e = {0};
	char text[128], got[4096], full[128];

	if (dwarf_lines(t->d, "program.c", line_of(mark), on_line, &at, &e))
		fail_msg("%s: %s", mark, e.text);
	snprintf(text, sizeof(text), "line:/x:program.c:%u %s", line_of(mark), name);
	snprintf(full, sizeof(full), "%s=%s", name, want);
	fetch_at(t, text, at.offsets[0], false, got, sizeof(got));
	if (optimised && strstr(got, "optimised away"))
		return;
	if (!streq(got, full))
		fail_msg("%s of %s: got '%s', expected '%s'", text, binary_path(t->b), got, full);
}

/* At a line, what has no value is said to have none, and why. */
static void expect_gone(struct target *t)
{
	struct places at = {0};
	struct error e = {0};
	char text[128], got[4096];

	assert_int_equal(dwarf_lines(t->d, "program.c", line_of("/*@after*/"), on_line, &at, &e),
			 0);
	snprintf(text, sizeof(text), "line:/x:program.c:%u mine", line_of("/*@after*/"));
	fetch_at(t, text, at.offsets[0], false, got, sizeof(got));
	assert_non_null(strstr(got, "it is a variable of each thread"));
}

static void check_lines(struct target *t, bool optimised)
{
	struct places at = {0};
	struct error e = {0};

	expect_local(t, "/*@after*/", "total", "64", optimised);
	expect_local(t, "/*@after*/", "n", "4", optimised);
	expect_local(t, "/*@after*/", "counter", "41", false);
	expect_local(t, "/*@after*/", "s", "\"a word\"", optimised);
	expect_local(t, "/*@loop*/", "i", "0", optimised);
	expect_local(t, "/*@inlined*/", "tv", "64", optimised);
	expect_local(t, "/*@call*/", "total", "64", optimised);
	expect_gone(t);
	assert_int_equal(dwarf_lines(t->d, "program.c", line_of("/*@inlined*/"), on_line, &at, &e),
			 0);
	assert_true(at.n >= 1);
	assert_string_equal(at.functions[0], "twice");
	assert_string_equal(at.inlined[0], "work");
	assert_int_equal(dwarf_lines(t->d, "program.c", 1, on_line, &at, &e), -ENOENT);
	assert_non_null(strstr(e.text, "program.c:1 has no code: the next line that has is "));
	assert_int_equal(dwarf_lines(t->d, "rogram.c", 1, on_line, &at, &e), -ENOENT);
	assert_non_null(strstr(e.text, "is of a source file rogram.c"));
}

static void check_locals(struct target *t)
{
	struct places at = {0};
	struct error e = {0};
	char text[64], got[4096];

	assert_int_equal(dwarf_lines(t->d, "program.c", line_of("/*@loop*/"), on_line, &at, &e), 0);
	snprintf(text, sizeof(text), "line:/x:program.c:%u", line_of("/*@loop*/"));
	fetch_at(t, text, at.offsets[0], true, got, sizeof(got));
	assert_non_null(strstr(got, "n=4 p=0x"));
	assert_non_null(strstr(got, " s=\"a word\" c=-5 q=0600000000000000"));
	assert_non_null(strstr(got, " last=65535 b=06000000000000000700000000000000"));
	assert_non_null(strstr(got, " on_stack=-77 i=0 total=4"));

	/* what a block calls like a parameter */
	expect_local(t, "/*@block*/", "k", "55", false);
}

struct function_list {
	char text[1024];
};

static int on_function(void *arg, const struct dwarf_function *f)
{
	struct function_list *l = arg;
	size_t len = strlen(l->text);

	assert_true(f->size > 0);
	snprintf(l->text + len, sizeof(l->text) - len, "%s ", f->name);
	return 0;
}

static void check_functions(struct target *t)
{
	struct function_list l = {0};
	struct error e = {0};
	size_t inlined = 0;

	assert_int_equal(dwarf_functions(t->d, "pro*.c", "make_*", on_function, &l, NULL, &e), 0);
	assert_string_equal(l.text, "make_pair make_big ");
	l.text[0] = '\0';
	assert_int_equal(dwarf_functions(t->d, "program.c", NULL, on_function, &l, &inlined, &e),
			 0);
	assert_non_null(strstr(l.text, "work "));
	assert_non_null(strstr(l.text, "main "));
	assert_null(strstr(l.text, "twice "));
	assert_int_equal(inlined, 1);
	assert_int_equal(dwarf_functions(t->d, "none.c", NULL, on_function, &l, NULL, &e), -ENOENT);
	assert_int_equal(dwarf_functions(t->d, "program.c", "x*", on_function, &l, NULL, &e),
			 -ENOENT);
}

static void check_build(const char *compiler, const char *flags, bool optimised)
{
	struct target t;

	build_source("program.c", program);
	build_run("%s -w -g %s program.c -o program", compiler, flags);
	t = open_target("program");
	check_entry(&t);
	check_returns(&t);
	check_refusals(&t);
	check_lines(&t, optimised);
	check_functions(&t);
	if (!optimised)
		check_locals(&t);
	close_target(&t);
}

static void test_gcc_plain(void **state)
{
	(void)state;
	check_build("gcc", "-O0", false);
}
static void test_gcc_optimised(void **state)
{
	(void)state;
	check_build("gcc", "-O2", true);
}
static void test_gcc_fixed(void **state)
{
	(void)state;
	check_build("gcc", "-O0 -no-pie -fno-pie -gdwarf-4 -fno-asynchronous-unwind-tables", false);
	check_build("gcc", "-O2 -no-pie -fno-pie -gdwarf-4 -gz", true);
}
static void test_clang(void **state)
{
	(void)state;
	check_build("clang", "-O0", false);
	check_build("clang", "-O2", true);
	check_build("clang", "-O1 -gdwarf-4 -fomit-frame-pointer", true);
}

static void test_separate_file(void **state)
{
	struct target t;

	(void)state;
	build_source("program.c", program);
	build_run("gcc -w -g -O0 program.c -o program && objcopy --only-keep-debug program p.debug "
		  "&& "
		  "strip -g program && objcopy --add-gnu-debuglink=p.debug program");
	t = open_target("program");
	check_entry(&t);
	check_lines(&t, false);
	close_target(&t);
	build_run("mkdir -p .debug && mv p.debug .debug/");
	t = open_target("program");
	check_locals(&t);
	close_target(&t);
}

static void test_no_data(void **state)
{
	struct target t;
	struct error e = {0};
	struct places at = {0};

	(void)state;
	build_source("program.c", program);
	build_run("gcc -w -O0 program.c -o bare");
	t = open_target("bare");
	assert_int_equal(dwarf_lines(t.d, "program.c", 5, on_line, &at, &e), -ENODATA);
	assert_non_null(strstr(e.text, "has no debug data"));
	/* the same again, since it is remembered */
	memset(&e, 0, sizeof(e));
	assert_int_equal(dwarf_load(t.d, &e), -ENODATA);
	assert_non_null(strstr(e.text, "has no debug data"));
	expect_in(&t, "uretprobe", "retval", "truth", false, "retval=1");
	close_target(&t);
}

/* --- C++ --- */

static const char classes[] =
	"#include <string>\n"
	"volatile int sink;\n"
	"struct base { int first = 11; };\n"
	"namespace ns {\n"
	"int global = 5;\n"
	"class thing : public base {\n"
	"public:\n"
	"	int value = 12; static int many; std::string label = \"a longer label than "
	"inline\";\n"
	"	virtual ~thing() {}\n"
	"	__attribute__((noinline)) int method(int a, std::string by_value, const int &ref,\n"
	"					      bool flag);\n"
	"};\n"
	"int thing::many = 3;\n"
	"int thing::method(int a, std::string by_value, const int &ref, bool flag)\n"
	"{\n"
	"	sink = a + ref + (int)by_value.size() + flag + first + value;\n"
	"	return -a;\n"
	"}\n"
	"}\n"
	"int main() { ns::thing t; int r = 9; return t.method(21, \"abc\", r, true) + 21; }\n";

static void test_classes(void **state)
{
	static const char method[] =
		"_ZN2ns5thing6methodEiNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEERKib";
	struct target t;

	(void)state;
	build_source("classes.cpp", classes);
	for (int i = 0; i < 3; i++) {
		build_run("g++ -g %s classes.cpp -o classes", i == 0   ? "-O0"
							      : i == 1 ? "-O2"
								       : "-O0 -gdwarf-4 -no-pie");
		t = open_target("classes");
		expect_in(&t, "uprobe", "this->value this->first a flag *ref global", method, false,
			  "this->value=12 this->first=11 a=21 flag=1 *ref=9 global=5");
		expect_in(&t, "uprobe", "by_value._M_string_length by_value._M_local_buf", method,
			  false, "by_value._M_string_length=3 by_value._M_local_buf=\"abc\"");
		expect_in(&t, "uretprobe", "retval", method, false, "retval=-21");
		close_target(&t);
	}
}

/* --- what is only computed --- */

static const char computing[] =
	"volatile int sink;\n"
	"__attribute__((noinline, noclone)) int f(int a, int b, const int *p)\n"
	"{\n"
	"	int most = a > b ? a : b, least = a < b ? a : b;\n"
	"	int product = a * b;\n"
	"	long twice = a * 2;\n"
	"	int half = a >> 1;\n"
	"	sink = a;\n" /* 8 */
	"	sink = b;\n"
	"	return *p;\n"
	"}\n"
	"int main(int argc, char **argv)\n"
	"{\n"
	"	int v = argc;\n"
	"	return f(-5 * argc, 7 * argc, &v) == !argv;\n"
	"}\n";

/* Products, signs, and the branches of a choice. What gcc writes wrongly is not shown. */
static void test_computed(void **state)
{
	struct places at = {0};
	struct error e = {0};
	struct target t;
	char got[4096];

	(void)state;
	build_source("computing.c", computing);
	build_run("gcc -w -g -O2 -o computing computing.c");
	t = open_target("computing");
	assert_int_equal(dwarf_lines(t.d, "computing.c", 8, on_line, &at, &e), 0);
	fetch_at(&t, "line:/x:computing.c:8 a b most least product twice", at.offsets[0], false,
		 got, sizeof(got));
	assert_string_equal(got, "a=-5 b=7 most=7 least=-5 product=-35 twice=-10");
	fetch_at(&t, "line:/x:computing.c:8 half", at.offsets[0], false, got, sizeof(got));
	if (!strstr(got, "cannot be done") && !streq(got, "half=-3"))
		fail_msg("%s", got);
	close_target(&t);
}

/* --- Go --- */

static const char go_program[] =
	"package main\n"
	"import \"os\"\n"
	"type point struct { x int; name string }\n"
	"//go:noinline\n"
	"func add(a int, s string, p *point, q point, small int8, list []int) int {\n"
	"	if len(os.Args) > 5 { println(s, q.name, small, list) }\n"
	"	return a + p.x\n"
	"}\n"
	"func main() {\n"
	"	if add(3, \"hello\", &point{4, \"four\"}, point{5, \"five\"}, -6, []int{1}) != 7 "
	"{\n"
	"		os.Exit(1)\n"
	"	}\n"
	"}\n";

static void test_go(void **state)
{
	struct target t;

	(void)state;
	if (system("command -v go >/dev/null 2>&1"))
		skip();
	build_source("p.go", go_program);
	for (int i = 0; i < 2; i++) {
		build_run("HOME=$PWD GOCACHE=$PWD/cache GO111MODULE=off go build %s -o gop p.go",
			  i ? "-gcflags='-N -l'" : "");
		t = open_target("gop");
		expect_in(&t, "uprobe",
			  "a s.len s.str:string[5] p->x p->name.len q.x q.name.len small",
			  "main.add", false,
			  "a=3 s.len=5 s.str=\"hello\" p->x=4 p->name.len=4 q.x=5 "
			  "q.name.len=4 small=-6");
		close_target(&t);
	}
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_gcc_plain),     cmocka_unit_test(test_gcc_optimised),
	cmocka_unit_test(test_gcc_fixed),     cmocka_unit_test(test_clang),
	cmocka_unit_test(test_separate_file), cmocka_unit_test(test_no_data),
	cmocka_unit_test(test_classes),	      cmocka_unit_test(test_go),
	cmocka_unit_test(test_computed),
};
#else
static void test_other_machine(void **state)
{
	(void)state;
	skip(); /* the programs are stopped by what x86-64 has */
}
static const struct CMUnitTest tests[] = {cmocka_unit_test(test_other_machine)};
#endif

int main(void)
{
	return cmocka_run_group_tests(tests, build_dir_make, build_dir_remove);
}
