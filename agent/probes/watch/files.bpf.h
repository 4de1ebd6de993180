/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Open files of the current process. */
#ifndef AX_PROBES_WATCH_FILES_BPF_H
#define AX_PROBES_WATCH_FILES_BPF_H

#include "texts.bpf.h"

#define S_IFMT	0170000
#define S_IFREG 0100000

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct super_block {
	__u32 s_dev;
};
struct inode {
	unsigned short i_mode;
	unsigned long i_ino;
	__u32 i_generation;
	struct super_block *i_sb;
};
struct file {
	unsigned int f_flags;
	struct inode *f_inode;
	struct path f_path;
};
struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};
struct files_struct {
	struct fdtable *fdt;
};
struct task_struct___files {
	struct files_struct *files;
};
#pragma clang attribute pop

/* NULL: the descriptor is not open. */
static __always_inline struct file *file_of(__s64 fd)
{
	struct task_struct___files *t = (void *)bpf_get_current_task_btf();
	struct fdtable *fdt = BPF_CORE_READ(t, files, fdt);
	struct file **fds, *f = NULL;

	if (fd < 0 || fd >= BPF_CORE_READ(fdt, max_fds))
		return NULL;
	fds = BPF_CORE_READ(fdt, fd);
	bpf_probe_read_kernel(&f, sizeof(f), fds + fd);
	return f;
}

#endif
