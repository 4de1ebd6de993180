// SPDX-License-Identifier: GPL-2.0-or-later
#include "probes/build/compile.h"
#include "probes/build/path.h"
#include "probes/build/priv.h"

struct list {
	struct build_compile *v;
	size_t n, size;
};

static bool is_one_of(const char *word, size_t len, const char *const *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strlen(v[i]) == len && !strncmp(word, v[i], len))
			return true;
	return false;
}

static bool is_wrapper(const char *word)
{
	static const char *const names[] = {"ccache", "distcc", "sccache", "icecc"};
	const char *base = path_base(word);

	return is_one_of(base, strlen(base), names, ARRAY_SIZE(names));
}

/* Without what stands for its version and machine. */
static bool is_named(const char *word, const char *const *names, size_t n)
{
	const char *base = path_base(word), *from = base;
	size_t len = strlen(base);

	while (len && strchr("0123456789.", base[len - 1]))
		len--;
	if (len && len < strlen(base) && base[len - 1] == '-')
		len--;
	else
		len = strlen(base);
	for (size_t i = 0; i < len; i++)
		if (base[i] == '-')
			from = base + i + 1;
	return is_one_of(from, len - (size_t)(from - base), names, n);
}

/* gcc, gcc-12, x86_64-linux-gnu-gcc-12, clang++-14, musl-gcc */
static bool is_compiler(const char *word)
{
	static const char *const names[] = {"cc",      "gcc", "g++", "c++", "clang", "icc", "icpc",
					    "clang++", "c99", "c89", "tcc", "icx",   "icpx"};

	return is_named(word, names, ARRAY_SIZE(names));
}

/* Of other languages, with temporary files of their own. */
static bool is_other_compiler(const char *word)
{
	static const char *const names[] = {"rustc", "gfortran", "gdc",	    "gccgo",	"gnatmake",
					    "nvcc",  "ghc",	 "ocamlc",  "ocamlopt", "swiftc",
					    "mpicc", "mpicxx",	 "mpifort", "ifort",	"ifx",
					    "ldmd2", "ldc2",	 "dmd",	    "flang",	"fpc"};

	return is_named(word, names, ARRAY_SIZE(names));
}

static bool is_source(const char *word)
{
	static const char *const ends[] = {"c",	  "cc", "cp", "cpp", "cxx", "c++", "C", "CPP",
					   "C++", "m",	"mm", "M",   "S",   "sx",  "i", "ii"};
	const char *dot = strrchr(path_base(word), '.');

	return dot && word[0] != '-' && is_one_of(dot + 1, strlen(dot + 1), ends, ARRAY_SIZE(ends));
}

/* The word behind it is its value. */
static bool takes_value(const char *word)
{
	static const char *const options[] = {
		"-o",
		"-x",
		"-I",
		"-L",
		"-D",
		"-U",
		"-l",
		"-T",
		"-u",
		"-z",
		"-A",
		"-G",
		"-MF",
		"-MT",
		"-MQ",
		"-include",
		"-imacros",
		"-isystem",
		"-iquote",
		"-idirafter",
		"-iprefix",
		"-isysroot",
		"-iwithprefix",
		"-Xlinker",
		"-Xclang",
		"-Xassembler",
		"-Xpreprocessor",
		"-arch",
		"-target",
		"-aux-info",
		"-dumpbase",
		"-dumpbase-ext",
		"-dumpdir",
		"-mllvm",
		"-iwithprefixbefore",
		"--param",
		"-specs",
		"-wrapper",
	};

	return is_one_of(word, strlen(word), options, ARRAY_SIZE(options));
}

/* It preprocesses or lists what is included, and compiles nothing. */
static bool is_no_compiling(const char *word)
{
	return streq(word, "-E") || streq(word, "-M") || streq(word, "-MM") || streq(word, "-cc1");
}

static int add(struct list *l, uint32_t cmd, size_t first, const char *source)
{
	if (build_grow(&l->v, l->n, &l->size, sizeof(*l->v)) < 0)
		return -ENOMEM;
	l->v[l->n++] = (struct build_compile){.cmd = cmd, .first = first, .source = source};
	return 0;
}

