// SPDX-License-Identifier: GPL-2.0-or-later
/* One packet after the other of a trace that comes in pieces: a packet may begin in one and end in
 * the next. */
#include "probes/pt/priv.h"

#define PSB_SIZE 16
#define KEPT_MAX 64 /* longer than any packet */

struct pt_packets {
	const struct pt_library *lib;
	struct pt_packet_decoder *decoder; /* of what is in buf; NULL: none */
	uint8_t *buf;
	size_t n, at;
	uint64_t offset; /* of buf[0] */
	uint64_t bad;	 /* bytes that were skipped, so far */
	uint64_t bad_at;
	uint64_t last_ip;
	bool lost; /* looks for a PSB */
};

int pt_packets_new(struct pt_packets **ret, struct error *e)
{
	const struct pt_library *lib = pt_library(e);
	struct pt_packets *p;

	if (!lib)
		return -ENOTSUP;
	p = calloc(1, sizeof(*p));
	if (p)
		p->buf = malloc(PT_GIVE_MAX + KEPT_MAX);
	if (!p || !p->buf) {
		free(p);
		return error_set(e, -ENOMEM, "out of memory");
	}
	p->lib = lib;
	*ret = p;
	return 0;
}

static void end_decoder(struct pt_packets *p)
{
	if (p->decoder)
		p->lib->pkt_free_decoder(p->decoder);
	p->decoder = NULL;
}

void pt_packets_free(struct pt_packets *p)
{
	end_decoder(p);
	free(p->buf);
	free(p);
}

void pt_packets_begin(struct pt_packets *p, uint64_t offset)
{
	end_decoder(p);
	p->n = p->at = 0;
	p->offset = offset;
	p->bad = 0;
	p->last_ip = 0;
	/* a ring buffer that was taken as it was begins anywhere */
	p->lost = true;
	p->bad_at = offset;
}

int pt_packets_give(struct pt_packets *p, const uint8_t *data, size_t len, struct error *e)
{
	struct pt_config config;

	end_decoder(p);
	memmove(p->buf, p->buf + p->at, p->n - p->at);
	p->n -= p->at;
	p->offset += p->at;
	p->at = 0;
	if (!len || len > PT_GIVE_MAX || p->n > KEPT_MAX)
		return len ? error_set(e, -EINVAL, "more bytes than fit") : 0;
	memcpy(p->buf + p->n, data, len);
	p->n += len;
	pt_config_init(&config);
	config.begin = p->buf;
	config.end = p->buf + p->n;
	p->decoder = p->lib->pkt_alloc_decoder(&config);
	if (!p->decoder || p->lib->pkt_sync_set(p->decoder, 0) < 0)
		return error_set(e, -ENOMEM, "out of memory");
	return 0;
}

/* --- one --- */

static void set_ip(struct pt_packets *p, const struct pt_packet_ip *from, struct pt_one *ret)
{
	uint64_t ip = from->ip;

	ret->has_ip = true;
	switch (from->ipc) {
	case pt_ipc_suppressed:
		ret->has_ip = false;
		return;
	case pt_ipc_update_16:
		ip = (p->last_ip & ~0xffffull) | (ip & 0xffff);
		break;
	case pt_ipc_update_32:
		ip = (p->last_ip & ~0xffffffffull) | (ip & 0xffffffff);
		break;
	case pt_ipc_update_48:
		ip = (p->last_ip & ~0xffffffffffffull) | (ip & 0xffffffffffff);
		break;
	case pt_ipc_sext_48:
		ip = (uint64_t)((int64_t)(ip << 16) >> 16);
		break;
	case pt_ipc_full:
		break;
	}
	ret->ip = p->last_ip = ip;
}

static void set_mode(const struct pt_packet_mode *m, struct pt_one *ret)
{
	static const uint8_t bits[] = {
		[ptem_unknown] = 0, [ptem_16bit] = 16, [ptem_32bit] = 32, [ptem_64bit] = 64};

	if (m->leaf == pt_mol_exec) {
		ret->kind = PT_MODE_EXEC;
		ret->v[0] = bits[pt_get_exec_mode(&m->bits.exec)];
		return;
	}
	ret->kind = PT_MODE_TSX;
	ret->v[0] = m->bits.tsx.intx;
	ret->v[1] = m->bits.tsx.abrt;
}

static void set_three(struct pt_one *ret, enum pt_kind kind, uint64_t a, uint64_t b, uint64_t c)
{
	ret->kind = kind;
	ret->v[0] = a;
	ret->v[1] = b;
	ret->v[2] = c;
}

/* Those that are about power, and PTWRITE. */
static void set_seldom(const struct pt_packet *from, struct pt_one *ret)
{
	switch (from->type) {
	case ppt_vmcs:
		set_three(ret, PT_VMCS, from->payload.vmcs.base, 0, 0);
		break;
	case ppt_mnt:
		set_three(ret, PT_MNT, from->payload.mnt.payload, 0, 0);
		break;
	case ppt_exstop:
		set_three(ret, PT_EXSTOP, from->payload.exstop.ip, 0, 0);
		break;
	case ppt_mwait:
		set_three(ret, PT_MWAIT, from->payload.mwait.hints, from->payload.mwait.ext, 0);
		break;
	case ppt_pwre:
		set_three(ret, PT_PWRE, from->payload.pwre.state, from->payload.pwre.sub_state,
			  from->payload.pwre.hw);
		break;
	case ppt_pwrx:
		set_three(ret, PT_PWRX, from->payload.pwrx.last, from->payload.pwrx.deepest,
			  from->payload.pwrx.interrupt | from->payload.pwrx.store << 1 |
				  from->payload.pwrx.autonomous << 2);
		break;
	case ppt_ptw:
		set_three(ret, PT_PTW, from->payload.ptw.payload, from->payload.ptw.plc ? 8 : 4,
			  from->payload.ptw.ip);
		break;
	default:
		ret->kind = PT_UNKNOWN;
	}
}

