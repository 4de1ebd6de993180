// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Files and functions by name: programs of all kinds of links, stripped with their names elsewhere,
 * C++ and Rust names, libraries and programs as people call them, IFUNCs, Go, and what is no
 * program.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "tests/lib/probe_programs.h"

#define MARK 0x1122334455667788ull

/* The function that is a mark tells whether an offset leads to where it should. */
static const char program[] =
	"#include <stdio.h>\n"
	"__asm__(\".globl marked\\n.type marked,@function\\n\"\n"
	"	\"marked: .quad 0x1122334455667788\\n.size marked,8\\n\");\n"
	"static __attribute__((noinline)) int hidden(int a) { return a + getchar(); }\n"
	"int work_one(int a) { return hidden(a) * 2; }\n"
	"int work_two(int a) { return hidden(a) * 3; }\n"
	"__attribute__((weak, alias(\"work_two\"))) int __work_alias(int a);\n"
	"__asm__(\".globl _ZN4core3fmt5write17h0123456789abcdefE\\n\"\n"
	"	\".type _ZN4core3fmt5write17h0123456789abcdefE,@function\\n\"\n"
	"	\"_ZN4core3fmt5write17h0123456789abcdefE: nop\\n\"\n"
	"	\".globl _RNvCs1234_7mycrate3foo\\n.type _RNvCs1234_7mycrate3foo,@function\\n\"\n"
	"	\"_RNvCs1234_7mycrate3foo: nop\\n\");\n"
	"int main(int argc, char **argv) { (void)argv; puts(\"\");\n"
	"	return work_one(argc) + work_two(argc); }\n";

struct found {
	struct symbol v[512];
	size_t n;
	char names[8192];
};

static int add(void *arg, const struct symbol *s)
{
	struct found *f = arg;
	size_t n = strlen(f->names);

	if (f->n)
		assert_true(s->address > f->v[f->n - 1].address);
	if (f->n < ARRAY_SIZE(f->v))
		f->v[f->n++] = *s;
	if (sizeof(f->names) - n > 256)
		snprintf(f->names + n, sizeof(f->names) - n, "%.200s ", s->name);
	return 0;
}

static void check_functions(struct binary *b, const char *glob, const char *want)
{
	struct found *f = calloc(1, sizeof(*f));
	struct error e = {0};

	assert_non_null(f);
	if (binary_functions(b, glob, add, f, &e))
		fail_msg("%s: %s", glob, e.text);
	if (!streq(f->names, want))
		fail_msg("%s: '%s', not '%s'", glob, f->names, want);
	free(f);
}

static void check_none(struct binary *b, const char *glob, const char *want)
{
	struct found *f = calloc(1, sizeof(*f));
	struct error e = {0};

	assert_non_null(f);
	if (binary_functions(b, glob, add, f, &e) != -ENOENT)
		fail_msg("%s: there is '%s'", glob, f->names);
	if (!strstr(e.text, want))
		fail_msg("%s: '%s', not '%s'", glob, e.text, want);
	free(f);
}

static uint64_t read_at(struct binary *b, uint64_t offset)
{
	int fd = open(binary_path(b), O_RDONLY | O_CLOEXEC);
	uint64_t v = 0;

	assert_true(fd >= 0);
	assert_int_equal(pread(fd, &v, sizeof(v), (off_t)offset), sizeof(v));
	close(fd);
	return v;
}

static void check_symbolise(struct binary *b, uint64_t offset, const char *want)
{
	struct symbol s = {0};
	int r = binary_symbolise(b, offset, &s);

	if (want ? r || !streq(s.name, want) : r != -ENOENT)
		fail_msg("0x%lx: %d %s, not %s", (unsigned long)offset, r, r ? "" : s.name,
			 want ? want : "none");
}

