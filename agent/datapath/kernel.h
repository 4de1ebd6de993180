/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the kernel's BPF can do, asked by trying it. */
#ifndef AX_DATAPATH_KERNEL_H
#define AX_DATAPATH_KERNEL_H

#include "base/util.h"

/* 0: the kernel lets programs be replaced by others (freplace), as libxdp needs it to put several
 * on one interface. Else a negative errno. */
int kernel_has_freplace(void);
/* A program of XDP with types, which passes everything and is on no interface: a descriptor, or a
 * negative errno. Its function's name is in *function. */
int kernel_typed_program(const char **function);
/* The name of a loaded program; "?": it has none, or is gone. */
void kernel_program_name(uint32_t id, char ret[32]);
/* Puts PASS_PROGRAM on an interface of the caller's network namespace, natively; it stays when the
 * process ends. 0 or a negative errno, -EBUSY: another one is there. */
int kernel_attach_pass(unsigned ifindex);

#endif
