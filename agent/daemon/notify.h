/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Telling systemd how the agent is, without its library. */
#ifndef AX_DAEMON_NOTIFY_H
#define AX_DAEMON_NOTIFY_H

/* As sd_notify(3) takes it, "READY=1"; nothing where nobody wants to know (NOTIFY_SOCKET). */
void notify_systemd(const char *text);

#endif
