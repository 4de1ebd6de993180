// SPDX-License-Identifier: GPL-2.0-or-later
#include <fcntl.h>

#include "probes/kvm/guest.h"

#define CMDLINE_MAX (128u << 10)
#define ITEM_MAX    128

/* One of qemu's "a=b,c=d,,e", where two commas are one of the value. Returns where the next one
 * begins, NULL behind the last one. */
static const char *next_item(const char *at, const char *end, char item[ITEM_MAX])
{
	size_t n = 0;

	for (; at < end && *at; at++) {
		bool comma = *at == ',';

		if (comma && (at + 1 == end || at[1] != ',')) {
			item[n] = '\0';
			return at + 1;
		}
		at += comma;
		if (n < ITEM_MAX - 1)
			item[n++] = *at;
	}
	item[n] = '\0';
	return NULL;
}

/* Of the first one, the key may be missing. */
static char *qemu_name(const char *at, const char *end)
{
	static const char key[] = "guest=";
	char item[ITEM_MAX];
	bool first = true;

	for (; at; first = false) {
		at = next_item(at, end, item);
		if (starts_with(item, key))
			return item[strlen(key)] ? strdup(item + strlen(key)) : NULL;
		if (first && *item && !strchr(item, '='))
			return strdup(item);
	}
	return NULL;
}

char *guest_name(const char *cmdline, size_t len)
{
	const char *end = cmdline + len, *word = cmdline, *nul;

	while ((nul = memchr(word, '\0', (size_t)(end - word))) && nul + 1 < end) {
		const char *value = nul + 1;

		if (streq(word, "-name") || streq(word, "--name"))
			return qemu_name(value, end);
		if (streq(word, "--id"))
			return *value ? strndup(value, (size_t)(end - value)) : NULL;
		word = value;
	}
	return NULL;
}

static size_t read_all(int fd, char *buf, size_t size)
{
	size_t n = 0;
	ssize_t r = 1;

	while (r > 0 && n < size) {
		r = read(fd, buf + n, size - n);
		if (r > 0)
			n += (size_t)r;
	}
	return n;
}

char *guest_name_of(uint32_t pid)
{
	autofree char *buf = malloc(CMDLINE_MAX);
	autoclose int fd = -1;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%u/cmdline", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return buf && fd >= 0 ? guest_name(buf, read_all(fd, buf, CMDLINE_MAX)) : NULL;
}
