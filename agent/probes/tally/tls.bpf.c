// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * ax trace tls: what programs give to their TLS library and get from it, before it is encrypted and
 * after it was decrypted. It is read when the function returns: how long it is is known then, and
 * its pages are there, since the library has just used them.
 */
#include "function.bpf.h"

#define PIECES_MAX 256

const volatile struct ax_tls_config wanted;

/* --- whose --- */

static __always_inline bool is_watched(void)
{
	if (!watch_current())
		return false;
	if (!wanted.only_uid || (__u32)bpf_get_current_uid_gid() == wanted.uid)
		return true;
	watch_count(AX_WATCH_OTHERS);
	return false;
}

/* --- what --- */

struct sending {
	__u64 from, total, len; /* len: of what is told of it */
	__u64 connection;
	__u64 latency_ns;
	__u32 function;
	__u32 pad;
};

/* `size` is constant, and what a record's room is; `n` is at most that. */
#define SEND_PIECE(s, done, n, size)                                                             \
	do {                                                                                     \
		struct ax_tls_event *e = bpf_ringbuf_reserve(&records, sizeof(*e) + (size), 0);  \
		__u32 len = (n);                                                                 \
                                                                                                 \
		watch_count(AX_WATCH_EMITTED);                                                   \
		if (!e) {                                                                        \
			watch_count(AX_WATCH_DROPPED);                                           \
			return 0;                                                                \
		}                                                                                \
		begin(e, s, done, len);                                                          \
		/* a compiler that knows it below `size` would leave out what the verifier needs \
		 */                                                                              \
		asm volatile("" : "+r"(len));                                                    \
		if (len > (size))                                                                \
			len = (size);                                                            \
		e->faulty = bpf_probe_read_user(e->data, len, (void *)((s)->from + (done))) < 0; \
		bpf_ringbuf_submit(e, tally_wakeup());                                           \
	} while (0)

static __always_inline void begin(struct ax_tls_event *e, const struct sending *s, __u64 done,
				  __u32 len)
{
	watch_head(&e->head, AX_WATCH_TLS);
	e->connection = s->connection;
	e->total = s->total;
	e->latency_ns = s->latency_ns;
	e->offset = (__u32)done;
	e->len = len;
	e->function = s->function;
}

static long send_piece(__u32 i, struct sending *s)
{
	__u64 done = (__u64)i * AX_TLS_PIECE, left;

	if (done >= s->len)
		return 1;
	left = s->len - done;
	if (left > AX_TLS_PIECE_SHORT)
		SEND_PIECE(s, done, left > AX_TLS_PIECE ? AX_TLS_PIECE : (__u32)left, AX_TLS_PIECE);
	else
		SEND_PIECE(s, done, (__u32)left, AX_TLS_PIECE_SHORT);
	return 0;
}

/* --- calls --- */

static __always_inline void tell_end(struct pt_regs *ctx, __u32 function)
{
	struct ax_tls_event *e = watch_reserve(sizeof(*e));

	if (!e)
		return;
	watch_head(&e->head, AX_WATCH_TLS_END);
	e->connection = PT_REGS_PARM1(ctx);
	e->total = e->latency_ns = 0;
	e->offset = e->len = e->faulty = 0;
	e->function = function;
	bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
}

SEC("uprobe")
int ax_tls_enter(struct pt_regs *ctx)
{
	__u32 function = (__u32)bpf_get_attach_cookie(ctx);

	keep_own_stack(ctx);
	if (!is_watched())
		return 0;
	if ((function & ~AX_TLS_GNUTLS) != AX_TLS_FREE)
		function_enter(ctx);
	else if (PT_REGS_PARM1(ctx))
		tell_end(ctx, function);
	return 0;
}

SEC("uprobe")
int ax_tls_leave(struct pt_regs *ctx)
{
	struct function_call *c = function_leave(ctx);
	long ret = (long)PT_REGS_RC(ctx);
	struct sending s = {};
	__u32 which;

	keep_own_stack(ctx);
	if (!c)
		return 0;
	which = c->function & ~AX_TLS_GNUTLS;
	if (which == AX_TLS_READ_EX || which == AX_TLS_WRITE_EX) {
		if ((int)ret <= 0 ||
		    bpf_probe_read_user(&s.total, sizeof(s.total), (void *)c->args[3]) < 0)
			return 0;
	} else {
		/* OpenSSL returns an int, GnuTLS a ssize_t */
		s.total = c->function & AX_TLS_GNUTLS ? (__u64)ret : (__u64)(int)ret;
	}
	if ((__s64)s.total <= 0)
		return 0;
	s.from = c->args[1];
	s.len = s.total < wanted.bytes ? s.total : wanted.bytes;
	s.connection = c->args[0];
	s.latency_ns = bpf_ktime_get_ns() - c->since;
	s.function = c->function;
	bpf_loop(PIECES_MAX, send_piece, &s, 0);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
