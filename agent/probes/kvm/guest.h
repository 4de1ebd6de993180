/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The virtual machine that a process runs. */
#ifndef AX_PROBES_KVM_GUEST_H
#define AX_PROBES_KVM_GUEST_H

#include "base/util.h"

/*
 * The machine's name, as the process was told it on its command line (its words, each with a NUL
 * behind it): qemu's -name NAME or -name guest=NAME, kvmtool's --name, Firecracker's --id. NULL: it
 * has none. The caller frees it.
 */
char *guest_name(const char *cmdline, size_t len);
/* The same of a process; NULL also if it has gone. */
char *guest_name_of(uint32_t pid);

#endif
