/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef AX_PROBES_KERNEL_SYSCALLS_H
#define AX_PROBES_KERNEL_SYSCALLS_H

#include <stdint.h>

/* "openat"; NULL: no system call of this machine's programs for 64 bits that is known. */
const char *syscall_name(uint64_t number);

#endif
