// SPDX-License-Identifier: GPL-2.0-or-later
/* What the commands have in common that make something of a trace. */
#include <fcntl.h>
#include <fnmatch.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "probes/build/path.h"
#include "tools/trace/build/build.h"
#include "tools/trace/build/defaults.h"
#include "tools/trace/ready/ready.h"

const struct opt build_opts[] = {
	[BUILD_OPT_FILE] = {"file", 'O', OPT_STRING, "FILE", "write to a file",
			    offsetof(struct build_view, path), &words_file},
	[BUILD_OPT_ONLY] = {"only", 0, OPT_STRINGS, "GLOB",
			    "only files whose path matches, or whose name if GLOB has no '/'",
			    offsetof(struct build_view, only), NULL},
	[BUILD_OPT_EXCEPT] = {"except", 0, OPT_STRINGS, "GLOB", "not these files",
			      offsetof(struct build_view, except), NULL},
	[BUILD_OPT_SYSTEM] = {"system", 0, OPT_FLAG, NULL,
			      "files of the system too: what is below /usr, /etc, /proc and so "
			      "on, and caches of compilers",
			      offsetof(struct build_view, system), NULL},
};

/* --- caches of compilers --- */

static int add_cache(struct build_view *v, const char *dir, const char *below)
{
	autofree char *path = NULL;

	/* (what is off, or begins where a process is, is no cache) */
	if (!dir || dir[0] != '/' || v->caches.n >= BUILD_CACHES_MAX)
		return 0;
	path = path_join(dir, below, strlen(below));
	if (!path)
		return -ENOMEM;
	for (size_t i = 0; i < v->caches.n; i++)
		if (streq(v->caches.v[i], path))
			return 0;
	return strv_add(&v->caches, path);
}

/* Where they are is in the environments of those that use them. */
static int find_caches(struct build_view *v)
{
	int err = 0;

	for (size_t i = 0; err == 0 && i < v->build.n_cmds; i++) {
		const struct build_cmd *c = &v->build.cmds[i];
		const char *cache = build_env(c, "XDG_CACHE_HOME"), *home = build_env(c, "HOME");

		err = add_cache(v, build_env(c, "GOCACHE"), "");
		if (err == 0)
			err = add_cache(v, build_env(c, "CCACHE_DIR"), "");
		if (err == 0)
			err = add_cache(v, home, ".ccache");
		if (err == 0)
			err = add_cache(v, cache ? cache : home,
					cache ? "go-build" : ".cache/go-build");
		if (err == 0)
			err = add_cache(v, cache ? cache : home,
					cache ? "ccache" : ".cache/ccache");
	}
	return err;
}

const char *build_view_cache(const struct build_view *v, const char *path)
{
	for (size_t i = 0; i < v->caches.n; i++)
		if (path_below(path, v->caches.v[i]))
			return v->caches.v[i];
	return NULL;
}

/* --- the trace --- */