static void check_program(struct binary *b)
{
	struct symbol s = symbol_of(b, "marked"), work = symbol_of(b, "work_two");

	assert_int_equal(s.size, 8);
	assert_int_equal(read_at(b, s.offset), MARK);
	assert_false(s.ifunc || s.demangled);
	check_symbolise(b, s.offset, "marked");
	check_symbolise(b, s.offset + 7, "marked");
	check_symbolise(b, work.offset + 1, "work_two");
	check_symbolise(b, 1ull << 40, NULL);
	check_symbolise(b, UINT64_MAX, NULL);
	/* other names of one address */
	assert_int_equal(symbol_of(b, "__work_alias").offset, work.offset);
	check_functions(b, "*work_[!o]*", "work_two ");
	assert_string_equal(symbol_of(b, "core::fmt::write").demangled, "core::fmt::write");
	assert_string_equal(symbol_of(b, "*::write").demangled, "core::fmt::write");
	assert_string_equal(symbol_of(b, "mycrate::foo").name, "_RNvCs1234_7mycrate3foo");
}

static void all_kinds_of_links(void **state)
{
	static const char *const options[] = {
		"-O0",
		"-O2",
		"-O2 -no-pie -fno-pie",
		"-O2 -static",
		"-O2 -static-pie",
		"-O2 -shared -fPIC",
		"-O2 -Wl,-z,noseparate-code",
		"-O2 -ffunction-sections -Wl,--gc-sections,--export-dynamic",
	};

	(void)state;
	build_source("program.c", program);
	for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
		struct binary *b;

		build_run("gcc %s program.c -o program", options[i]);
		b = open_built("program");
		check_program(b);
		assert_int_equal(read_at(b, symbol_of(b, "hidden*").offset) == MARK, 0);
		check_none(b, "wrok_one", "did you mean 'work_one'?");
		check_none(b, "nothing_like_it", "has no function nothing_like_it");
		check_none(b, "nothing*", "no function of");
		if (!strstr(options[i], "static"))
			check_none(b, "puts", "in one of its libraries");
		assert_false(binary_is_go(b));
		binary_close(b);
	}
}

static void stripped(void **state)
{
	struct binary *b;

	(void)state;
	build_source("program.c", program);
	build_run("gcc -O2 -shared -fPIC program.c -o program && strip program");
	b = open_built("program");
	assert_int_equal(read_at(b, symbol_of(b, "marked").offset), MARK);
	check_functions(b, "work_*", "work_one work_two ");
	check_none(b, "hidden", "it is stripped");
	binary_close(b);
	build_run("gcc -O2 program.c -o program && strip program");
	b = open_built("program");
	check_none(b, "work_one", "has no names of functions");
	binary_close(b);
}

static void names_beside_the_file(void **state)
{
	static const char *const places[] = {"program.debug", ".debug/program.debug"};
	struct binary *b;

	(void)state;
	build_source("program.c", program);
	build_run("gcc -O2 -g -Wl,--build-id=none program.c -o whole && mkdir -p .debug &&"
		  "objcopy --only-keep-debug whole program.debug &&"
		  "strip whole -o program && objcopy --add-gnu-debuglink=program.debug program");
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		if (i)
			build_run("mv program.debug %s", places[i]);
		b = open_built("program");
		check_program(b);
		check_functions(b, "hidden", "hidden ");
		binary_close(b);
	}
	/* one of another build */
	build_run("echo >>%s", places[1]);
	b = open_built("program");
	check_none(b, "work_one", "has no names");
	binary_close(b);
	build_run("rm -r .debug");
}

static void names_inside_packed(void **state)
{
	struct binary *b;

	(void)state;
	build_source("program.c", program);
	build_run("gcc -O2 program.c -o whole && objcopy --only-keep-debug whole mini &&"
		  "strip --strip-debug mini && xz -k -f mini && strip whole -o program &&"
		  "objcopy --add-section .gnu_debugdata=mini.xz program");
	b = open_built("program");
	check_program(b);
	check_functions(b, "hidden", "hidden ");
	binary_close(b);
	build_run("head -c 200 /dev/urandom >mini.xz && strip whole -o program &&"
		  "objcopy --add-section .gnu_debugdata=mini.xz program");
	b = open_built("program");
	check_none(b, "hidden", "has no names");
	binary_close(b);
}

