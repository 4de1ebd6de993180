// SPDX-License-Identifier: GPL-2.0-or-later
#include "probes/kvm/guest.h"
#include "tools/trace/ready/ready.h"
#include "tools/trace/ready/vms.h"

static const struct vm *find(const struct vms *vms, uint32_t pid)
{
	for (size_t i = 0; i < vms->n; i++)
		if (vms->v[i].pid == pid)
			return &vms->v[i];
	return NULL;
}

/* /proc has all of the command line. */
static char *name_of(const struct ax_hypercall_vcpu *vcpu)
{
	size_t len = vcpu->len < sizeof(vcpu->words) ? vcpu->len : sizeof(vcpu->words);
	char *name = guest_name_of(vcpu->head.pid);

	if (!name)
		name = guest_name(vcpu->words, len);
	return name ? name : strndup(vcpu->head.comm, sizeof(vcpu->head.comm));
}

int vms_note(struct vms *vms, const struct ax_hypercall_vcpu *vcpu)
{
	const struct ax_watch_head *h = &vcpu->head;
	struct vm vm = {.pid = h->pid}, *v;
	char buf[AX_EVENT_APP];
	const char *app;

	if (find(vms, h->pid))
		return 0;
	app = ready_app_name(h, buf);
	if (app)
		memcpy(vm.app, buf, sizeof(vm.app));
	vm.name = name_of(vcpu);
	v = realloc(vms->v, (vms->n + 1) * sizeof(*v));
	if (!v || !vm.name) {
		free(vm.name);
		vms->v = v ? v : vms->v;
		return -ENOMEM;
	}
	vms->v = v;
	v[vms->n++] = vm;
	return 0;
}

struct vm vms_find(const struct vms *vms, uint32_t pid)
{
	static char none[] = "";
	const struct vm *vm = find(vms, pid);

	return vm ? *vm : (struct vm){.pid = pid, .name = none};
}

void vms_free(struct vms *vms)
{
	for (size_t i = 0; i < vms->n; i++)
		free(vms->v[i].name);
	free(vms->v);
	*vms = (struct vms){0};
}
