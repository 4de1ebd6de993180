// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * How long an x86-64 instruction is and where it goes. What nobody's compiler emits (XOP, 3DNow!,
 * APX) is not known, which its callers take for code that they do not understand.
 */
#include "probes/place/priv.h"

/* Bits of one line of sixteen opcodes, the lowest is the first. */
static bool bit(const uint16_t *lines, unsigned opcode)
{
	return lines[opcode >> 4] >> (opcode & 15) & 1;
}

/* With a ModRM byte. */
static const uint16_t modrm_0[16] = {0x0f0f, 0x0f0f, 0x0f0f, 0x0f0f, 0x0000, 0x0000,
				     0x0a08, 0x0000, 0xffff, 0x0000, 0x0000, 0x0000,
				     0x00c3, 0xff0f, 0x0000, 0xc0c0};
/* None at all in 64-bit mode, or a prefix where none can be. */
static const uint16_t invalid_0[16] = {0x40c0, 0xc0c0, 0x8080, 0x8080, 0x0000, 0x0000,
				       0x0007, 0x0000, 0x0004, 0x0400, 0x0000, 0x0000,
				       0x4000, 0x0070, 0x0400, 0x0000};
/* One byte of immediate. */
static const uint16_t imm8_0[16] = {0x1010, 0x1010, 0x1010, 0x1010, 0x0000, 0x0000, 0x0c00, 0xffff,
				    0x0009, 0x0000, 0x0100, 0x00ff, 0x2043, 0x0000, 0x08ff, 0x0000};
/* Four, or two with an operand-size prefix. */
static const uint16_t imm32_0[16] = {0x2020, 0x2020, 0x2020, 0x2020, 0x0000, 0x0000,
				     0x0300, 0x0000, 0x0002, 0x0000, 0x0200, 0x0000,
				     0x0080, 0x0000, 0x0000, 0x0000};
/* 0f: without a ModRM byte; none at all; one byte of immediate. */
static const uint16_t plain_1[16] = {0x4be0, 0x0000, 0x0000, 0x00bf, 0x0000, 0x0000,
				     0x0000, 0x0080, 0xffff, 0x0000, 0x0707, 0x0000,
				     0xff00, 0x0000, 0x0000, 0x0000};
static const uint16_t invalid_1[16] = {0x9410, 0x0000, 0x00f0, 0xfa40, 0x0000, 0x0000,
				       0x0000, 0x0000, 0x0000, 0x0000, 0x00c0, 0x0000,
				       0x0000, 0x0000, 0x0000, 0x0000};
static const uint16_t imm8_1[16] = {0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x000f,
				    0x0000, 0x0000, 0x1010, 0x0400, 0x0074, 0x0000, 0x0000, 0x0000};

struct reader {
	const uint8_t *p;
	size_t n, at;
};

static bool next(struct reader *r, uint8_t *byte)
{
	if (r->at >= r->n || r->at >= X86_LEN_MAX)
		return false;
	*byte = r->p[r->at++];
	return true;
}

static bool take_signed(struct reader *r, unsigned len, int64_t *ret)
{
	uint64_t v = 0;
	uint8_t byte;

	for (unsigned i = 0; i < len; i++) {
		if (!next(r, &byte))
			return false;
		v |= (uint64_t)byte << 8 * i;
	}
	if (len && len < 8 && v >> (8 * len - 1))
		v |= ~0ull << 8 * len;
	*ret = (int64_t)v;
	return true;
}

static uint8_t prefix_of(uint8_t byte)
{
	switch (byte) {
	case 0x66:
		return PREFIX_66;
	case 0x67:
		return PREFIX_67;
	case 0xf2:
		return PREFIX_F2;
	case 0xf3:
		return PREFIX_F3;
	case 0xf0:
		return PREFIX_LOCK;
	case 0x26:
	case 0x2e:
	case 0x36:
	case 0x3e:
		return PREFIX_ES_CS_SS_DS;
	case 0x64:
		return PREFIX_FS;
	case 0x65:
		return PREFIX_GS;
	default:
		return 0;
	}
}