/* A process whose root is a directory of ours: there can be debug files in /usr/lib/debug. */
static pid_t start_in(const char *root, const char *path)
{
	int out[2];
	pid_t pid;
	char c;

	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		if (chdir(build_dir) || chroot(root))
			_exit(126);
		execl(path, path, (char *)NULL);
		_exit(127);
	}
	close(out[1]);
	assert_int_equal(read(out[0], &c, 1), 0); /* it is the other program now */
	close(out[0]);
	return pid;
}

static void names_by_build_id(void **state)
{
	struct binary *b = NULL;
	struct error e = {0};
	pid_t pid;

	(void)state;
	if (geteuid() != 0)
		skip();
	build_source("program.c", program);
	build_source("waits.c", "#include <unistd.h>\nint main(void) { return pause(); }\n");
	build_run("mkdir -p box/usr/lib/debug/.build-id/12 box/bin &&"
		  "gcc -O2 -g -Wl,--build-id=0x1234567890 program.c -o whole &&"
		  "objcopy --only-keep-debug whole box/usr/lib/debug/.build-id/12/34567890.debug &&"
		  "strip whole -o box/bin/program && ln -sf /bin/program box/bin/linked &&"
		  "gcc -static waits.c -o box/bin/waits");
	pid = start_in("box", "/bin/waits");
	if (binary_open("/bin/program", pid, &b, &e))
		fail_msg("%s", e.text);
	check_program(b);
	check_functions(b, "hidden", "hidden ");
	binary_close(b);
	/* absolute links and $PATH are those of the process */
	if (binary_open("linked", pid, &b, &e))
		fail_msg("%s", e.text);
	assert_int_equal(read_at(b, symbol_of(b, "marked").offset), MARK);
	binary_close(b);
	/* its own program */
	if (binary_open("", pid, &b, &e))
		fail_msg("%s", e.text);
	assert_non_null(strstr(binary_path(b), "/box/bin/waits"));
	binary_close(b);
	assert_int_equal(binary_open("/bin/bash", pid, &b, &e), -ENOENT);
	assert_non_null(strstr(e.text, "in the file system of that process"));
	/* a debug file of another build */
	build_run("cd box/usr/lib/debug/.build-id/12 && mv 34567890.debug 0000000000.debug &&"
		  "gcc -g -Wl,--build-id=0x1234567891 ../../../../../../program.c -o x &&"
		  "objcopy --only-keep-debug x 34567890.debug");
	if (binary_open("/bin/program", pid, &b, &e))
		fail_msg("%s", e.text);
	check_none(b, "hidden", "has no names");
	binary_close(b);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(binary_open("/bin/program", pid, &b, &e), -ESRCH);
}

static const char classes[] =
	"#include <string>\n#include <vector>\n"
	"namespace shop { struct Cart { int n; int add(int a); int add(long a, const char *s);\n"
	"	bool operator==(const Cart &o) const; Cart &operator[](int i); };\n"
	"int Cart::add(int a) { return n += a; }\n"
	"int Cart::add(long a, const char *s) { return n + (int)a + *s; }\n"
	"bool Cart::operator==(const Cart &o) const { return n == o.n; }\n"
	"Cart &Cart::operator[](int i) { n = i; return *this; }\n"
	"template <class T> struct Box { T v; T get(); };\n"
	"template <class T> T Box<T>::get() { return v; }\n"
	"template struct Box<int>; template struct Box<std::string>; }\n"
	"namespace { __attribute__((noinline, used)) int secret(int a) { return a * 7; } }\n"
	"int add(int a) { return secret(a); }\n"
	"extern \"C\" int plain_c(int a) { return a; }\n"
	"int main() { return 0; }\n";