static void set_timing(const struct pt_packet *from, struct pt_one *ret)
{
	switch (from->type) {
	case ppt_cbr:
		set_three(ret, PT_CBR, from->payload.cbr.ratio, 0, 0);
		break;
	case ppt_tsc:
		set_three(ret, PT_TSC, from->payload.tsc.tsc, 0, 0);
		break;
	case ppt_tma:
		set_three(ret, PT_TMA, from->payload.tma.ctc, from->payload.tma.fc, 0);
		break;
	case ppt_mtc:
		set_three(ret, PT_MTC, from->payload.mtc.ctc, 0, 0);
		break;
	case ppt_cyc:
		set_three(ret, PT_CYC, from->payload.cyc.value, 0, 0);
		break;
	default:
		set_seldom(from, ret);
	}
}

static void set_packet(struct pt_packets *p, const struct pt_packet *from, struct pt_one *ret)
{
	static const enum pt_kind plain[] = {
		[ppt_pad] = PT_PAD,	    [ppt_psb] = PT_PSB,	  [ppt_psbend] = PT_PSBEND,
		[ppt_fup] = PT_FUP,	    [ppt_tip] = PT_TIP,	  [ppt_tip_pge] = PT_TIP_PGE,
		[ppt_tip_pgd] = PT_TIP_PGD, [ppt_tnt_8] = PT_TNT, [ppt_tnt_64] = PT_TNT_64,
		[ppt_stop] = PT_TRACE_STOP, [ppt_ovf] = PT_OVF,
	};

	switch (from->type) {
	case ppt_psb:
		p->last_ip = 0;
		ret->kind = PT_PSB;
		break;
	case ppt_pad:
	case ppt_psbend:
	case ppt_stop:
	case ppt_ovf:
		ret->kind = plain[from->type];
		break;
	case ppt_fup:
	case ppt_tip:
	case ppt_tip_pge:
	case ppt_tip_pgd:
		ret->kind = plain[from->type];
		set_ip(p, &from->payload.ip, ret);
		break;
	case ppt_tnt_8:
	case ppt_tnt_64:
		ret->kind = plain[from->type];
		ret->n_bits = from->payload.tnt.bit_size;
		ret->bits = from->payload.tnt.payload;
		break;
	case ppt_mode:
		set_mode(&from->payload.mode, ret);
		break;
	case ppt_pip:
		set_three(ret, PT_PIP, from->payload.pip.cr3, from->payload.pip.nr, 0);
		break;
	default:
		set_timing(from, ret);
	}
}

/* --- what is no packet --- */

static bool set_skipped(struct pt_packets *p, struct pt_one *ret)
{
	if (!p->bad)
		return false;
	*ret = (struct pt_one){.kind = PT_BAD, .offset = p->bad_at, .size = p->bad};
	ret->v[0] = p->bad;
	p->bad = 0;
	return true;
}

/* To the next PSB. False: it is not in what is there, of which the last bytes may be its beginning.
 */
static bool find_psb(struct pt_packets *p)
{
	static const uint8_t psb[PSB_SIZE] = {2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82,
					      2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82};
	const uint8_t *found = memmem(p->buf + p->at, p->n - p->at, psb, PSB_SIZE);
	size_t to = found		       ? (size_t)(found - p->buf)
		    : p->n - p->at >= PSB_SIZE ? p->n - PSB_SIZE + 1
					       : p->at;

	if (!p->bad)
		p->bad_at = p->offset + p->at;
	p->bad += to - p->at;
	p->at = to;
	if (!found || p->lib->pkt_sync_set(p->decoder, to) < 0)
		return false;
	p->lost = false;
	return true;
}

int pt_packets_next(struct pt_packets *p, struct pt_one *ret)
{
	struct pt_packet packet;
	int r;

	if (!p->decoder)
		return 0;
	for (;;) {
		if (p->lost && !find_psb(p))
			return 0;
		if (set_skipped(p, ret))
			return 1;
		r = p->lib->pkt_next(p->decoder, &packet, sizeof(packet));
		if (r == -pte_eos)
			return 0;
		if (r > 0 && (size_t)r <= p->n - p->at)
			break;
		/* at least one byte is skipped, also when a PSB stands here that is none */
		p->lost = true;
		p->bad_at = p->offset + p->at;
		p->bad = 1;
		p->at++;
	}
	*ret = (struct pt_one){.offset = p->offset + p->at, .size = (uint64_t)r};
	set_packet(p, &packet, ret);
	p->at += (size_t)r;
	return 1;
}

int pt_packets_last(struct pt_packets *p, struct pt_one *ret)
{
	if (p->lost) {
		if (!p->bad)
			p->bad_at = p->offset + p->at;
		p->bad += p->n - p->at;
		p->at = p->n;
		return set_skipped(p, ret);
	}
	if (p->at == p->n)
		return 0;
	*ret = (struct pt_one){.kind = PT_CUT, .offset = p->offset + p->at};
	ret->size = ret->v[0] = p->n - p->at;
	p->at = p->n;
	return 1;
}
