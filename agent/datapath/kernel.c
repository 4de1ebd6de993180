/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the kernel's BPF can do, and programs of no skeleton. */
#include <linux/if_link.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include "datapath/kernel.h"
#include "datapath/program.h"

/* return XDP_PASS; */
static const struct bpf_insn pass[] = {
	{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = XDP_PASS},
	{.code = BPF_JMP | BPF_EXIT},
};

/* The types of `int ax_probe(struct xdp_md *ctx)`: without them nothing can be replaced. Returns a
 * descriptor and the function's number. */
static int load_types(uint32_t *func)
{
	struct btf *btf = btf__new_empty();
	const void *data;
	int id, proto, r;
	uint32_t size;

	if (!btf)
		return -errno;
	id = btf__add_int(btf, "int", 4, BTF_INT_SIGNED);
	btf__add_struct(btf, "xdp_md", 0);
	btf__add_ptr(btf, id + 1);
	proto = btf__add_func_proto(btf, id);
	btf__add_func_param(btf, "ctx", id + 2);
	r = btf__add_func(btf, "ax_probe", BTF_FUNC_GLOBAL, proto);
	data = btf__raw_data(btf, &size);
	if (r > 0 && data) {
		*func = (uint32_t)r;
		r = bpf_btf_load(data, size, NULL);
		if (r < 0)
			r = -errno;
	} else if (r > 0) {
		r = -ENOMEM;
	}
	btf__free(btf);
	return r;
}

static int load_typed(uint32_t *func)
{
	autoclose int types = load_types(func);
	struct bpf_func_info info = {.insn_off = 0, .type_id = *func};
	int r;

	LIBBPF_OPTS(bpf_prog_load_opts, o, .prog_btf_fd = (uint32_t)types, .func_info = &info,
		    .func_info_cnt = 1, .func_info_rec_size = sizeof(info));

	if (types < 0)
		return types;
	r = bpf_prog_load(BPF_PROG_TYPE_XDP, "ax_probe", "GPL", pass, ARRAY_SIZE(pass), &o);
	return r < 0 ? -errno : r;
}

int kernel_typed_program(const char **function)
{
	uint32_t func = 0;

	*function = "ax_probe";
	return load_typed(&func);
}

int kernel_has_freplace(void)
{
	uint32_t func = 0;
	autoclose int types = load_types(&func), target = -1, ext = -1;
	struct bpf_func_info info = {.insn_off = 0, .type_id = func};

	LIBBPF_OPTS(bpf_prog_load_opts, o, .prog_btf_fd = (uint32_t)types, .func_info = &info,
		    .func_info_cnt = 1, .func_info_rec_size = sizeof(info));

	if (types < 0)
		return types;
	target = bpf_prog_load(BPF_PROG_TYPE_XDP, "ax_probe", "GPL", pass, ARRAY_SIZE(pass), &o);
	if (target < 0)
		return -errno;
	o.attach_prog_fd = (uint32_t)target;
	o.attach_btf_id = func;
	ext = bpf_prog_load(BPF_PROG_TYPE_EXT, "ax_probe", "GPL", pass, ARRAY_SIZE(pass), &o);
	return ext < 0 ? -errno : 0;
}

void kernel_program_name(uint32_t id, char ret[32])
{
	autoclose int fd = bpf_prog_get_fd_by_id(id);
	struct bpf_prog_info info = {0};
	uint32_t len = sizeof(info);

	snprintf(ret, 32, "?");
	if (fd >= 0 && !bpf_obj_get_info_by_fd(fd, &info, &len) && info.name[0])
		snprintf(ret, 32, "%.*s", (int)sizeof(info.name), info.name);
}

int kernel_attach_pass(unsigned ifindex)
{
	autoclose int fd =
		bpf_prog_load(BPF_PROG_TYPE_XDP, PASS_PROGRAM, "GPL", pass, ARRAY_SIZE(pass), NULL);
	libbpf_print_fn_t print;
	int r;

	if (fd < 0)
		return -errno;
	/* It would write what the kernel says to stderr. */
	print = libbpf_set_print(NULL);
	/* Not by a link: it is to stay when this process is gone. */
	r = bpf_xdp_attach((int)ifindex, fd, XDP_FLAGS_DRV_MODE | XDP_FLAGS_UPDATE_IF_NOEXIST,
			   NULL);
	libbpf_set_print(print);
	return r;
}
