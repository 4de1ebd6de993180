// SPDX-License-Identifier: GPL-2.0-or-later
/* Instructions as text, for people who ask where a probe went. */
#include <inttypes.h>
#include <stdarg.h>

#include "probes/place/priv.h"

struct text {
	const struct x86_insn *i;
	uint64_t address;
	char *to;
	size_t len, at;
	unsigned size; /* of the operands: 1, 2, 4, 8 */
};

static void PRINTF(2, 3) put(struct text *t, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(t->to + t->at, t->len - t->at, fmt, ap);
	va_end(ap);
	if (n > 0)
		t->at = t->at + (size_t)n < t->len ? t->at + (size_t)n : t->len - 1;
}

static void put_register(struct text *t, unsigned reg, unsigned size)
{
	static const char *const low[] = {"ax", "cx", "dx", "bx", "sp", "bp", "si", "di"};

	if (reg >= 8)
		put(t, "%%r%u%s", reg, size == 8 ? "" : size == 4 ? "d" : "w");
	else
		put(t, "%%%s%s", size == 8 ? "r" : size == 4 ? "e" : "", low[reg]);
}

static void put_byte_register(struct text *t, unsigned reg)
{
	static const char *const names[] = {"al",   "cl",   "dl",   "bl",  "spl",  "bpl",
					    "sil",  "dil",  "r8b",  "r9b", "r10b", "r11b",
					    "r12b", "r13b", "r14b", "r15b"};
	static const char *const high[] = {"ah", "ch", "dh", "bh"};

	put(t, "%%%s", !t->i->rex && reg >= 4 && reg < 8 ? high[reg - 4] : names[reg & 15]);
}

static void put_gpr(struct text *t, unsigned reg, unsigned size)
{
	if (size == 1)
		put_byte_register(t, reg);
	else
		put_register(t, reg, size);
}

static void put_number(struct text *t, int64_t v)
{
	if (v < 0)
		put(t, "-0x%" PRIx64, 0 - (uint64_t)v);
	else
		put(t, "0x%" PRIx64, (uint64_t)v);
}

static void put_sib(struct text *t)
{
	unsigned base = (t->i->sib & 7) | (t->i->rex & 1) << 3;
	unsigned index = (t->i->sib >> 3 & 7) | (t->i->rex & 2) << 2;

	if (x86_mod(t->i) == 0 && (base & 7) == 5 && index == 4) /* an address */
		return;
	put(t, "(");
	if (!(x86_mod(t->i) == 0 && (base & 7) == 5))
		put_register(t, base, 8);
	if (index != 4) {
		put(t, ",");
		put_register(t, index, 8);
		put(t, ",%d", 1 << (t->i->sib >> 6));
	}
	put(t, ")");
}

/* What is in memory, by ModRM's lower bits. */
static void put_memory(struct text *t)
{
	const struct x86_insn *i = t->i;

	if (i->prefixes & (PREFIX_FS | PREFIX_GS))
		put(t, i->prefixes & PREFIX_FS ? "%%fs:" : "%%gs:");
	if (i->disp_len || x86_rip_relative(i))
		put_number(t, i->disp);
	if (x86_rip_relative(i)) {
		put(t, "(%%rip)");
		return;
	}
	if ((i->modrm & 7) == 4) {
		put_sib(t);
		return;
	}
	put(t, "(");
	put_register(t, x86_rm(i), i->prefixes & PREFIX_67 ? 4 : 8);
	put(t, ")");
}

/* The operand that ModRM's lower bits name. */
static void put_rm(struct text *t, unsigned size)
{
	if (x86_mod(t->i) == 3)
		put_gpr(t, x86_rm(t->i), size);
	else
		put_memory(t);
}

static void put_vector_rm(struct text *t)
{
	if (x86_mod(t->i) == 3)
		put(t, "%%xmm%u", x86_rm(t->i));
	else
		put_memory(t);
}

static char suffix(unsigned size)
{
	return size == 1 ? 'b' : size == 2 ? 'w' : size == 4 ? 'l' : 'q';
}