/* Words from `at` on, of which the first is the compiler's. */
static int add_sources(struct list *l, uint32_t cmd, const struct build_words *w, size_t at,
		       size_t first)
{
	size_t before = l->n;
	const char *output = NULL;
	bool value = false, is_output = false;

	for (at += strlen(w->v + at) + 1; at < w->len; at += strlen(w->v + at) + 1) {
		const char *word = w->v + at;

		if (is_output)
			output = word;
		if (value) {
			value = is_output = false;
			continue;
		}
		if (is_no_compiling(word)) {
			l->n = before;
			return 0;
		}
		value = takes_value(word);
		is_output = streq(word, "-o");
		if (!strncmp(word, "-o", 2) && word[2])
			output = word + 2;
		if (is_source(word) && add(l, cmd, first, word) < 0)
			return -ENOMEM;
	}
	for (size_t i = before; i < l->n; i++)
		l->v[i].output = output;
	return 0;
}

/* The compiler's word, behind those of wrappers; `first`: how many there are. */
static size_t compiler_at(const struct build_words *w, size_t *first)
{
	size_t at = 0;

	for (*first = 0; at < w->len && is_wrapper(w->v + at); ++*first)
		at += strlen(w->v + at) + 1;
	return at;
}

bool build_drives(const struct build *b, uint32_t cmd)
{
	const struct build_words *w = &b->cmds[cmd].argv;
	size_t first, at = compiler_at(w, &first);

	return b->cmds[cmd].executed && at < w->len &&
	       (is_compiler(w->v + at) || is_other_compiler(w->v + at));
}

static int look_at(struct list *l, const struct build *b, uint32_t cmd)
{
	const struct build_words *w = &b->cmds[cmd].argv;
	size_t first, at = compiler_at(w, &first);

	if (!b->cmds[cmd].executed)
		return 0;
	if (at >= w->len || !is_compiler(w->v + at))
		return 0;
	return add_sources(l, cmd, w, at, first);
}

static bool same_source(const struct build *b, const struct build_compile *x,
			const struct build_compile *y)
{
	const char *dx = b->cmds[x->cmd].cwd, *dy = b->cmds[y->cmd].cwd;
	autofree char *a = path_join(dx, x->source, strlen(x->source));
	autofree char *c = path_join(dy, y->source, strlen(y->source));

	return a && c && streq(a, c);
}

/* Started, maybe through others, by a command that compiles the same: by a wrapper, or a driver. */
static bool is_inner(const struct build *b, const struct list *l, const struct build_map *by_cmd,
		     size_t i)
{
	for (uint32_t up = b->cmds[l->v[i].cmd].parent; up != BUILD_NONE; up = b->cmds[up].parent)
		for (uint32_t k = build_map_get(by_cmd, NULL, up); k < l->n && l->v[k].cmd == up;
		     k++)
			if (same_source(b, &l->v[i], &l->v[k]))
				return true;
	return false;
}

static int drop_inner(const struct build *b, struct list *l)
{
	autofree bool *inner = calloc(l->n + 1, sizeof(*inner));
	struct build_map by_cmd = {0};
	size_t n = 0;
	int err = inner ? 0 : -ENOMEM;

	for (size_t i = l->n; err == 0 && i-- > 0;)
		err = build_map_set(&by_cmd, NULL, l->v[i].cmd, (uint32_t)i);
	for (size_t i = 0; err == 0 && i < l->n; i++)
		inner[i] = is_inner(b, l, &by_cmd, i);
	for (size_t i = 0; err == 0 && i < l->n; i++)
		if (!inner[i])
			l->v[n++] = l->v[i];
	free(by_cmd.v);
	l->n = n;
	return err;
}

int build_compiles(const struct build *b, struct build_compile **ret, size_t *n)
{
	struct list l = {0};
	int err = 0;

	for (uint32_t i = 0; err == 0 && i < b->n_cmds; i++)
		err = look_at(&l, b, i);
	if (err == 0)
		err = drop_inner(b, &l);
	if (err < 0) {
		free(l.v);
		return err;
	}
	*ret = l.v;
	*n = l.n;
	return 0;
}
