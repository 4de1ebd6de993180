/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How an XDP program is attached to an interface. */
#ifndef AX_BASE_XDP_MODE_H
#define AX_BASE_XDP_MODE_H

enum xdp_mode { ATTACH_AUTO, ATTACH_NATIVE, ATTACH_GENERIC, ATTACH_OFFLOAD };

#endif
