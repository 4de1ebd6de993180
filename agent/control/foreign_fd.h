/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Descriptors of strangers: closing one may take as long as they like. A socket with SO_LINGER
 * waits for its peer, a file of FUSE for whoever serves it; and who sends them over a Unix socket
 * and leaves has the last reference dropped by who closes that socket. So threads do that. (To
 * refuse them there is SO_PASSRIGHTS since Linux 6.16 only.)
 */
#ifndef AX_CONTROL_FOREIGN_FD_H
#define AX_CONTROL_FOREIGN_FD_H

#include "base/util.h"

#define FOREIGN_FDS_MAX	    253 /* of one message: SCM_MAX_FD of the kernel */
#define FOREIGN_FDS_WAITING 64	/* of a user, with which he is listened to no more */

/* Whether it is memory of memfd_create() or a network namespace, which close() does not wait for.
 */
bool fd_is_harmless(int fd);
/* Closes what a user sent, or the socket by which: then also all that was sent over it and not
 * read. Its other end sees the end at once. */
void foreign_fd_close(int fd, unsigned uid);
/* How many of a user's are still to be closed. */
unsigned foreign_fds_of(unsigned uid);

#endif
