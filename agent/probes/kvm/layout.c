// SPDX-License-Identifier: GPL-2.0-or-later
#include "probes/kernel/tracefs.h"
#include "probes/kvm/layout.h"

static int find(const struct format *f, const char *name, struct ax_record_field *ret,
		struct error *e)
{
	const struct field *field = format_find(f, name);

	if (!field)
		return error_set(e, -ENOTSUP,
				 "this kernel's tracepoint %s has no field %s: ax trace hypercall "
				 "knows those of x86",
				 f->name, name);
	if (field->kind != FIELD_NUMBER && field->kind != FIELD_POINTER)
		return error_set(e, -ENOTSUP,
				 "the field %s of this kernel's tracepoint %s is no number", name,
				 f->name);
	*ret = (struct ax_record_field){.offset = field->offset, .size = field->size};
	return 0;
}

int kvm_layout(const struct format *exit, const struct format *hypercall,
	       const struct format *entry, struct ax_hypercall_layout *ret, struct error *e)
{
	struct {
		const struct format *format;
		const char *name;
		struct ax_record_field *to;
	} fields[] = {
		{exit, "exit_reason", &ret->reason}, {exit, "isa", &ret->isa},
		{entry, "vcpu_id", &ret->vcpu},	     {hypercall, "nr", &ret->nr},
		{hypercall, "a0", &ret->args[0]},    {hypercall, "a1", &ret->args[1]},
		{hypercall, "a2", &ret->args[2]},    {hypercall, "a3", &ret->args[3]},
	};
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(fields); i++)
		r = find(fields[i].format, fields[i].name, fields[i].to, e);
	return r;
}

int kvm_tracepoints(struct kvm_tracepoints *ret, struct error *e)
{
	CLEANUP(format_free) struct format exit = {0};
	CLEANUP(format_free) struct format hypercall = {0};
	CLEANUP(format_free) struct format entry = {0};
	autoclose int tracefs = tracefs_open(e);
	int r = tracefs;

	if (r < 0)
		return r;
	r = tracefs_format(tracefs, "kvm", "kvm_exit", &exit, e);
	if (r == 0)
		r = tracefs_format(tracefs, "kvm", "kvm_hypercall", &hypercall, e);
	if (r == 0)
		r = tracefs_format(tracefs, "kvm", "kvm_entry", &entry, e);
	if (r == -ENOENT)
		return error_set(e, r,
				 "the kernel has no tracepoints of KVM: load its module (modprobe "
				 "kvm_amd or kvm_intel)");
	if (r < 0)
		return r;
	*ret = (struct kvm_tracepoints){
		.exit = exit.id, .hypercall = hypercall.id, .entry = entry.id};
	return kvm_layout(&exit, &hypercall, &entry, &ret->layout, e);
}
