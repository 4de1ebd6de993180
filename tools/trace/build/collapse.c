// SPDX-License-Identifier: GPL-2.0-or-later
#include <ctype.h>
#include <search.h>

#include "probes/build/deps.h"
#include "probes/build/path.h"
#include "tools/trace/build/collapse.h"
#include "tools/trace/build/defaults.h"

enum commands {
	COMMANDS_EACH,
	COMMANDS_BY_OUTPUT, /* like ones whose output is drawn as one */
	COMMANDS_BY_SHAPE,
	COMMANDS_BY_PROGRAM,
};

/* How many directories of a name are told apart; 0: the files themselves are. */
#define DEEPEST 64
static const struct {
	unsigned int depth;
	enum commands commands;
} levels[] = {
	{0, COMMANDS_EACH},	{DEEPEST, COMMANDS_BY_OUTPUT}, {4, COMMANDS_BY_OUTPUT},
	{4, COMMANDS_BY_SHAPE}, {3, COMMANDS_BY_SHAPE},	       {2, COMMANDS_BY_SHAPE},
	{1, COMMANDS_BY_SHAPE}, {1, COMMANDS_BY_PROGRAM},
};

/* --- texts --- */

static int by_text(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* NULL: out of memory. */
static const char *keep(struct collapse *c, const char *text)
{
	void *found = tfind(text, &c->texts, by_text);
	char *kept = found ? NULL : strdup(text);

	if (found)
		return *(const char **)found;
	if (kept && tsearch(kept, &c->texts, by_text))
		return kept;
	free(kept);
	return NULL;
}

/* --- files --- */

/* Of the system, all below the first two directories is one: /usr/include/...; and so is a cache.
 */
static size_t system_len(const struct collapse *c, const char *path)
{
	const char *cache = build_view_cache(c->v, path);
	size_t n = cache ? strlen(cache) : 0;

	if (cache)
		return n;
	for (int slashes = 0; path[n]; n++)
		if (path[n] == '/' && ++slashes == 3)
			break;
	return n;
}

static const char *system_name(struct collapse *c, const char *path)
{
	char name[BUILD_LABEL_MAX];
	size_t n = system_len(c, path);

	if (n > sizeof(name) - 8)
		n = sizeof(name) - 8;
	snprintf(name, sizeof(name), "%.*s%s", (int)n, path, path[n] ? "/..." : "");
	return keep(c, name);
}

/* ".c": of a few letters, or digits behind a letter; else "". */
static const char *extension(const char *name)
{
	const char *base = path_base(name), *dot = strrchr(base, '.');
	size_t n = dot ? strlen(dot + 1) : 0;

	if (!n || n > 8 || dot == base || !isalpha((unsigned char)dot[1]))
		return "";
	for (size_t i = 1; i <= n; i++)
		if (!isalnum((unsigned char)dot[i]))
			return "";
	return dot;
}

/* "agent/base/" followed by "*.c"; of a deeper one "agent/.../" */
static const char *directory_name(struct collapse *c, const char *path, unsigned int depth)
{
	const char *name = build_view_name(c->v, path);
	size_t all = strlen(name) - strlen(path_base(name)), n = name[0] == '/';
	char text[BUILD_LABEL_MAX];

	for (unsigned int i = 0; n < all && i < depth; i++)
		n += strcspn(name + n, "/") + 1;
	if (n > sizeof(text) - 32)
		n = sizeof(text) - 32;
	snprintf(text, sizeof(text), "%.*s%s*%s", (int)n, name, n < all ? ".../" : "",
		 extension(name));
	return keep(c, text);
}

bool collapse_is_system(const struct collapse *c, const struct build_node *n)
{
	return !c->v->only.n && build_view_is_system(c->v, n->path);
}

const char *collapse_file(void *arg, const struct build_node *n)
{
	struct collapse *c = arg;
	unsigned int depth = levels[c->level].depth;

	if (!build_view_shows(c->v, n->path))
		return NULL;
	if (path_below(n->path, "/dev/null"))
		return n->path;
	if (collapse_is_system(c, n))
		return system_name(c, n->path);
	return depth ? directory_name(c, n->path, depth) : n->path;
}

/* --- commands --- */

struct words_kept {
	char *text;
	size_t size, n;
	size_t last, last_len; /* what was added last */
};

static void add_word(struct words_kept *s, const char *word, size_t len)
{
	if (s->last_len == len && !strncmp(s->text + s->last, word, len))
		return; /* several files of a kind are one */
	if (s->n + len + 2 > s->size)
		return;
	if (s->n)
		s->text[s->n++] = ' ';
	s->last = s->n;
	s->last_len = len;
	memcpy(s->text + s->n, word, len);
	s->n += len;
	s->text[s->n] = '\0';
}

/* True if it is what a file that the command names is called without its extension: "x" beside
 * "a/x.c". */
static bool is_stem(const struct build_words *words, const char *word, size_t len)
{
	const char *at = words->v, *end = words->v + words->len;

	while (len && at < end && (at = memmem(at, (size_t)(end - at), word, len))) {
		if ((at == words->v || !at[-1] || strchr("/ \t\n", at[-1])) && at[len] == '.')
			return true;
		at++;
	}
	return false;
}

/* "-o" and "-O2" as they are; "a/x.c" is "*.c", "-Ia/b" "-I*" and "--output=x.o" "--output=*.o". */
static void add_reduced(struct words_kept *s, const struct build_words *words, const char *word,
			size_t len)
{
	char text[128];
	const char *kind;
	size_t kept = 0;

	snprintf(text, sizeof(text) - 8, "%.*s", (int)len, word);
	kind = extension(text);
	if (!strchr(text, '/') && !*kind && !is_stem(words, word, len)) {
		add_word(s, text, strlen(text));
		return;
	}
	if (text[0] == '-')
		kept = strcspn(text, "=/.") + (text[strcspn(text, "=/.")] == '=');
	if (kept > 2 && text[1] != '-' && text[kept - 1] != '=')
		kept = 2;
	memmove(text + kept + 1, kind, strlen(kind) + 1);
	text[kept] = '*';
	add_word(s, text, strlen(text));
}

/* Two such commands are alike: their words with a '*' for each that names a file. */
static void put_shape(const struct build_cmd *c, char *ret, size_t size)
{
	struct words_kept s = {.text = ret, .size = size};

	*ret = '\0';
	for (size_t at = 0; at < c->argv.len; at += strlen(c->argv.v + at) + 1) {
		const char *word = at ? c->argv.v + at : path_base(c->argv.v);

		/* (a script is in one word) */
		for (; *word; word += strspn(word, " \t\n")) {
			size_t len = strcspn(word, " \t\n");

			if (!at)
				add_word(&s, word, len);
			else if (len)
				add_reduced(&s, &c->argv, word, len);
			word += len;
		}
	}
	if (!c->argv.len)
		snprintf(ret, size, "%s", path_base(c->file));
}

/* What it is called, for a shell what it executes first. */
static void put_program(const struct build_cmd *c, char *ret, size_t size)
{
	char shape[BUILD_LABEL_MAX];
	size_t n;

	put_shape(c, shape, sizeof(shape));
	n = strcspn(shape, " ");
	if (!strncmp(shape + n, " -c ", 4) && n <= strlen("bash") && n >= 2 &&
	    !strncmp(shape + n - 2, "sh", 2))
		n += 4 + strcspn(shape + n + 4, " ");
	snprintf(ret, size, "%.*s", (int)n, shape);
}

void collapse_label(const struct collapse *c, uint32_t cmd, char *ret, size_t size)
{
	const struct build_cmd *command = &c->v->build.cmds[cmd];

	if (levels[c->level].commands == COMMANDS_BY_PROGRAM)
		put_program(command, ret, size);
	else
		put_shape(command, ret, size);
}

const char *collapse_command(void *arg, uint32_t cmd)
{
	struct collapse *c = arg;
	const struct build_cmd *command = &c->v->build.cmds[cmd];
	enum commands how = levels[c->level].commands;
	const char *output = c->output[cmd];
	char text[2 * BUILD_LABEL_MAX];
	size_t n;

	if (how == COMMANDS_EACH)
		return NULL;
	/* (those that failed are red) */
	n = (size_t)snprintf(text, sizeof(text), "%d ", command->ended && command->status);
	if (how == COMMANDS_BY_OUTPUT && output)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s ",
				      directory_name(c, output, levels[c->level].depth));
	collapse_label(c, cmd, text + n, sizeof(text) - n);
	return keep(c, text);
}

