/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Instructions, and what the kernel does with a probe on one. */
#ifndef AX_PROBES_PLACE_PRIV_H
#define AX_PROBES_PLACE_PRIV_H

#include "probes/place/place.h"

enum x86_flow {
	FLOW_NEXT,
	FLOW_JUMP,	   /* to `target` */
	FLOW_BRANCH,	   /* to `target` or on */
	FLOW_JUMP_POINTER, /* to where a pointer beside the code points: another function */
	FLOW_JUMP_ANY,
	FLOW_CALL, /* comes back */
	FLOW_RETURN,
	FLOW_STOP, /* ud2, hlt, int3: does not come back */
};

enum x86_prefix {
	PREFIX_66 = 1 << 0,
	PREFIX_67 = 1 << 1,
	PREFIX_F2 = 1 << 2,
	PREFIX_F3 = 1 << 3,
	PREFIX_LOCK = 1 << 4,
	PREFIX_ES_CS_SS_DS = 1 << 5,
	PREFIX_FS = 1 << 6,
	PREFIX_GS = 1 << 7,
};

#define X86_LEN_MAX 15
struct x86_insn {
	uint8_t len;
	uint8_t prefixes;
	uint8_t rex;
	uint8_t vex; /* 0: none; 2, 3: VEX of so many bytes; 4: EVEX */
	uint8_t map; /* 0: one byte, 1: 0f, 2: 0f 38, 3: 0f 3a, 5, 6: of EVEX */
	uint8_t opcode;
	bool has_modrm;
	uint8_t modrm, sib;
	uint8_t disp_len, imm_len;
	int32_t disp;
	int64_t imm;
	enum x86_flow flow;
	uint64_t target; /* relative to where the instruction starts; two's complement */
};
/* What is at p; false: no instruction that is known, or more than n bytes. */
bool x86_decode(const uint8_t *p, size_t n, struct x86_insn *ret);
/* Its text as gas writes it; addresses relative to `address`. What is rare: its bytes. */
void x86_text(const struct x86_insn *i, const uint8_t *bytes, uint64_t address, char *to,
	      size_t len);

static inline unsigned x86_mod(const struct x86_insn *i)
{
	return i->modrm >> 6;
}
/* With the fourth bit of the REX prefix. */
static inline unsigned x86_reg(const struct x86_insn *i)
{
	return (i->modrm >> 3 & 7) | (i->rex & 4) << 1;
}
static inline unsigned x86_rm(const struct x86_insn *i)
{
	return (i->modrm & 7) | (i->rex & 1) << 3;
}
static inline bool x86_rip_relative(const struct x86_insn *i)
{
	return i->has_modrm && (i->modrm & 0xc7) == 5;
}
static inline bool x86_is_endbr(const struct x86_insn *i)
{
	return !i->vex && i->map == 1 && i->opcode == 0x1e && (i->prefixes & PREFIX_F3) &&
	       (i->modrm == 0xfa || i->modrm == 0xfb);
}
/* 90, 0f 1f /0 with all their prefixes. */
bool x86_is_nop(const struct x86_insn *i);

/* What a kernel can do. */
struct place_kernel {
	bool long_nops; /* emulates nops of 2 to 8 bytes as the kernel writes them (6.16) */
	bool nop5;	/* puts a call in the place of a 5-byte nop (6.18) */
	bool arm64_nop; /* simulates arm64's nop (6.13) */
};
struct place_kernel place_kernel_now(void);

/* Of the instruction alone, wherever it is; `page_offset` is where in its page. */
enum place_cost x86_cost(const struct x86_insn *i, const uint8_t *bytes, unsigned page_offset,
			 struct place_kernel k, const char **why);
/* It leaves the registers of arguments (go: of Go's ABI), stack and frame pointers alone, cannot
 * fault, and the next instruction is what comes after it. `readable`: of a rip-relative operand. */
bool x86_slides(const struct x86_insn *i, bool go, bool readable);

/* Of the instruction alone. */
enum place_cost arm64_cost(uint32_t insn, struct place_kernel k, const char **why);
bool arm64_is_return(uint32_t insn);
/* The instruction at `at` is between an exclusive load and its store: whatever stops there loses
 * what the load has reserved, so that the program would try again for ever. `code` begins within
 * the same function. */
bool arm64_in_exclusive(const uint8_t *code, size_t at);
/* The bytes of the check of Go's stack, with which its functions start. 0: there is none. */
size_t arm64_go_prologue(const uint8_t *code, size_t len);
void arm64_text(uint32_t insn, char *to, size_t len);

#define CODE_MAX (1u << 20) /* bytes; bigger functions are left as they are */
/* Code of one function. */
struct code {
	uint8_t *bytes;
	size_t len;
	uint64_t address;
};
/* The code of a function, or as much of what is at an address as an instruction can be long. */
int place_load_code(struct binary *b, uint64_t address, uint64_t end, struct code *c,
		    struct error *e);
void place_code_free(struct code *c);
/* Sets the sentence: there is no code at that offset. */
int place_no_code(const struct binary *b, uint64_t offset, struct error *e);

#define JUMPS_KNOWN 256
/* Where jumps go to: the first bytes of a function, one for each; or anywhere. */
struct jumps {
	bool to[JUMPS_KNOWN];
	bool anywhere;
};
int place_jumps(struct binary *b, const struct code *c, struct jumps *ret);
/* Adds the jumps from other functions nearby, which only code in assembly has. */
int place_near_jumps(struct binary *b, const struct code *c, struct jumps *j);

/* ifunc.c: the addresses of functions that the one at `address` can return. Their number, or
 * -ENOMEM. */
int place_implementations(struct binary *b, uint64_t address, uint64_t size, uint64_t *ret,
			  size_t max);

#endif