/* NAME REG,R/M or, `load`, NAME R/M,REG */
static void two(struct text *t, const char *name, unsigned size, bool load)
{
	put(t, "%s ", name);
	if (load) {
		put_rm(t, size);
		put(t, ",");
		put_gpr(t, x86_reg(t->i), size);
	} else {
		put_gpr(t, x86_reg(t->i), size);
		put(t, ",");
		put_rm(t, size);
	}
}

/* NAME $IMM,R/M */
static void constant(struct text *t, const char *name, unsigned size)
{
	if (x86_mod(t->i) == 3)
		put(t, "%s $", name);
	else
		put(t, "%s%c $", name, suffix(size));
	put_number(t, t->i->imm);
	put(t, ",");
	put_rm(t, size);
}

static const char *const conditions[] = {"o", "no", "b", "ae", "e", "ne", "be", "a",
					 "s", "ns", "p", "np", "l", "ge", "le", "g"};

static void put_target(struct text *t, const char *name, const char *condition)
{
	put(t, "%s%s 0x%" PRIx64, name, condition, t->address + t->i->target);
}

static bool text_of_group5(struct text *t)
{
	static const char *const names[] = {"inc", "dec", "call *", NULL, "jmp *", NULL, "push "};
	unsigned group = t->i->modrm >> 3 & 7;

	if (group == 2 || group == 4 || group == 6) {
		put(t, "%s", names[group]);
		put_rm(t, 8);
		return true;
	}
	if (group > 1)
		return false;
	if (x86_mod(t->i) == 3)
		put(t, "%s ", names[group]);
	else
		put(t, "%s%c ", names[group], suffix(t->size));
	put_rm(t, t->size);
	return true;
}

static bool text_of_arithmetic(struct text *t)
{
	static const char *const names[] = {"add", "or", "adc", "sbb", "and", "sub", "xor", "cmp"};
	const struct x86_insn *i = t->i;
	const char *name = names[i->opcode >> 3 & 7];

	if (i->opcode >= 0x80) {
		constant(t, names[i->modrm >> 3 & 7], t->size);
	} else if ((i->opcode & 7) < 4) {
		two(t, name, t->size, i->opcode & 2);
	} else {
		put(t, "%s $", name);
		put_number(t, i->imm);
		put(t, ",");
		put_gpr(t, 0, t->size);
	}
	return true;
}

/* By one, by %cl or by a number. */
static bool text_of_shift(struct text *t)
{
	static const char *const names[] = {"rol", "ror", "rcl", "rcr", "shl", "shr", "shl", "sar"};
	const struct x86_insn *i = t->i;

	put(t, "%s", names[i->modrm >> 3 & 7]);
	if (x86_mod(i) != 3)
		put(t, "%c", suffix(t->size));
	if (i->opcode < 0xd0)
		put(t, " $0x%x,", (unsigned)(uint8_t)i->imm);
	else
		put(t, i->opcode < 0xd2 ? " " : " %%cl,");
	put_rm(t, t->size);
	return true;
}

static bool text_of_group3(struct text *t)
{
	static const char *const names[] = {"test", "test", "not", "neg",
					    "mul",  "imul", "div", "idiv"};
	unsigned group = t->i->modrm >> 3 & 7;

	if (group < 2) {
		constant(t, "test", t->size);
		return true;
	}
	put(t, "%s", names[group]);
	if (x86_mod(t->i) != 3)
		put(t, "%c", suffix(t->size));
	put(t, " ");
	put_rm(t, t->size);
	return true;
}

static bool text_of_products(struct text *t)
{
	const struct x86_insn *i = t->i;

	switch (i->opcode) {
	case 0x69:
	case 0x6b:
		put(t, "imul $");
		put_number(t, i->imm);
		put(t, ",");
		put_rm(t, t->size);
		put(t, ",");
		put_gpr(t, x86_reg(i), t->size);
		return true;
	case 0x98:
		put(t, t->size == 8 ? "cltq" : t->size == 4 ? "cwtl" : "cbtw");
		return true;
	case 0x99:
		put(t, t->size == 8 ? "cqto" : t->size == 4 ? "cltd" : "cwtd");
		return true;
	case 0xa8:
	case 0xa9:
		put(t, "test $");
		put_number(t, i->imm);
		put(t, ",");
		put_gpr(t, 0, t->size);
		return true;
	case 0xc0:
	case 0xc1:
	case 0xd0 ... 0xd3:
		return text_of_shift(t);
	case 0xf6:
	case 0xf7:
		return text_of_group3(t);
	default:
		return false;
	}
}

