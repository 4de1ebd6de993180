// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What Linux does with a uprobe on an x86-64 instruction (arch/x86/kernel/uprobes.c, from 6.1 to
 * 6.18), and which instructions a probe can as well stand behind.
 */
#include "probes/place/priv.h"

/*
 * The opcodes that the kernel takes, as its decoder sees them: for VEX and EVEX that is the byte
 * behind the prefix, although the list was made for opcodes without one. All of 0f are taken.
 */
static const uint16_t kernel_takes[16] = {0xbf3f, 0x3f3f, 0x7f7f, 0x7f7f, 0xffff, 0xffff,
					  0x0ff8, 0xffff, 0xfffb, 0xfbff, 0xffff, 0xffff,
					  0x0fff, 0xff8f, 0x0b0f, 0xf3ed};

static bool is_branch(uint8_t opcode)
{
	return (opcode & 0xf0) == 0x70 || opcode == 0xe8 || opcode == 0xe9 || opcode == 0xeb;
}

static const char *refusal(const struct x86_insn *i)
{
	bool one_byte = i->map == 0 || i->vex;

	if (i->prefixes & PREFIX_LOCK)
		return "the kernel takes no probe on an instruction with a LOCK prefix";
	if (i->prefixes & PREFIX_ES_CS_SS_DS)
		return "the kernel takes no probe on an instruction with a segment prefix (CS, DS, "
		       "ES, SS; notrack too)";
	if (i->map == 0 && i->opcode == 0x8e && (i->modrm >> 3 & 7) == 2)
		return "the kernel takes no probe on an instruction that loads SS";
	if (one_byte && !(kernel_takes[i->opcode >> 4] >> (i->opcode & 15) & 1))
		return "the kernel takes no probe on this instruction";
	/* measured on 6.18: vpor and vpcmpeqb were left out, xchg %r8,%rax too */
	if (i->vex && (is_branch(i->opcode) || i->opcode == 0x90))
		return "the kernel would take this vector instruction for a jump and leave it out";
	if (i->map == 0 && i->opcode == 0x90 && (i->rex & 1))
		return "the kernel would take this exchange for a nop and leave it out";
	if ((i->prefixes & PREFIX_66) && ((i->map == 0 && is_branch(i->opcode)) ||
					  (i->map == 1 && !i->vex && (i->opcode & 0xf0) == 0x80)))
		return "the kernel takes no probe on a jump or call with an operand-size prefix";
	return NULL;
}

/* The nops as the kernel itself writes them; others with the same meaning it steps. */
static bool is_kernel_nop(const uint8_t *p, size_t len)
{
	static const uint8_t nops[9][8] = {{0},
					   {0x90},
					   {0x66, 0x90},
					   {0x0f, 0x1f, 0x00},
					   {0x0f, 0x1f, 0x40, 0},
					   {0x0f, 0x1f, 0x44, 0, 0},
					   {0x66, 0x0f, 0x1f, 0x44, 0, 0},
					   {0x0f, 0x1f, 0x80, 0, 0, 0, 0},
					   {0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0}};

	return len && len <= 8 && !memcmp(p, nops[len], len);
}

static enum place_cost nop_cost(const struct x86_insn *i, const uint8_t *bytes,
				unsigned page_offset, struct place_kernel k, const char **why)
{
	/* the kernel writes all five bytes at once only within a page */
	if (k.nop5 && i->len == 5 && page_offset <= 4096 - 5) {
		*why = "a call takes the place of this 5-byte nop: no trap at all";
		return PLACE_NOP5;
	}
	if (i->map == 0 || (k.long_nops && is_kernel_nop(bytes, i->len))) {
		*why = "the kernel emulates this nop";
		return PLACE_EMULATED;
	}
	*why = "the kernel steps over this form of a nop";
	return PLACE_STEPPED;
}

enum place_cost x86_cost(const struct x86_insn *i, const uint8_t *bytes, unsigned page_offset,
			 struct place_kernel k, const char **why)
{
	*why = refusal(i);
	if (*why)
		return PLACE_REFUSED;
	if (x86_is_nop(i))
		return nop_cost(i, bytes, page_offset, k, why);
	if (!i->vex && ((i->map == 0 && is_branch(i->opcode)) ||
			(i->map == 1 && (i->opcode & 0xf0) == 0x80))) {
		*why = "the kernel emulates this jump or call";
		return PLACE_EMULATED;
	}
	if (i->map == 0 && !i->vex && (i->opcode & 0xf8) == 0x50 &&
	    (i->len == 1 || (i->len == 2 && i->rex == 0x41))) {
		*why = "the kernel emulates this push";
		return PLACE_EMULATED;
	}
	*why = "the kernel steps over this instruction, with a second trap";
	return PLACE_STEPPED;
}

