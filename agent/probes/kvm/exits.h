/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Why guests are left, and what they ask for, by name. */
#ifndef AX_PROBES_KVM_EXITS_H
#define AX_PROBES_KVM_EXITS_H

#include "base/util.h"

/* As the tracepoints of KVM have it in the field isa. */
enum kvm_isa { KVM_ISA_VMX = 1, KVM_ISA_SVM = 2 };
const char *kvm_isa_name(uint32_t isa); /* "vmx" */

#define KVM_EXIT_NAME 64
/* "VMMCALL"; one that has no name is its number. */
const char *kvm_exit_name(uint32_t isa, uint32_t reason, char buf[KVM_EXIT_NAME]);

/* NULL: the kernel knows no hypercall of this number, or no more than one of another processor. */
const char *kvm_call_name(uint64_t nr);
/* A number or one of these names. -EINVAL. */
int kvm_call_parse(const char *text, uint64_t *ret);
/* The names, by their order; NULL behind the last one. */
const char *kvm_call_nth(size_t i);

#endif