static bool text_of_moves(struct text *t)
{
	const struct x86_insn *i = t->i;

	switch (i->opcode) {
	case 0x63:
		put(t, "movslq ");
		put_rm(t, 4);
		put(t, ",");
		put_gpr(t, x86_reg(i), t->size);
		return true;
	case 0x84:
	case 0x85:
		two(t, "test", t->size, false);
		return true;
	case 0x88:
	case 0x89:
		two(t, "mov", t->size, false);
		return true;
	case 0x8a:
	case 0x8b:
		two(t, "mov", t->size, true);
		return true;
	case 0x8d:
		two(t, "lea", t->size, true);
		return true;
	case 0xb0 ... 0xbf:
		put(t, i->imm_len == 8 ? "movabs $" : "mov $");
		put_number(t, i->imm);
		put(t, ",");
		put_gpr(t, (i->opcode & 7) | (i->rex & 1) << 3, t->size);
		return true;
	case 0xc6:
	case 0xc7:
		constant(t, "mov", t->size);
		return true;
	default:
		return text_of_products(t);
	}
}

static bool text_of_0(struct text *t)
{
	const struct x86_insn *i = t->i;

	if (i->opcode < 0x40 || (i->opcode >= 0x80 && i->opcode <= 0x83))
		return text_of_arithmetic(t);
	switch (i->opcode) {
	case 0x50 ... 0x5f:
		put(t, i->opcode < 0x58 ? "push " : "pop ");
		put_register(t, (i->opcode & 7) | (i->rex & 1) << 3,
			     i->prefixes & PREFIX_66 ? 2 : 8);
		return true;
	case 0x70 ... 0x7f:
		put_target(t, "j", conditions[i->opcode & 15]);
		return true;
	case 0x68:
	case 0x6a:
		put(t, "push $");
		put_number(t, i->imm);
		return true;
	case 0x90:
		put(t, i->rex & 1 ? "xchg %%r8,%%rax" : i->prefixes & PREFIX_F3 ? "pause" : "nop");
		return true;
	case 0xc3:
		put(t, "ret");
		return true;
	case 0xc2:
		put(t, "ret $0x%x", (unsigned)(uint16_t)i->imm);
		return true;
	case 0xc9:
		put(t, "leave");
		return true;
	case 0xcc:
		put(t, "int3");
		return true;
	case 0xe8:
		put_target(t, "call", "");
		return true;
	case 0xe9:
	case 0xeb:
		put_target(t, "jmp", "");
		return true;
	case 0xf4:
		put(t, "hlt");
		return true;
	case 0xfe:
	case 0xff:
		return text_of_group5(t);
	default:
		return text_of_moves(t);
	}
}

/* --- floating-point numbers, and what goes with them --- */