/* --- all --- */

static void find_outputs(struct collapse *c, bool processes)
{
	const struct build *b = &c->v->build;

	for (size_t i = 0; i < b->n_nodes; i++) {
		const struct build_node *n = &b->nodes[i];

		if (n->directory || n->gone || !build_view_shows(c->v, n->path))
			continue;
		for (size_t k = 0; k < n->n; k++) {
			const struct build_use *u = &b->uses[n->first + k];
			uint32_t cmd = processes ? build_program(b, build_actor(b, u->cmd))
						 : build_step(b, u->cmd);

			if (cmd != BUILD_NONE && u->access & (BUILD_WRITE | BUILD_MOVE) &&
			    (!c->output[cmd] || strcmp(n->path, c->output[cmd]) < 0))
				c->output[cmd] = n->path;
		}
	}
}

int collapse_begin(struct collapse *c, struct build_view *v, bool processes)
{
	*c = (struct collapse){.v = v};
	c->output = calloc(v->build.n_cmds + 1, sizeof(*c->output));
	if (!c->output)
		return -ENOMEM;
	find_outputs(c, processes);
	return 0;
}

bool collapse_more(struct collapse *c)
{
	if (c->level + 1 == ARRAY_SIZE(levels))
		return false;
	c->level++;
	return true;
}

void collapse_end(struct collapse *c)
{
	free(c->output);
	tdestroy(c->texts, free);
	*c = (struct collapse){0};
}