static void names_of_cpp(void **state)
{
	struct binary *b;
	struct symbol s;

	(void)state;
	build_source("classes.cc", classes);
	build_run("g++ -O1 classes.cc -o classes");
	b = open_built("classes");
	check_functions(b, "shop::Cart::add", "_ZN4shop4Cart3addEi _ZN4shop4Cart3addElPKc ");
	check_functions(b, "shop::Cart::add(int)", "_ZN4shop4Cart3addEi ");
	check_functions(b, "_ZN4shop4Cart3addEi", "_ZN4shop4Cart3addEi ");
	check_functions(b, "shop::*::add*", "_ZN4shop4Cart3addEi _ZN4shop4Cart3addElPKc ");
	check_functions(b, "*add(long, char const[*])", "_ZN4shop4Cart3addElPKc ");
	check_functions(b, "shop::Cart::operator==", "_ZNK4shop4CarteqERKS0_ ");
	check_functions(b, "shop::Cart::operator[]", "_ZN4shop4CartixEi ");
	check_functions(b, "add", "_Z3addi ");
	check_functions(b, "plain_c", "plain_c ");
	check_functions(b, "shop::Box<int>::get", "_ZN4shop3BoxIiE3getEv ");
	check_functions(b, "*::secret", "_ZN12_GLOBAL__N_16secretEi ");
	check_functions(b, "(anonymous namespace)::secret", "_ZN12_GLOBAL__N_16secretEi ");
	s = symbol_of(b, "shop::Cart::add");
	assert_string_equal(s.demangled, "shop::Cart::add(int)");
	check_symbolise(b, s.offset + 1, "_ZN4shop4Cart3addEi");
	check_none(b, "shop::Cart::remove", "has no function shop::Cart::remove");
	binary_close(b);
}

static void cold_parts(void **state)
{
	struct binary *b;

	(void)state;
	build_source("cold.s",
		     ".globl warm\n.type warm,@function\nwarm: nop\n.size warm,1\n"
		     ".type warm.cold,@function\nwarm.cold: nop\n.size warm.cold,1\n"
		     ".type warm.isra.0,@function\nwarm.isra.0: nop\n.size warm.isra.0,1\n"
		     ".globl _start\n_start: nop\n");
	build_run("gcc -nostdlib -static cold.s -o cold");
	b = open_built("cold");
	check_functions(b, "warm*", "warm warm.isra.0 ");
	check_functions(b, "*.cold*", "warm.cold ");
	check_functions(b, "warm.cold", "warm.cold ");
	check_none(b, "warm.cald", "did you mean 'warm.cold'?");
	check_none(b, "warm.isra", "did you mean 'warm.isra.0'?");
	binary_close(b);
}

static void libraries_and_programs_by_name(void **state)
{
	static const char *const names[] = {"c", "libc", "libc.so.6"};
	char path[PATH_MAX + 64], *saved;
	struct binary *b = NULL;
	struct error e = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (binary_open(names[i], 0, &b, &e))
			fail_msg("%s: %s", names[i], e.text);
		assert_non_null(strstr(binary_path(b), "/libc.so.6"));
		check_functions(b, "getenv", "getenv ");
		binary_close(b);
	}
	/* as a process has it mapped: our own */
	if (binary_open("cmocka", getpid(), &b, &e))
		fail_msg("%s", e.text);
	check_functions(b, "_cmocka_run_group_tests", "_cmocka_run_group_tests ");
	binary_close(b);
	if (binary_open("bash", 0, &b, &e))
		fail_msg("%s", e.text);
	assert_int_equal(binary_path(b)[0], '/');
	check_functions(b, "readline", "readline ");
	binary_close(b);
	/* $PATH and the directory that the user is in */
	build_source("program.c", program);
	build_run("mkdir -p bin && gcc program.c -o bin/only-here");
	saved = strdup(getenv("PATH"));
	snprintf(path, sizeof(path), "/nowhere::%s/bin", build_dir);
	setenv("PATH", path, 1);
	if (binary_open("only-here", 0, &b, &e))
		fail_msg("%s", e.text);
	binary_close(b);
	setenv("PATH", saved, 1);
	free(saved);
	assert_int_equal(binary_open("only-here", 0, &b, &e), -ENOENT);
	assert_non_null(strstr(e.text, "no program or library 'only-here'"));
	assert_non_null(getcwd(path, sizeof(path)));
	assert_int_equal(chdir(build_dir), 0);
	assert_int_equal(binary_open("bin/only-here", 0, &b, &e), 0);
	assert_int_equal(binary_path(b)[0], '/');
	binary_close(b);
	assert_int_equal(chdir(path), 0);
}

