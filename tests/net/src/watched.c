// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What ax trace exec and open watch.
 *
 *   watched exec N            executes itself with N arguments, each with what a shell would change
 *   watched args OUT A...     writes its arguments to OUT, each with a NUL behind
 *   watched open DIR          opens files in every way, in a known order
 *   watched opens N           opens a file N times
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int execute(const char *self, int n, const char *out)
{
	char **argv = calloc((size_t)n + 4, sizeof(*argv));

	argv[0] = strdup(self);
	argv[1] = strdup("args");
	argv[2] = strdup(out);
	for (int i = 0; i < n; i++)
		if (asprintf(&argv[i + 3], "%d it's $HOME \"%c\"\t%s", i, 'a' + i % 26,
			     i % 100 ? "" : "\n\x1b[31m\xc3\xa9\xff") < 0)
			return 1;
	execv(self, argv);
	return 1;
}

static int write_args(const char *path, char **argv)
{
	FILE *f = fopen(path, "w");

	if (!f)
		return 1;
	for (; *argv; argv++)
		fwrite(*argv, 1, strlen(*argv) + 1, f);
	return fclose(f) != 0;
}

static int open_all(const char *dir)
{
	struct open_how how = {.flags = O_RDONLY, .resolve = RESOLVE_BENEATH};
	char path[4096], name[600];
	int d = open(dir, O_PATH | O_DIRECTORY);

	snprintf(path, sizeof(path), "%s/new", dir);
	syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
	syscall(SYS_openat, d, "new", O_RDWR | O_APPEND | O_NONBLOCK);
	syscall(SYS_openat2, d, "new", &how, sizeof(how));
	syscall(SYS_openat2, d, "../new", &how, sizeof(how));
#ifdef SYS_open
	syscall(SYS_open, path, O_RDONLY | O_DIRECTORY);
	syscall(SYS_creat, path, 0600);
#endif
	memset(name, 'n', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	snprintf(path, sizeof(path), "%s/%.200s/%.200s/\x1b[31m%.100s", dir, name, name, name);
	syscall(SYS_openat, AT_FDCWD, path, O_RDONLY);
	syscall(SYS_openat, AT_FDCWD, (char *)(uintptr_t)8, O_RDONLY);
	return 0;
}

static int open_often(const char *path, int n)
{
	for (int i = 0; i < n; i++)
		close(open(path, O_RDONLY));
	return 0;
}

int main(int argc, char **argv)
{
	if (argc >= 4 && !strcmp(argv[1], "exec"))
		return execute(argv[0], atoi(argv[2]), argv[3]);
	if (argc >= 3 && !strcmp(argv[1], "args"))
		return write_args(argv[2], argv);
	if (argc == 3 && !strcmp(argv[1], "open"))
		return open_all(argv[2]);
	if (argc == 4 && !strcmp(argv[1], "opens"))
		return open_often(argv[2], atoi(argv[3]));
	return 2;
}
