// SPDX-License-Identifier: GPL-2.0-or-later
/* Loads and attaches the smallest cgroup program, without libbpf: tells a kernel that refuses BPF
 * from an ax that fails. bpfload CGROUP_DIRECTORY */
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int bpf(int cmd, union bpf_attr *attr)
{
	return (int)syscall(SYS_bpf, cmd, attr, sizeof(*attr));
}

int main(int argc, char **argv)
{
	const struct bpf_insn pass[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 1},
		{.code = BPF_JMP | BPF_EXIT},
	};
	union bpf_attr load = {.prog_type = BPF_PROG_TYPE_CGROUP_SKB,
			       .insns = (unsigned long)pass,
			       .insn_cnt = 2,
			       .license = (unsigned long)"GPL"};
	union bpf_attr link = {0};
	int prog, cgroup;

	if (argc != 2) {
		fprintf(stderr, "usage: bpfload CGROUP_DIRECTORY\n");
		return 2;
	}
	cgroup = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (cgroup < 0) {
		fprintf(stderr, "bpfload: %s: %s\n", argv[1], strerror(errno));
		return 1;
	}
	prog = bpf(BPF_PROG_LOAD, &load);
	if (prog < 0) {
		fprintf(stderr, "bpfload: BPF_PROG_LOAD: %s\n", strerror(errno));
		return 1;
	}
	link.link_create.prog_fd = (unsigned)prog;
	link.link_create.target_fd = (unsigned)cgroup;
	link.link_create.attach_type = BPF_CGROUP_INET_EGRESS;
	if (bpf(BPF_LINK_CREATE, &link) < 0) {
		fprintf(stderr, "bpfload: BPF_LINK_CREATE: %s\n", strerror(errno));
		return 1;
	}
	return 0;
}
