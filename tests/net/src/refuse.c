/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Preloaded: the kernel refuses to load the BPF program whose name begins with $REFUSED, or, with
 * $REFUSED_ITER, to attach any iterator. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* (the kernel keeps so much of a name) */
static int is_refused(const char *name)
{
	const char *refused = getenv("REFUSED");

	return refused && *refused && !strncmp(name, refused, BPF_OBJ_NAME_LEN - 1);
}

long syscall(long __sysno, ...)
{
	long (*next)(long, ...) = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
	const union bpf_attr *attr;
	long a[6];
	va_list v;

	va_start(v, __sysno);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(v, long);
	va_end(v);
	attr = __sysno == SYS_bpf ? (const union bpf_attr *)a[1] : NULL;
	if (attr && ((a[0] == BPF_PROG_LOAD && is_refused(attr->prog_name)) ||
		     (a[0] == BPF_LINK_CREATE && getenv("REFUSED_ITER") &&
		      attr->link_create.attach_type == BPF_TRACE_ITER))) {
		errno = EACCES;
		return -1;
	}
	return next(__sysno, a[0], a[1], a[2], a[3], a[4], a[5]);
}
