// SPDX-License-Identifier: GPL-2.0-or-later
#include "probes/build/path.h"

/* Appends the parts of a name to an absolute path that begins at `out`, whose end is returned. */
static char *append(char *out, char *end, const char *name, size_t len)
{
	for (size_t at = 0; at < len;) {
		const char *slash = memchr(name + at, '/', len - at);
		size_t n = slash ? (size_t)(slash - (name + at)) : len - at;
		const char *part = name + at;

		at += n + 1;
		if (!n || (n == 1 && part[0] == '.'))
			continue;
		if (n == 2 && part[0] == '.' && part[1] == '.') {
			while (end > out && *--end != '/')
				;
			continue;
		}
		*end++ = '/';
		memcpy(end, part, n);
		end += n;
	}
	return end;
}

char *path_join(const char *dir, const char *name, size_t len)
{
	size_t dir_len = dir ? strlen(dir) : 0;
	char *out = malloc(dir_len + len + 4), *end = out;

	if (!out)
		return NULL;
	if (!len || name[0] != '/')
		end = append(out, end, dir ? dir : "", dir_len);
	end = append(out, end, name, len);
	if (end == out)
		*end++ = '/';
	*end = '\0';
	return out;
}

char *path_of_names(const char *names, size_t len, bool deep)
{
	char *path = malloc(len + 8), *at = path;

	if (!path)
		return NULL;
	if (deep)
		at = stpcpy(at, "/...");
	for (size_t end = len; end > 0;) {
		size_t begin = end - 1; /* of the NUL */

		while (begin > 0 && names[begin - 1])
			begin--;
		*at++ = '/';
		memcpy(at, names + begin, end - 1 - begin);
		at += end - 1 - begin;
		end = begin;
	}
	if (at == path)
		*at++ = '/';
	*at = '\0';
	return path;
}

const char *path_base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

bool path_below(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	if (n == 1 && dir[0] == '/')
		return path[0] == '/';
	return !strncmp(path, dir, n) && (!path[n] || path[n] == '/');
}

bool path_is_system(const char *path)
{
	static const char *const dirs[] = {"/usr",  "/lib",  "/lib64", "/lib32", "/bin", "/sbin",
					   "/etc",  "/proc", "/sys",   "/dev",	 "/run", "/var/lib",
					   "/boot", "/opt",  "/nix",   "/snap"};

	if (path_below(path, "/usr/src") || path_below(path, "/usr/local/src"))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++)
		if (path_below(path, dirs[i]))
			return true;
	return false;
}