/* Bits R, X and B are stored inverted. */
static bool take_vex(struct reader *r, struct x86_insn *i, uint8_t first)
{
	uint8_t p[3];

	if (i->rex || (i->prefixes & (PREFIX_66 | PREFIX_F2 | PREFIX_F3 | PREFIX_LOCK)))
		return false;
	i->vex = first == 0xc5 ? 2 : first == 0xc4 ? 3 : 4;
	for (int k = 0; k < i->vex - 1; k++)
		if (!next(r, &p[k]))
			return false;
	i->map = i->vex == 2 ? 1 : i->vex == 3 ? p[0] & 0x1f : p[0] & 7;
	i->rex = (uint8_t)(0x40 | (~p[0] >> 5 & (i->vex == 2 ? 4 : 7)));
	if (i->vex == 3 && (p[1] & 0x80))
		i->rex |= 8;
	if (i->vex == 4 && ((p[0] & 8) || !(p[1] & 4)))
		return false;
	return i->map >= 1 && (i->map <= 3 || (i->vex == 4 && (i->map == 5 || i->map == 6))) &&
	       next(r, &i->opcode);
}

static bool take_opcode(struct reader *r, struct x86_insn *i)
{
	uint8_t byte;

	do {
		if (!next(r, &byte))
			return false;
		i->prefixes |= prefix_of(byte);
	} while (prefix_of(byte));
	if ((byte & 0xf0) == 0x40) {
		i->rex = byte;
		if (!next(r, &byte) || prefix_of(byte) || (byte & 0xf0) == 0x40)
			return false;
	}
	if (byte == 0xc4 || byte == 0xc5 || byte == 0x62)
		return take_vex(r, i, byte);
	i->opcode = byte;
	if (byte != 0x0f)
		return !bit(invalid_0, byte);
	i->map = 1;
	if (!next(r, &i->opcode))
		return false;
	if (i->opcode != 0x38 && i->opcode != 0x3a)
		return !bit(invalid_1, i->opcode);
	i->map = i->opcode == 0x38 ? 2 : 3;
	return next(r, &i->opcode);
}

static bool needs_modrm(const struct x86_insn *i)
{
	if (i->map == 0)
		return bit(modrm_0, i->opcode);
	if (i->vex)
		return i->map != 1 || i->opcode != 0x77;
	return i->map != 1 || !bit(plain_1, i->opcode);
}

static bool take_modrm(struct reader *r, struct x86_insn *i)
{
	int64_t disp = 0;

	i->has_modrm = needs_modrm(i);
	if (!i->has_modrm)
		return true;
	if (!next(r, &i->modrm))
		return false;
	if (i->map == 0 && i->opcode == 0x8f && (i->modrm & 0x38)) /* XOP */
		return false;
	/* moves to control registers have no memory form, whatever mod says */
	if (x86_mod(i) == 3 || (!i->vex && i->map == 1 && i->opcode >= 0x20 && i->opcode <= 0x23))
		return true;
	if ((i->modrm & 7) == 4) {
		if (!next(r, &i->sib))
			return false;
		if (x86_mod(i) == 0 && (i->sib & 7) == 5)
			i->disp_len = 4;
	}
	if (x86_rip_relative(i) || x86_mod(i) == 2)
		i->disp_len = 4;
	else if (x86_mod(i) == 1)
		i->disp_len = 1;
	if (!take_signed(r, i->disp_len, &disp))
		return false;
	i->disp = (int32_t)disp;
	return true;
}

