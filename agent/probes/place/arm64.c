// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What Linux does with a uprobe on an arm64 instruction (arch/arm64/kernel/probes/decode-insn.c):
 * jumps and addresses relative to the program counter are simulated, of what cannot run elsewhere
 * the rest is refused. Where it takes one that would run wrong elsewhere, it is refused here.
 */
#include "probes/elf/image.h"
#include "probes/place/priv.h"

#define INSN_LEN 4u

static bool is(uint32_t insn, uint32_t mask, uint32_t value)
{
	return (insn & mask) == value;
}

bool arm64_is_return(uint32_t insn)
{
	/* ret Xn; retaa, retab */
	return is(insn, 0xfffffc1f, 0xd65f0000) || is(insn, 0xfffffbff, 0xd65f0bff);
}

static bool is_conditional(uint32_t insn)
{
	return is(insn, 0xff000010, 0x54000000);
}

static bool is_simulated(uint32_t insn)
{
	return is(insn, 0x7c000000, 0x14000000) ||			   /* b, bl */
	       is_conditional(insn) || is(insn, 0x7e000000, 0x34000000) || /* cbz, cbnz */
	       is(insn, 0x7e000000, 0x36000000) ||			   /* tbz, tbnz */
	       is(insn, 0xff9ffc1f, 0xd61f0000) ||			   /* br, blr, ret */
	       is(insn, 0x1f000000, 0x10000000);			   /* adr, adrp */
}

/* --- hints --- */

/* Those that do nothing where they are not known. Of others (yield, wfe) and of those that check a
 * signed address the kernel steps over none. */
static const struct {
	uint8_t number;
	bool is_stepped;
	const char *name;
} hints[] = {
	{0, true, "nop"},	  {1, false, "yield"},	    {2, false, "wfe"},
	{3, false, "wfi"},	  {4, false, "sev"},	    {5, false, "sevl"},
	{7, true, "xpaclri"},	  {8, true, "pacia1716"},   {10, true, "pacib1716"},
	{12, false, "autia1716"}, {14, false, "autib1716"}, {24, true, "paciaz"},
	{25, true, "paciasp"},	  {26, true, "pacibz"},	    {27, true, "pacibsp"},
	{28, false, "autiaz"},	  {29, false, "autiasp"},   {30, false, "autibz"},
	{31, false, "autibsp"},	  {32, true, "bti"},	    {34, true, "bti c"},
	{36, true, "bti j"},	  {38, true, "bti jc"},
};

static bool is_hint(uint32_t insn)
{
	return is(insn, 0xfffff01f, 0xd503201f);
}

static enum place_cost hint_cost(uint32_t insn, struct place_kernel k, const char **why)
{
	unsigned n = insn >> 5 & 0x7f;

	if (n == 0 && k.arm64_nop) {
		*why = "the kernel simulates this instruction";
		return PLACE_EMULATED;
	}
	for (size_t i = 0; i < ARRAY_SIZE(hints); i++)
		if (hints[i].number == n && hints[i].is_stepped) {
			*why = "the kernel steps over this instruction";
			return PLACE_STEPPED;
		}
	*why = "the kernel takes no probe on this hint";
	return PLACE_REFUSED;
}

/* --- what cannot run elsewhere --- */

/* Of jumps, exceptions and system registers what is not simulated. */
static const char *refused_system(uint32_t insn)
{
	if (!is(insn, 0x1c000000, 0x14000000))
		return NULL;
	if (is(insn, 0xff000000, 0xd4000000))
		return "the kernel takes no probe on what makes an exception";
	if (!is(insn, 0xff000000, 0xd5000000))
		return "the kernel does not simulate this jump";
	if (is(insn, 0xfff8f01f, 0xd500401f) || is(insn, 0xfff00000, 0xd5100000))
		return "the kernel takes no probe on what writes a system register";
	/* mrs Xn, daif */
	if (is(insn, 0xffffffe0, 0xd53b4220))
		return "the kernel takes no probe on what reads this system register";
	return NULL;
}

