/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The tracepoints of KVM, which differ among kernels. */
#ifndef AX_PROBES_KVM_LAYOUT_H
#define AX_PROBES_KVM_LAYOUT_H

#include "hypercall_event.h"
#include "probes/kernel/fields.h"

/* Of the three format files. -ENOTSUP with a sentence that names what is missing. */
int kvm_layout(const struct format *exit, const struct format *hypercall,
	       const struct format *entry, struct ax_hypercall_layout *ret, struct error *e);

struct kvm_tracepoints {
	uint32_t exit, hypercall, entry; /* their numbers */
	struct ax_hypercall_layout layout;
};
/* Of this kernel. -ENOENT: KVM is not there, as when its module is not loaded. */
int kvm_tracepoints(struct kvm_tracepoints *ret, struct error *e);

#endif