static uint8_t imm_len_0(const struct x86_insn *i)
{
	bool wide = i->rex & 8, small = (i->prefixes & PREFIX_66) && !wide;

	switch (i->opcode) {
	case 0xa0 ... 0xa3:
		return i->prefixes & PREFIX_67 ? 4 : 8;
	case 0xb8 ... 0xbf:
		return wide ? 8 : small ? 2 : 4;
	case 0xc2:
	case 0xca:
		return 2;
	case 0xc8:
		return 3;
	case 0xe8:
	case 0xe9:
		return 4; /* Intel's processors ignore the operand size here */
	case 0xf6:
		return (i->modrm & 0x38) <= 8 ? 1 : 0;
	case 0xf7:
		return (i->modrm & 0x38) > 8 ? 0 : small ? 2 : 4;
	default:
		if (bit(imm8_0, i->opcode))
			return 1;
		return !bit(imm32_0, i->opcode) ? 0 : small ? 2 : 4;
	}
}

static uint8_t imm_len(const struct x86_insn *i)
{
	if (i->map == 0)
		return imm_len_0(i);
	if (i->map == 3)
		return 1;
	if (i->map != 1)
		return 0;
	if (!i->vex && (i->opcode & 0xf0) == 0x80)
		return 4;
	if (i->vex && i->opcode >= 0xa0 && i->opcode < 0xc0)
		return 0;
	return bit(imm8_1, i->opcode);
}

static enum x86_flow flow_of_group5(const struct x86_insn *i)
{
	switch (i->modrm >> 3 & 7) {
	case 2:
	case 3:
		return FLOW_CALL;
	case 4:
	case 5:
		return x86_rip_relative(i) ? FLOW_JUMP_POINTER : FLOW_JUMP_ANY;
	default:
		return FLOW_NEXT;
	}
}

static enum x86_flow flow_of_0(const struct x86_insn *i)
{
	switch (i->opcode) {
	case 0x70 ... 0x7f:
	case 0xe0 ... 0xe3:
		return FLOW_BRANCH;
	case 0xc7: /* xbegin */
		return i->modrm == 0xf8 ? FLOW_BRANCH : FLOW_NEXT;
	case 0xeb:
	case 0xe9:
		return FLOW_JUMP;
	case 0xe8:
		return FLOW_CALL;
	case 0xc2:
	case 0xc3:
	case 0xca:
	case 0xcb:
	case 0xcf:
		return FLOW_RETURN;
	case 0xcc:
	case 0xf1:
	case 0xf4:
		return FLOW_STOP;
	case 0xff:
		return flow_of_group5(i);
	default:
		return FLOW_NEXT;
	}
}

static enum x86_flow flow_of(const struct x86_insn *i)
{
	if (i->vex)
		return FLOW_NEXT;
	if (i->map == 0)
		return flow_of_0(i);
	if (i->map != 1)
		return FLOW_NEXT;
	if ((i->opcode & 0xf0) == 0x80)
		return FLOW_BRANCH;
	return i->opcode == 0x0b ? FLOW_STOP : FLOW_NEXT;
}

bool x86_decode(const uint8_t *p, size_t n, struct x86_insn *ret)
{
	struct reader r = {.p = p, .n = n};

	*ret = (struct x86_insn){0};
	if (!take_opcode(&r, ret) || !take_modrm(&r, ret))
		return false;
	ret->imm_len = imm_len(ret);
	if (!take_signed(&r, ret->imm_len, &ret->imm))
		return false;
	ret->len = (uint8_t)r.at;
	ret->flow = flow_of(ret);
	if (ret->flow == FLOW_JUMP || ret->flow == FLOW_BRANCH || ret->flow == FLOW_CALL)
		ret->target = ret->len + (uint64_t)ret->imm;
	return true;
}

bool x86_is_nop(const struct x86_insn *i)
{
	if (i->vex)
		return false;
	/* 49 90 is xchg %r8,%rax */
	if (i->map == 0)
		return i->opcode == 0x90 && !(i->rex & 1);
	return i->map == 1 && i->opcode == 0x1f && !(i->modrm & 0x38);
}
