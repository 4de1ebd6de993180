/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/notify.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include "base/util.h"

/* (A name of the abstract namespace is anybody's when who was told first has gone, as the caller of
 * ax agent --detach has: one who does not read is not waited for.) */
void notify_systemd(const char *text)
{
	const struct timeval most = {.tv_sec = 2};
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	autoclose int fd = -1;
	size_t len = path ? strlen(path) : 0;

	if (!len || len >= sizeof(sun.sun_path) || (path[0] != '/' && path[0] != '@'))
		return;
	memcpy(sun.sun_path, path, len);
	if (path[0] == '@') /* the abstract namespace */
		sun.sun_path[0] = 0;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && !setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof(most)))
		sendto(fd, text, strlen(text), MSG_NOSIGNAL, (struct sockaddr *)&sun,
		       (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len));
}