static int map_trace(struct build_view *v, const char *path, struct error *e)
{
	autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return error_set(e, -errno, "'%.200s' cannot be read: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return error_set(e, -EINVAL, "'%.200s' is no regular file", path);
	if (!st.st_size)
		return error_set(e, -EINVAL, "'%.200s' is empty: it is no trace of a build", path);
	v->len = (size_t)st.st_size;
	v->data = mmap(NULL, v->len, PROT_READ, MAP_PRIVATE, fd, 0);
	if (v->data != MAP_FAILED)
		return 0;
	v->data = NULL;
	return error_set(e, -errno, "'%.200s' cannot be read: %s", path, strerror(errno));
}

static int read_trace(struct build_view *v, const char *path, struct error *e)
{
	struct error why = {0};
	int err = map_trace(v, path, e);

	if (err < 0)
		return err;
	err = build_read(&v->build, v->data, v->len, &why);
	if (err < 0)
		return error_set(e, err, "'%.150s' cannot be used: %.300s", path, why.text);
	for (size_t i = 0; i < v->build.n_cmds && !v->root; i++)
		if (v->build.cmds[i].executed)
			v->root = v->build.cmds[i].cwd;
	return find_caches(v) < 0 ? error_set(e, -ENOMEM, "out of memory") : 0;
}

bool build_view_begin(struct build_view *v, int words, int argc, char **argv, int *status)
{
	struct error e = {0};
	int err;

	v->out.fd = -1;
	if (!argc) {
		*status = cmd_usage(v->c, "say which trace: the FILE of 'ax trace build -o FILE'");
		return false;
	}
	if (argc > words) {
		*status = cmd_usage(v->c, "unexpected word '%.100s'", argv[words]);
		return false;
	}
	err = read_trace(v, argv[0], &e);
	if (err == 0)
		err = v->secret && v->path ? trace_out_private(&v->out, v->path, &e)
					   : trace_out_file(&v->out, v->path, &e);
	if (err == 0)
		return true;
	*status = cmd_failed(v->c, &e);
	return false;
}

int build_view_end(struct build_view *v, int status)
{
	struct error e = {0};

	if (v->out.buf) {
		trace_out_flush(&v->out);
		if (v->out.error) {
			error_set(&e, -v->out.error, "the output could not be written: %s",
				  strerror(v->out.error));
			status = cmd_failed(v->c, &e);
		}
	}
	trace_out_close(&v->out);
	if (!v->build.whole && *v->build.incomplete) {
		fprintf(stderr, "ax %s: the trace is not whole: %s\n", v->c->name,
			v->build.incomplete);
		status = status == CMD_OK ? CMD_FAILED : status;
	}
	build_free(&v->build);
	if (v->data)
		munmap(v->data, v->len);
	strv_free(&v->only);
	strv_free(&v->except);
	strv_free(&v->caches);
	return status;
}

/* --- files --- */

static bool matches(const struct build_view *v, const char *glob, const char *path)
{
	const char *name = build_view_name(v, path);

	if (!strchr(glob, '/'))
		return !fnmatch(glob, path_base(path), 0) || !fnmatch(glob, name, 0);
	return !fnmatch(glob, path, 0) || !fnmatch(glob, name, 0);
}

static bool matches_any(const struct build_view *v, const struct strv *globs, const char *path)
{
	for (size_t i = 0; i < globs->n; i++)
		if (matches(v, globs->v[i], path))
			return true;
	return false;
}

/* A build may be below /opt or the like. */
bool build_view_is_system(const struct build_view *v, const char *path)
{
	if (build_view_cache(v, path))
		return true;
	if (v->root && v->root[1] && path_below(path, v->root))
		return false;
	return path_is_system(path);
}

/* What is asked for by name is shown wherever it is. */
bool build_view_shows(const struct build_view *v, const char *path)
{
	if (matches_any(v, &v->except, path))
		return false;
	if (v->only.n)
		return matches_any(v, &v->only, path);
	return v->system || !build_view_is_system(v, path);
}

const char *build_view_name(const struct build_view *v, const char *path)
{
	size_t n = v->root ? strlen(v->root) : 0;

	if (n > 1 && path_below(path, v->root) && path[n])
		return path + n + 1;
	return path;
}

/* --- text --- */

void build_view_words(struct build_view *v, const struct build_words *words, size_t most)
{
	size_t done = 0;

	for (size_t at = 0; at < words->len;) {
		size_t n = strlen(words->v + at);

		if (most && done && done + n > most) {
			trace_out_text(&v->out, " ...");
			return;
		}
		if (at)
			trace_out_char(&v->out, ' ');
		ready_shell_word(&v->out, words->v + at, n);
		done += n + 1;
		at += n + 1;
	}
}

const char *build_change_word(uint32_t type)
{
	switch (type) {
	case AX_BUILD_RENAME:
		return "rename";
	case AX_BUILD_LINK:
		return "link";
	case AX_BUILD_SYMLINK:
		return "symlink";
	case AX_BUILD_UNLINK:
		return "remove";
	case AX_BUILD_MKDIR:
		return "mkdir";
	case AX_BUILD_RMDIR:
		return "rmdir";
	case AX_BUILD_MKNOD:
		return "mknod";
	case AX_BUILD_TRUNCATE:
		return "truncate";
	case AX_BUILD_CHMOD:
		return "chmod";
	default:
		return NULL;
	}
}
