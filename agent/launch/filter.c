/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The filter that has the kernel ask about each splice(2) and sendfile(2) of an app
 * (seccomp_unotify(2)) and refuses io_uring, and its listener on the way from the app's first
 * process to whoever answers.
 */
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "launch/emulate.h"

/* Linux 5.19; older headers lack it */
#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif

/* The numbers of splice() and sendfile() in each way in which a program can make system calls here.
 */
#if defined(__x86_64__)
#define NATIVE	      AUDIT_ARCH_X86_64
#define COMPAT	      AUDIT_ARCH_I386
#define COMPAT_SPLICE 313
#define OTHER_BIT     0x40000000u /* x32, whose numbers are the native ones but for this */
#elif defined(__aarch64__)
#define NATIVE	      AUDIT_ARCH_AARCH64
#define COMPAT	      AUDIT_ARCH_ARM
#define COMPAT_SPLICE 340
#define OTHER_BIT     0u
#else
#error "the number of splice() is not known here"
#endif
#define COMPAT_SENDFILE	  187
#define COMPAT_SENDFILE64 239

/* io_uring_setup(), io_uring_enter() and io_uring_register() have these everywhere. */
#define RING_FIRST 425
#define RING_LAST  427

bool emulate_is_sendfile(const struct seccomp_data *d)
{
	uint32_t nr = (uint32_t)d->nr;

	return d->arch == COMPAT ? nr == COMPAT_SENDFILE || nr == COMPAT_SENDFILE64
				 : (nr & ~OTHER_BIT) == __NR_sendfile;
}

/*
 * A ring's splice() is no system call that anybody could be asked about: there are no rings.
 *
 * Without conditions but on the number: the kernel then keeps a bitmap of the calls that are let
 * through, and runs no filter for them. What is allowed by it may be speculated about as without.
 */
static int install(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, COMPAT, 6, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NATIVE, 0, 13),
		/* 3: native */
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, ~OTHER_BIT),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_splice, 8, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_sendfile, 7, 0),
		BPF_STMT(BPF_JMP | BPF_JA, 4),
		/* 8: compat */
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, COMPAT_SPLICE, 4, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, COMPAT_SENDFILE, 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, COMPAT_SENDFILE64, 2, 0),
		/* 12: both */
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, RING_FIRST, 0, 3),
		BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, RING_LAST, 2, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = ARRAY_SIZE(code), .filter = code};
	unsigned long flags = SECCOMP_FILTER_FLAG_NEW_LISTENER |
			      SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV |
			      SECCOMP_FILTER_FLAG_SPEC_ALLOW;
	int fd = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);

	return fd < 0 ? -errno : fd;
}

static int send_fd(int to, int fd)
{
	union {
		char buf[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {0};
	struct iovec one = {.iov_base = "l", .iov_len = 1};
	struct msghdr m = {.msg_iov = &one,
			   .msg_iovlen = 1,
			   .msg_control = control.buf,
			   .msg_controllen = sizeof(control.buf)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	ssize_t n;

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(int));
	do {
		n = sendmsg(to, &m, MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : 0;
}

int emulate_ask(int gate, struct error *e)
{
	autoclose int listener = install();
	int r = listener < 0 ? listener : send_fd(gate, listener);

	if (r == -EINVAL)
		return error_set(e, r,
				 "splice-emulation needs Linux 5.19 or newer, with "
				 "CONFIG_SECCOMP_FILTER");
	if (r == -EBUSY)
		return error_set(
			e, r,
			"splice-emulation cannot be had where another program answers "
			"for ax's system calls already (SECCOMP_FILTER_FLAG_NEW_LISTENER)");
	return r ? error_set(e, r, "cannot ask for the app's splice() (%s): run as root",
			     strerror(-r))
		 : 0;
}

static int take_fd_of(struct msghdr *m)
{
	struct cmsghdr *c = CMSG_FIRSTHDR(m);
	int fd;

	if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS ||
	    c->cmsg_len != CMSG_LEN(sizeof(int)))
		return -1;
	memcpy(&fd, CMSG_DATA(c), sizeof(int));
	return fd;
}

int emulate_receive(int gate, struct error *e)
{
	union {
		char buf[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {0};
	struct launch_note note = {0};
	struct iovec place = {.iov_base = &note, .iov_len = sizeof(note)};
	struct msghdr m = {.msg_iov = &place,
			   .msg_iovlen = 1,
			   .msg_control = control.buf,
			   .msg_controllen = sizeof(control.buf)};
	ssize_t n;
	int fd;

	do {
		n = recvmsg(gate, &m, MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	fd = n > 0 ? take_fd_of(&m) : -1;
	if (fd >= 0)
		return fd;
	if (n == (ssize_t)sizeof(note) && note.error.code) { /* it gave up, and says why */
		*e = note.error;
		return e->code;
	}
	return error_set(e, -ECHILD, "the command's process ended before it could be executed");
}
