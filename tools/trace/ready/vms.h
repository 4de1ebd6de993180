/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The virtual machines that were seen, by their processes: they may be gone when they are shown. */
#ifndef AX_TOOLS_TRACE_READY_VMS_H
#define AX_TOOLS_TRACE_READY_VMS_H

#include "hypercall_event.h"
#include "base/util.h"

struct vm {
	uint32_t pid;
	char *name; /* its own, or that of the process */
	char app[AX_EVENT_APP];
};
struct vms {
	struct vm *v;
	size_t n;
};
/* Of a vCPU's thread that was seen first. -ENOMEM. */
int vms_note(struct vms *vms, const struct ax_hypercall_vcpu *vcpu);
/* Of a process that nobody told of, everything but the number is empty. */
struct vm vms_find(const struct vms *vms, uint32_t pid);
void vms_free(struct vms *vms);

#endif
