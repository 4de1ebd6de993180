/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "control/text.h"

#define SEALS (F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK)

int control_text_seal(const char *text, size_t len)
{
	autoclose int fd = memfd_create("text", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	for (size_t at = 0; fd >= 0 && at < len;) {
		ssize_t n = write(fd, text + at, len - at);

		if (n < 0)
			return -errno;
		at += (size_t)n;
	}
	return fd < 0 || fcntl(fd, F_ADD_SEALS, SEALS) < 0 ? -errno : take_fd(&fd);
}

int control_text_read(int fd, size_t max, char **ret, size_t *len)
{
	autofree char *text = NULL;
	struct stat st;
	int seals = fcntl(fd, F_GET_SEALS); /* (of whatever is no memory it fails) */
	size_t at = 0;

	if (seals < 0 || (seals & SEALS) != SEALS || fstat(fd, &st) < 0)
		return -EINVAL;
	if ((size_t)st.st_size > max)
		return -EFBIG;
	text = malloc((size_t)st.st_size + 1);
	if (!text)
		return -ENOMEM;
	while (at < (size_t)st.st_size) {
		ssize_t n = pread(fd, text + at, (size_t)st.st_size - at, (off_t)at);

		if (n <= 0)
			return -EINVAL;
		at += (size_t)n;
	}
	text[at] = '\0';
	*ret = take_ptr(&text);
	*len = at;
	return 0;
}
