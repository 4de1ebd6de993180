// SPDX-License-Identifier: GPL-2.0-or-later
#include <fcntl.h>
#include <sys/stat.h>

#include "tests/lib/build_trace.h"

static void put(struct build_trace *t, const void *data, size_t len)
{
	t->v = realloc(t->v, t->len + len);
	if (!t->v)
		abort();
	memcpy(t->v + t->len, data, len);
	t->len += len;
}

static void put_record(struct build_trace *t, const void *head, size_t head_len, const char *text,
		       size_t text_len)
{
	uint32_t len = (uint32_t)(head_len + text_len);

	put(t, &len, sizeof(len));
	put(t, head, head_len);
	put(t, text, text_len);
}

/* Names from the innermost to the root. Returns their length. */
static size_t names_of(const char *path, char *to)
{
	size_t n = 0;

	for (const char *end = path + strlen(path); end > path;) {
		const char *begin = end;

		while (begin > path && begin[-1] != '/')
			begin--;
		if (end > begin) {
			memcpy(to + n, begin, (size_t)(end - begin));
			n += (size_t)(end - begin);
			to[n++] = '\0';
		}
		end = begin > path ? begin - 1 : path;
	}
	return n;
}

static struct ax_build_head head_of(struct build_trace *t, uint32_t type, uint32_t pid)
{
	return (struct ax_build_head){.time_ns = t->time++, .type = type, .pid = pid, .tid = pid};
}

void build_trace_begin(struct build_trace *t, uint32_t pid)
{
	struct ax_build_file head = {.magic = AX_BUILD_MAGIC,
				     .order = AX_BUILD_ORDER,
				     .version = AX_BUILD_VERSION,
				     .start_ns = 1000,
				     .pid = pid};

	*t = (struct build_trace){.time = 1000};
	put(t, &head, sizeof(head));
}

void build_trace_free(struct build_trace *t)
{
	free(t->v);
	*t = (struct build_trace){0};
}

void build_trace_fork(struct build_trace *t, uint32_t pid, uint32_t child)
{
	struct ax_build_fork r = {.head = head_of(t, AX_BUILD_FORK, pid), .child = child};

	put_record(t, &r, sizeof(r), "", 0);
}

static void put_piece(struct build_trace *t, uint32_t pid, uint32_t what, const char *text,
		      size_t len)
{
	struct ax_exec_piece p = {.pid = pid, .what = what, .len = (uint32_t)len};

	put_record(t, &p, sizeof(p), text, len);
}

void build_trace_exec(struct build_trace *t, uint32_t pid, const char *cwd, const char *words)
{
	static const char env[] = "A=b\0PATH=/bin";
	struct ax_build_exec r = {0};
	char argv[512], names[512];
	size_t len = strlen(words) + 1;

	memcpy(argv, words, len);
	for (char *p = argv; *p; p++)
		if (*p == ' ')
			*p = '\0';
	put_piece(t, pid, AX_EXEC_FILE, argv, strlen(argv) + 1);
	put_piece(t, pid, AX_EXEC_ARGV, argv, len);
	put_piece(t, pid, AX_EXEC_ENV, env, sizeof(env));
	put_piece(t, pid, AX_EXEC_CWD, names, names_of(cwd, names));
	r.head = head_of(t, AX_BUILD_EXEC, pid);
	r.argv_len = len;
	r.env_len = sizeof(env);
	r.exe_len = (uint32_t)names_of(argv, names);
	put_record(t, &r, sizeof(r), names, r.exe_len);
}

void build_trace_exit(struct build_trace *t, uint32_t pid, uint32_t status)
{
	struct ax_build_exit r = {.head = head_of(t, AX_BUILD_EXIT, pid), .status = status};

	put_record(t, &r, sizeof(r), "", 0);
}

void build_trace_call(struct build_trace *t, uint32_t pid, const struct build_trace_call *c)
{
	struct ax_build_path r = {.head = head_of(t, c->type, pid),
				  .ret = c->ret,
				  .flags = c->flags,
				  .file_mode = S_IFREG | 0644,
				  .dir = c->dir ? 3 : AT_FDCWD,
				  .dir2 = AT_FDCWD};
	char text[4096], *at = text;

	if (c->name)
		at = stpcpy(at, c->name);
	r.len[AX_BUILD_NAME] = (uint32_t)(at - text);
	if (c->name2)
		at = stpcpy(at, c->name2);
	r.len[AX_BUILD_NAME2] = (uint32_t)(at - text) - r.len[AX_BUILD_NAME];
	r.len[AX_BUILD_DIR] = c->dir ? (uint32_t)names_of(c->dir, at) : 0;
	at += r.len[AX_BUILD_DIR];
	r.len[AX_BUILD_REAL] = c->real ? (uint32_t)names_of(c->real, at) : 0;
	at += r.len[AX_BUILD_REAL];
	put_record(t, &r, sizeof(r), text, (size_t)(at - text));
}

void build_trace_open(struct build_trace *t, uint32_t pid, uint64_t flags, const char *real)
{
	build_trace_call(t, pid,
			 &(struct build_trace_call){.type = AX_BUILD_OPEN,
						    .ret = 3,
						    .flags = flags,
						    .name = real,
						    .real = real});
}

void build_trace_end(struct build_trace *t)
{
	struct ax_build_end r = {.head = head_of(t, AX_BUILD_END, 1)};

	put_record(t, &r, sizeof(r), "", 0);
}