#ifdef __x86_64__
/* Says at which of its addresses each function of libc is, as the dynamic linker chose. */
static const char chosen[] =
	"#include <dlfcn.h>\n#include <stdio.h>\n"
	"int main(int argc, char **argv) { for (int i = 1; i < argc; i++) {\n"
	"	Dl_info d; void *p = dlsym(RTLD_DEFAULT, argv[i]); dladdr(p, &d);\n"
	"	printf(\"%s %lx\\n\", argv[i], (long)((char *)p - (char *)d.dli_fbase)); }\n"
	"	return 0; }\n";

static void check_chosen(struct binary *b, const char *name, uint64_t address)
{
	struct found *f = calloc(1, sizeof(*f));
	struct error e = {0};
	bool seen = false, chooses = false;

	assert_non_null(f);
	if (binary_functions(b, name, add, f, &e))
		fail_msg("%s: %s", name, e.text);
	for (size_t i = 0; i < f->n; i++) {
		chooses |= f->v[i].ifunc;
		seen |= f->v[i].address == address;
	}
	assert_true(chooses || f->n == 1);
	if (!seen)
		fail_msg("%s: 0x%lx is not among %zu", name, (unsigned long)address, f->n);
	free(f);
}

static void check_libc(struct binary *b)
{
	char cmd[PATH_MAX], name[64];
	unsigned long address;
	unsigned n = 0;
	FILE *f;

	snprintf(cmd, sizeof(cmd),
		 "%s/chosen memcpy memmove mempcpy memset memcmp strlen strchr strcmp strcpy "
		 "strstr wcslen getenv",
		 build_dir);
	f = popen(cmd, "r");
	assert_non_null(f);
	for (; fscanf(f, "%63s %lx", name, &address) == 2; n++)
		check_chosen(b, name, address);
	assert_int_equal(pclose(f), 0);
	assert_int_equal(n, 12);
}

static void what_ifuncs_choose_from(void **state)
{
	struct binary *b = NULL;
	struct error e = {0};

	(void)state;
	build_source("chosen.c", chosen);
	build_run("gcc -D_GNU_SOURCE chosen.c -o chosen -ldl");
	if (binary_open("c", 0, &b, &e))
		fail_msg("%s", e.text);
	check_libc(b);
	/* without the names that a debug file has of the implementations */
	build_run("objcopy -R .note.gnu.build-id -R .gnu_debuglink %s bare", binary_path(b));
	binary_close(b);
	b = open_built("bare");
	check_libc(b);
	binary_close(b);
}
#endif

static void check_open(const char *name, int code, const char *want)
{
	char path[PATH_MAX];
	struct error e = {0};
	struct binary *b = NULL;
	int r;

	snprintf(path, sizeof(path), "%s/%s", build_dir, name);
	r = binary_open(*name ? path : name, 0, &b, &e);
	if (r != code || !strstr(e.text, want))
		fail_msg("%s: %d '%s', not %d '%s'", name, r, e.text, code, want);
}