enum vector_form {
	TO_VECTOR,   /* R/M,XMM */
	FROM_VECTOR, /* XMM,R/M */
	SHUFFLE,     /* $IMM,R/M,XMM */
	TO_GPR,	     /* XMM or memory,REG */
	FROM_GPR,    /* REG or memory,XMM */
	OUT_OF,	     /* XMM,REG or memory */
};
/* By the prefix: none, 66, F3, F2. */
static const struct vector_insn {
	uint8_t opcode;
	uint8_t form;
	const char *names[4];
} vector_insns[] = {
	{0x10, TO_VECTOR, {"movups", "movupd", "movss", "movsd"}},
	{0x11, FROM_VECTOR, {"movups", "movupd", "movss", "movsd"}},
	{0x14, TO_VECTOR, {"unpcklps", "unpcklpd"}},
	{0x15, TO_VECTOR, {"unpckhps", "unpckhpd"}},
	{0x28, TO_VECTOR, {"movaps", "movapd"}},
	{0x29, FROM_VECTOR, {"movaps", "movapd"}},
	{0x2a, FROM_GPR, {NULL, NULL, "cvtsi2ss", "cvtsi2sd"}},
	{0x2c, TO_GPR, {NULL, NULL, "cvttss2si", "cvttsd2si"}},
	{0x2d, TO_GPR, {NULL, NULL, "cvtss2si", "cvtsd2si"}},
	{0x2e, TO_VECTOR, {"ucomiss", "ucomisd"}},
	{0x2f, TO_VECTOR, {"comiss", "comisd"}},
	{0x51, TO_VECTOR, {"sqrtps", "sqrtpd", "sqrtss", "sqrtsd"}},
	{0x54, TO_VECTOR, {"andps", "andpd"}},
	{0x55, TO_VECTOR, {"andnps", "andnpd"}},
	{0x56, TO_VECTOR, {"orps", "orpd"}},
	{0x57, TO_VECTOR, {"xorps", "xorpd"}},
	{0x58, TO_VECTOR, {"addps", "addpd", "addss", "addsd"}},
	{0x59, TO_VECTOR, {"mulps", "mulpd", "mulss", "mulsd"}},
	{0x5a, TO_VECTOR, {"cvtps2pd", "cvtpd2ps", "cvtss2sd", "cvtsd2ss"}},
	{0x5b, TO_VECTOR, {"cvtdq2ps", "cvtps2dq", "cvttps2dq"}},
	{0x5c, TO_VECTOR, {"subps", "subpd", "subss", "subsd"}},
	{0x5d, TO_VECTOR, {"minps", "minpd", "minss", "minsd"}},
	{0x5e, TO_VECTOR, {"divps", "divpd", "divss", "divsd"}},
	{0x5f, TO_VECTOR, {"maxps", "maxpd", "maxss", "maxsd"}},
	{0x62, TO_VECTOR, {NULL, "punpckldq"}},
	{0x6c, TO_VECTOR, {NULL, "punpcklqdq"}},
	{0x6e, FROM_GPR, {NULL, "mov"}},
	{0x6f, TO_VECTOR, {NULL, "movdqa", "movdqu"}},
	{0x70, SHUFFLE, {NULL, "pshufd"}},
	{0x7e, OUT_OF, {NULL, "mov", "movq"}},
	{0x7f, FROM_VECTOR, {NULL, "movdqa", "movdqu"}},
	{0xc6, SHUFFLE, {"shufps", "shufpd"}},
	{0xd4, TO_VECTOR, {NULL, "paddq"}},
	{0xd6, FROM_VECTOR, {NULL, "movq"}},
	{0xdb, TO_VECTOR, {NULL, "pand"}},
	{0xeb, TO_VECTOR, {NULL, "por"}},
	{0xef, TO_VECTOR, {NULL, "pxor"}},
	{0xfa, TO_VECTOR, {NULL, "psubd"}},
	{0xfb, TO_VECTOR, {NULL, "psubq"}},
	{0xfe, TO_VECTOR, {NULL, "paddd"}},
};

static void put_vector(struct text *t, const struct vector_insn *v, const char *name)
{
	const struct x86_insn *i = t->i;
	unsigned size = i->rex & 8 ? 8 : 4;
	bool between = v->opcode == 0x6e || (v->opcode == 0x7e && i->prefixes & PREFIX_66);

	/* movd and movq; others say how wide it is only where no register does */
	put(t, "%s%s", name, between ? size == 8 ? "q" : "d" : "");
	if (v->form == FROM_GPR && !between && x86_mod(i) != 3)
		put(t, "%c", suffix(size));
	put(t, " ");
	if (v->form == SHUFFLE)
		put(t, "$0x%x,", (unsigned)(uint8_t)i->imm);
	if (v->form == FROM_VECTOR || (v->form == OUT_OF && between))
		put(t, "%%xmm%u,", x86_reg(i));
	if (v->form == FROM_GPR || (v->form == OUT_OF && between))
		put_rm(t, size);
	else
		put_vector_rm(t);
	if (v->form == TO_GPR) {
		put(t, ",");
		put_gpr(t, x86_reg(i), size);
	} else if (v->form != FROM_VECTOR && !(v->form == OUT_OF && between)) {
		put(t, ",%%xmm%u", x86_reg(i));
	}
}

