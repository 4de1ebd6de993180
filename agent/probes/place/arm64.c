// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What Linux does with a uprobe on an arm64 instruction (arch/arm64/kernel/probes/decode-insn.c):
 * jumps and reads relative to the program counter are simulated, of what cannot run elsewhere the
 * rest is refused.
 */
#include "probes/place/priv.h"

static bool is(uint32_t insn, uint32_t mask, uint32_t value)
{
	return (insn & mask) == value;
}

bool arm64_is_return(uint32_t insn)
{
	/* ret Xn; retaa, retab */
	return is(insn, 0xfffffc1f, 0xd65f0000) || is(insn, 0xfffffbff, 0xd65f0bff);
}

static bool is_simulated(uint32_t insn)
{
	return is(insn, 0x7c000000, 0x14000000) || /* b, bl */
	       is(insn, 0xff000010, 0x54000000) || /* b.cond */
	       is(insn, 0x7e000000, 0x34000000) || /* cbz, cbnz */
	       is(insn, 0x7e000000, 0x36000000) || /* tbz, tbnz */
	       is(insn, 0xff9ffc1f, 0xd61f0000) || /* br, blr, ret */
	       is(insn, 0x1f000000, 0x10000000) || /* adr, adrp */
	       is(insn, 0xbf000000, 0x18000000) || /* ldr of a literal */
	       is(insn, 0xff000000, 0x98000000);   /* ldrsw of a literal */
}

/* nop, bti, paciasp and the like; of other hints (yield, wfe) nobody knows what stepping does. */
static bool is_steppable_hint(uint32_t insn)
{
	unsigned n = insn >> 5 & 0x7f;

	return n == 0 || n == 7 || n == 8 || n == 10 || n == 12 || n == 14 ||
	       (n >= 24 && n <= 31) || (n >= 32 && n <= 38 && !(n & 1));
}

enum place_cost arm64_cost(uint32_t insn, const char **why)
{
	if (is_simulated(insn)) {
		*why = "the kernel simulates this instruction";
		return PLACE_EMULATED;
	}
	if (is(insn, 0xfffff01f, 0xd503201f)) {
		*why = is_steppable_hint(insn) ? "the kernel steps over this instruction"
					       : "the kernel takes no probe on this hint";
		return is_steppable_hint(insn) ? PLACE_STEPPED : PLACE_REFUSED;
	}
	*why = "the kernel takes no probe on this instruction";
	if (is(insn, 0x3f000000, 0x08000000))
		*why = "the kernel takes no probe between an exclusive load and its store";
	else if (!is(insn, 0xff000000, 0xd4000000) && /* svc, hvc, brk, hlt */
		 !is(insn, 0xfe000000, 0xd6000000) && /* eret, authenticated branches */
		 !is(insn, 0xfff8f01f, 0xd500401f) && /* msr of an immediate */
		 !is(insn, 0x3b000000, 0x18000000) && /* other literals: SIMD, prfm */
		 !is(insn, 0xffff0000, 0x00000000)) { /* udf */
		*why = "the kernel steps over this instruction";
		return PLACE_STEPPED;
	}
	return PLACE_REFUSED;
}

void arm64_text(uint32_t insn, char *to, size_t len)
{
	static const char *const bti[] = {"bti", "bti c", "bti j", "bti jc"};
	unsigned hint = insn >> 5 & 0x7f;

	if (insn == 0xd65f03c0)
		snprintf(to, len, "ret");
	else if (is(insn, 0xfffff01f, 0xd503201f) && hint == 0)
		snprintf(to, len, "nop");
	else if (is(insn, 0xfffff01f, 0xd503201f) && hint == 25)
		snprintf(to, len, "paciasp");
	else if (is(insn, 0xfffff01f, 0xd503201f) && hint >= 32 && hint <= 38 && !(hint & 1))
		snprintf(to, len, "%s", bti[(hint - 32) / 2]);
	else
		snprintf(to, len, ".inst 0x%08x", insn);
}
