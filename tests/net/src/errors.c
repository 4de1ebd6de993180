// SPDX-License-Identifier: GPL-2.0-or-later
/* What the C library says of a file, in several threads. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void *try(void *name)
{
	int fd;

	errno = 0;
	fd = open("/dev/null", O_RDONLY);
	printf("%s: %s\n", (const char *)name, fd == -1 ? strerror(errno) : fd < 0 ? "?" : "open");
	return NULL;
}

int main(void)
{
	pthread_t t;

	try((void *)"first");
	pthread_create(&t, NULL, try, (void *)"thread");
	pthread_join(t, NULL);
	return 0;
}