static void what_is_no_program(void **state)
{
	Elf64_Ehdr h = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS32, ELFDATA2LSB, EV_CURRENT}};
	char path[PATH_MAX];
	FILE *f;

	(void)state;
	build_source("program.c", program);
	build_source("script", "#!/usr/bin/env perl\n");
	build_source("empty", "");
	build_run("gcc -g -c program.c -o object.o && gcc -g program.c -o whole &&"
		  "objcopy --only-keep-debug whole debug && mkfifo fifo");
	snprintf(path, sizeof(path), "%s/small", build_dir);
	f = fopen(path, "w");
	assert_non_null(f);
	assert_int_equal(fwrite(&h, sizeof(h), 1, f), 1);
	assert_int_equal(fclose(f), 0);
	check_open("nothing", -ENOENT, "there is no file");
	check_open("script", -ENOEXEC, "name its interpreter (/usr/bin/env perl)");
	check_open("empty", -ENOEXEC, "is no ELF file");
	check_open("program.c", -ENOEXEC, "is no ELF file");
	check_open("object.o", -ENOEXEC, "is an object file");
	check_open("small", -ENOEXEC, "is a 32-bit file");
	check_open("fifo", -EINVAL, "is no regular file");
	check_open("", -EINVAL, "must be named");
	/* the sections of a debug file are empty, but its headers are those of the program */
	check_open("debug", -ENOEXEC, "is it a debug file");
}

static void functions_of_go(void **state)
{
	char root[PATH_MAX] = "", path[PATH_MAX + 16];
	FILE *f = popen("go env GOROOT 2>/dev/null", "r");
	struct binary *b = NULL, *bare;
	struct error e = {0};
	struct symbol s, t;

	(void)state;
	assert_non_null(f);
	if (!fgets(root, sizeof(root), f))
		root[0] = 0;
	pclose(f);
	root[strcspn(root, "\n")] = 0;
	if (!*root)
		skip();
	snprintf(path, sizeof(path), "%s/bin/go", root);
	if (binary_open(path, 0, &b, &e))
		fail_msg("%s", e.text);
	build_run("cp %s bare && strip bare 2>/dev/null", path);
	bare = open_built("bare");
	assert_true(binary_is_go(b) && binary_is_go(bare));
	s = symbol_of(b, "fmt.Sprintf");
	t = symbol_of(bare, "fmt.Sprintf");
	assert_true(s.offset == t.offset && s.size > 0 && t.size >= s.size);
	check_symbolise(bare, t.offset + 5, "fmt.Sprintf");
	s = symbol_of(b, "bytes.(*Buffer).WriteString");
	assert_int_equal(s.offset, symbol_of(bare, "bytes.(*Buffer).WriteString").offset);
	binary_close(bare);
	binary_close(b);
}

/* --- files that were made to take for ever --- */

#define MANY	  100000
#define CODE_SIZE (256u << 10)

static void put(FILE *f, const void *what, size_t len)
{
	assert_int_equal(fwrite(what, 1, len, f), len);
}

/* Functions that are all at one address, or all as long as the code; with names that are ends of
 * one another. */
