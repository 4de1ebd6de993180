/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The SSH session that a process runs in. */
#ifndef AX_IFACE_SSH_SESSION_H
#define AX_IFACE_SSH_SESSION_H

#include "base/util.h"

/* What sshd says about it: client's address and port, then the server's. `pid` 0: the caller's.
 * False: there is none. */
bool ssh_session(pid_t pid, char *buf, size_t size);

#endif