static bool text_of_vectors(struct text *t)
{
	uint8_t p = t->i->prefixes;
	unsigned prefix = p & PREFIX_F2 ? 3 : p & PREFIX_F3 ? 2 : p & PREFIX_66 ? 1 : 0;

	for (size_t k = 0; k < ARRAY_SIZE(vector_insns); k++)
		if (vector_insns[k].opcode == t->i->opcode && vector_insns[k].names[prefix]) {
			put_vector(t, &vector_insns[k], vector_insns[k].names[prefix]);
			return true;
		}
	return false;
}

static bool text_of_1(struct text *t)
{
	const struct x86_insn *i = t->i;

	if (x86_is_endbr(i)) {
		put(t, i->modrm == 0xfa ? "endbr64" : "endbr32");
	} else if (x86_is_nop(i)) {
		put(t, "nop%c ", suffix(t->size));
		put_rm(t, t->size);
	} else if ((i->opcode & 0xf0) == 0x80) {
		put_target(t, "j", conditions[i->opcode & 15]);
	} else if (i->opcode == 0x05) {
		put(t, "syscall");
	} else if (i->opcode == 0x0b) {
		put(t, "ud2");
	} else if ((i->opcode & 0xf0) == 0x40) {
		put(t, "cmov%s ", conditions[i->opcode & 15]);
		put_rm(t, t->size);
		put(t, ",");
		put_gpr(t, x86_reg(i), t->size);
	} else if ((i->opcode & 0xf0) == 0x90) {
		put(t, "set%s ", conditions[i->opcode & 15]);
		put_rm(t, 1);
	} else if (i->opcode == 0xaf) {
		two(t, "imul", t->size, true);
	} else if ((i->opcode & 0xf6) == 0xb6) {
		unsigned from = i->opcode & 1 ? 2 : 1;

		put(t, "mov%c%c%c ", i->opcode < 0xb8 ? 'z' : 's', suffix(from), suffix(t->size));
		put_rm(t, from);
		put(t, ",");
		put_gpr(t, x86_reg(i), t->size);
	} else {
		return text_of_vectors(t);
	}
	return true;
}

/* Of most one-byte opcodes the lowest bit says whether the operands are bytes. */
static unsigned operand_size(const struct x86_insn *i)
{
	bool bytes = i->opcode < 0x40 || (i->opcode >= 0x80 && i->opcode <= 0x8b) ||
		     i->opcode == 0xa8 || i->opcode == 0xc0 || i->opcode == 0xc6 ||
		     i->opcode == 0xd0 || i->opcode == 0xd2 || i->opcode == 0xf6 ||
		     i->opcode == 0xfe;

	if (i->map == 0 && ((bytes && !(i->opcode & 1)) || (i->opcode & 0xf8) == 0xb0))
		return 1;
	if (i->rex & 8)
		return 8;
	return i->prefixes & PREFIX_66 ? 2 : 4;
}

void x86_text(const struct x86_insn *i, const uint8_t *bytes, uint64_t address, char *to,
	      size_t len)
{
	struct text t = {.i = i, .address = address, .to = to, .len = len};
	bool known = false;

	to[0] = 0;
	t.size = operand_size(i);
	/* string instructions, lock and the like are spelled by their bytes */
	if (!i->vex && i->map < 2 && !(i->prefixes & PREFIX_LOCK))
		known = i->map ? text_of_1(&t) : text_of_0(&t);
	if (known && x86_rip_relative(i))
		put(&t, " # 0x%" PRIx64, address + i->len + (uint64_t)(int64_t)i->disp);
	if (known)
		return;
	t.at = 0;
	put(&t, ".byte ");
	for (unsigned k = 0; k < i->len; k++)
		put(&t, "%s%02x", k ? " " : "", bytes[k]);
}