static void write_table(const char *name, bool one_address, unsigned type, size_t name_len)
{
	const char section_names[] = "\0.text\0.symtab\0.strtab";
	const uint64_t text_at = sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr),
		       table_at = text_at + CODE_SIZE,
		       names_at = table_at + MANY * sizeof(Elf64_Sym),
		       section_names_at = names_at + name_len + 2,
		       sections_at = section_names_at + sizeof(section_names);
	const Elf64_Ehdr h = {
		.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
		.e_type = ET_DYN,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_phoff = sizeof(h),
		.e_shoff = sections_at,
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 1,
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = 5,
		.e_shstrndx = 4,
	};
	const Elf64_Phdr load = {PT_LOAD, PF_R | PF_X, text_at, 0x1000, 0, CODE_SIZE, CODE_SIZE, 1};
	const Elf64_Shdr sections[5] = {
		{0},
		{1, SHT_PROGBITS, SHF_EXECINSTR, 0x1000, text_at, CODE_SIZE, 0, 0, 1, 0},
		{7, SHT_SYMTAB, 0, 0, table_at, MANY * sizeof(Elf64_Sym), 3, 0, 8,
		 sizeof(Elf64_Sym)},
		{15, SHT_STRTAB, 0, 0, names_at, name_len + 2, 0, 0, 1, 0},
		{0, SHT_STRTAB, 0, 0, section_names_at, sizeof(section_names), 0, 0, 1, 0},
	};
	char path[PATH_MAX];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", build_dir, name);
	f = fopen(path, "w");
	assert_non_null(f);
	put(f, &h, sizeof(h));
	put(f, &load, sizeof(load));
	for (size_t i = 0; i < CODE_SIZE / 4; i++)
		put(f, "\x48\x89\xf8\x90", 4); /* mov %rdi,%rax; nop */
	for (size_t i = 0; i < MANY; i++) {
		const Elf64_Sym s = {.st_name = (uint32_t)(1 + i % (name_len - 1)),
				     .st_info = ELF64_ST_INFO(STB_GLOBAL, type),
				     .st_shndx = 1,
				     .st_value = 0x1000 + (one_address ? 0 : i),
				     .st_size = CODE_SIZE};

		put(f, &s, sizeof(s));
	}
	put(f, "", 1);
	for (size_t i = 0; i < name_len; i++)
		put(f, i % 80 ? "a" : "_", 1);
	put(f, "", 1);
	put(f, section_names, sizeof(section_names));
	put(f, sections, sizeof(sections));
	assert_int_equal(fclose(f), 0);
}

static int place_it(void *arg, const struct symbol *s)
{
	struct error e = {0};
	struct place p;

	binary_place(arg, s, s->offset, false, &p, &e);
	return 0;
}

/* The limit is far above what it takes with sanitizers on a slow machine, and far below what it
 * takes if something of it is done for each pair of functions. */
static void files_made_to_take_for_ever(void **state)
{
	static const struct {
		bool one_address;
		unsigned type;
		size_t name_len;
	} kinds[] = {
		{true, STT_FUNC, 60},	    {false, STT_FUNC, 60},	{false, STT_FUNC, 8000},
		{false, STT_FUNC, 1000000}, {false, STT_GNU_IFUNC, 60}, {true, STT_GNU_IFUNC, 60},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		clock_t start = clock();
		struct error e = {0};
		struct symbol s;
		struct binary *b;

		write_table("table", kinds[i].one_address, kinds[i].type, kinds[i].name_len);
		b = open_built("table");
		assert_int_equal(binary_functions(b, "not_there", place_it, b, &e), -ENOENT);
		binary_functions(b, "*", place_it, b, &e);
		binary_symbolise(b, sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr) + 1000, &s);
		binary_close(b);
		if ((clock() - start) / CLOCKS_PER_SEC > 10)
			fail_msg("kind %zu takes %ld s", i,
				 (long)(clock() - start) / CLOCKS_PER_SEC);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_kinds_of_links),
		cmocka_unit_test(stripped),
		cmocka_unit_test(names_beside_the_file),
		cmocka_unit_test(names_inside_packed),
		cmocka_unit_test(names_by_build_id),
		cmocka_unit_test(names_of_cpp),
		cmocka_unit_test(cold_parts),
		cmocka_unit_test(libraries_and_programs_by_name),
#ifdef __x86_64__
		cmocka_unit_test(what_ifuncs_choose_from),
#endif
		cmocka_unit_test(what_is_no_program),
		cmocka_unit_test(functions_of_go),
		cmocka_unit_test(files_made_to_take_for_ever),
	};

	return cmocka_run_group_tests_name("probe_symbols", tests, build_dir_make,
					   build_dir_remove);
}
