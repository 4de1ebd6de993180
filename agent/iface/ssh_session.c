// SPDX-License-Identifier: GPL-2.0-or-later
#include "iface/ssh_session.h"

#include <fcntl.h>

#define VARIABLE      "SSH_CONNECTION="
#define ANCESTORS_MAX 32

static ssize_t read_proc(pid_t pid, const char *file, char *buf, size_t size)
{
	autoclose int fd = -1;
	char path[64];
	ssize_t n;
	size_t len = 0;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	while (len < size - 1 && (n = read(fd, buf + len, size - 1 - len)) > 0)
		len += (size_t)n;
	buf[len] = '\0';
	return (ssize_t)len;
}

static bool from_environment(pid_t pid, char *ret, size_t size)
{
	autofree char *env = malloc(256 * 1024);
	ssize_t len = env ? read_proc(pid, "environ", env, 256 * 1024) : -ENOMEM;

	for (ssize_t at = 0; at < len; at += (ssize_t)strlen(env + at) + 1) {
		if (strncmp(env + at, VARIABLE, strlen(VARIABLE)) != 0)
			continue;
		snprintf(ret, size, "%s", env + at + strlen(VARIABLE));
		return true;
	}
	return false;
}

static pid_t parent_of(pid_t pid)
{
	char stat[512], *end;
	int parent;

	if (read_proc(pid, "stat", stat, sizeof(stat)) <= 0)
		return 0;
	end = strrchr(stat, ')'); /* the name before it may hold anything */
	return end && sscanf(end, ") %*c %d", &parent) == 1 ? parent : 0;
}

/* sudo and su take the variable away: then whoever started them still has it. */
bool ssh_session(pid_t pid, char *buf, size_t size)
{
	const char *own = pid ? NULL : getenv("SSH_CONNECTION");

	if (own) {
		snprintf(buf, size, "%s", own);
		return true;
	}
	if (!pid)
		pid = getppid();
	for (int i = 0; i < ANCESTORS_MAX && pid > 1; i++) {
		if (from_environment(pid, buf, size))
			return true;
		pid = parent_of(pid);
	}
	return false;
}