enum { AX, CX, DX, BX, SP, BP, SI, DI, R8, R9, R10, R11, R12, R13, R14, R15 };
#define R(n) (1u << (n))

static bool writable(unsigned reg, bool go)
{
	const unsigned c = R(DI) | R(SI) | R(DX) | R(CX) | R(R8) | R(R9) | R(SP) | R(BP);
	const unsigned in_go = c | R(AX) | R(BX) | R(R10) | R(R11) | R(R14);

	return !((go ? in_go : c) & R(reg));
}

/* Without a REX prefix, byte registers 4 to 7 are the second bytes of 0 to 3. */
static unsigned byte_register(const struct x86_insn *i, unsigned reg)
{
	return !i->rex && reg >= 4 ? reg - 4 : reg;
}

/* add, or, adc, sbb, and, sub, xor, cmp: which is in bits 3 to 5; the form is in the lowest. */
static bool arithmetic_slides(const struct x86_insn *i, bool go, bool memory)
{
	bool compares = (i->opcode & 0x38) == 0x38, byte = !(i->opcode & 1);
	unsigned form = i->opcode & 7, to;

	if (form >= 4) /* with %al or %rax, and a constant */
		return form < 6 && (compares || writable(AX, go));
	if (compares)
		return true;
	to = form < 2 ? x86_rm(i) : x86_reg(i);
	return !(memory && form < 2) && writable(byte ? byte_register(i, to) : to, go);
}

/* memory: the operand is rip-relative and readable, else it is a register. */
static bool slides_0(const struct x86_insn *i, bool go, bool memory)
{
	unsigned group = i->modrm >> 3 & 7;

	if (i->opcode < 0x40)
		return arithmetic_slides(i, go, memory);
	switch (i->opcode) {
	case 0x80:
	case 0x81:
	case 0x83:
		if (group == 7)
			return true;
		return !memory &&
		       writable(i->opcode == 0x80 ? byte_register(i, x86_rm(i)) : x86_rm(i), go);
	case 0x84: /* test */
	case 0x85:
	case 0xa8:
	case 0xa9:
		return true;
	case 0xf6:
	case 0xf7:
		return group < 2;
	case 0x88:
		return !memory && writable(byte_register(i, x86_rm(i)), go);
	case 0x89:
		return !memory && writable(x86_rm(i), go);
	case 0x8a:
		return writable(byte_register(i, x86_reg(i)), go);
	case 0x8b:
	case 0x63:
		return writable(x86_reg(i), go);
	case 0xb0 ... 0xb7:
		return writable(byte_register(i, (i->opcode & 7) | (i->rex & 1) << 3), go);
	case 0xb8 ... 0xbf:
		return writable((i->opcode & 7) | (i->rex & 1) << 3, go);
	case 0xc7:
		return !memory && group == 0 && writable(x86_rm(i), go);
	default:
		return false;
	}
}

bool x86_slides(const struct x86_insn *i, bool go, bool readable)
{
	bool memory = i->has_modrm && x86_mod(i) != 3;

	if (x86_is_endbr(i) || (x86_is_nop(i) && !(i->prefixes & PREFIX_LOCK)))
		return true;
	if (i->vex || i->flow != FLOW_NEXT || (i->prefixes & ~(PREFIX_66 | PREFIX_ES_CS_SS_DS)))
		return false;
	/* lea has no access to memory; with a stack pointer in its address it is as good */
	if (i->map == 0 && i->opcode == 0x8d)
		return memory && writable(x86_reg(i), go);
	if (memory && !(x86_rip_relative(i) && readable))
		return false;
	if (i->map == 0)
		return slides_0(i, go, memory);
	/* movzx and movsx */
	if (i->map == 1 &&
	    (i->opcode == 0xb6 || i->opcode == 0xb7 || i->opcode == 0xbe || i->opcode == 0xbf))
		return writable(x86_reg(i), go);
	return false;
}