/* ldxr, stxr, ldaxp ... and casp, which the kernel takes for one of them. */
static bool is_exclusive(uint32_t insn)
{
	return is(insn, 0x3f800000, 0x08000000);
}

static const char *refused_memory(uint32_t insn)
{
	/* kernels before 6.12 simulated ldr and ldrsw, and that could crash them; of SIMD's they do
	 * not know that it is relative */
	if (is(insn, 0x3b000000, 0x18000000))
		return "what it reads is relative to where it stands, which the kernel cannot "
		       "follow";
	if (is_exclusive(insn))
		return "the kernel takes no probe on exclusive loads and stores";
	if (is(insn, 0x3b200c00, 0x19000400)) /* cpyfp, setp ... */
		return "the kernel takes no probe on copies of memory in three instructions";
	if (is(insn, 0xffff0000, 0x00000000)) /* udf */
		return "this is no instruction";
	return NULL;
}

enum place_cost arm64_cost(uint32_t insn, struct place_kernel k, const char **why)
{
	if (is_simulated(insn)) {
		*why = "the kernel simulates this instruction";
		return PLACE_EMULATED;
	}
	if (is_hint(insn))
		return hint_cost(insn, k, why);
	*why = refused_system(insn);
	if (!*why)
		*why = refused_memory(insn);
	if (*why)
		return PLACE_REFUSED;
	*why = "the kernel steps over this instruction";
	return PLACE_STEPPED;
}

bool arm64_in_exclusive(const uint8_t *code, size_t at)
{
	for (size_t k = at; k >= INSN_LEN; k -= INSN_LEN) {
		uint32_t insn = get_u32(code + k - INSN_LEN);
		bool casp = is(insn, 0xbfa07c00, 0x08207c00);

		if (is_exclusive(insn) && !casp)
			return insn & 1u << 22; /* it loads */
		/* b, bl; br, blr, ret; clrex */
		if (is(insn, 0x7c000000, 0x14000000) || is(insn, 0xfe000000, 0xd6000000) ||
		    is(insn, 0xfffff0ff, 0xd503305f))
			return false;
	}
	return false;
}

/* --- Go --- */

/* It computes into R16, R17 or R27, or compares: what the check of the stack is made of. */
static bool is_of_check(uint32_t insn)
{
	bool computes = is(insn, 0x1c000000, 0x10000000) || is(insn, 0x0e000000, 0x0a000000);
	unsigned to = insn & 31;
	bool compares = to == 31 && insn & 1u << 29 && is(insn, 0x1e000000, 0x0a000000);

	return compares || (computes && (to == 16 || to == 17 || to == 27)) ||
	       is(insn, 0xff00001f, 0x54000003); /* b.lo: less than can be subtracted */
}

size_t arm64_go_prologue(const uint8_t *code, size_t len)
{
	/* ldr x16, [x28, #16]: the limit of the goroutine's stack */
	if (len < INSN_LEN || get_u32(code) != 0xf9400b90)
		return 0;
	for (size_t at = INSN_LEN; len - at >= 2 * INSN_LEN && at < 8 * INSN_LEN; at += INSN_LEN) {
		uint32_t insn = get_u32(code + at);

		if (is(insn, 0xff00001f, 0x54000009)) /* b.ls to what lets it grow */
			return at + INSN_LEN;
		if (!is_of_check(insn))
			return 0;
	}
	return 0;
}

/* --- text --- */

void arm64_text(uint32_t insn, char *to, size_t len)
{
	unsigned hint = insn >> 5 & 0x7f;

	if (insn == 0xd65f03c0) {
		snprintf(to, len, "ret");
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(hints); i++)
		if (is_hint(insn) && hints[i].number == hint) {
			snprintf(to, len, "%s", hints[i].name);
			return;
		}
	snprintf(to, len, ".inst 0x%08x", insn);
}
