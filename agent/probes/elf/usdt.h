/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Static probes (USDT) of ELF files, and where their arguments are. */
#ifndef AX_PROBES_ELF_USDT_H
#define AX_PROBES_ELF_USDT_H

#include "probes/elf/binary.h"

/* An operand of a USDT probe, in all forms that gcc and clang emit: "8@%rax", "-4@-20(%rbp)",
 * "8@8(%rdx,%rax,8)", "4@$5", "8@sym(%rip)", and arm64's. binary_usdts resolves symbols: then with
 * reg "rip" the value is the distance from the probe's own address, without it an address. */
enum usdt_arg_kind { USDT_CONST, USDT_REG, USDT_MEMORY };
struct usdt_arg {
	enum usdt_arg_kind kind;
	uint8_t size; /* 1, 2, 4, 8 */
	bool is_signed;
	bool is_float; /* of 4 or 8 bytes, if it can be fetched */
	int64_t value; /* constant, or displacement */
	char reg[8];   /* "rax": the register, or the base; "": none */
	char index[8]; /* "": none */
	uint8_t scale;
	uint8_t shift;	  /* the value's lowest bit in the register: 8 for %ah */
	bool unfetchable; /* see the text: 16 bytes, in a vector register, a symbol that the file
			     does not have ... */
	char symbol[64];  /* that value is relative to; "": none, or resolved */
};
#define USDT_ARGS_MAX 16
struct usdt {
	const char *provider, *name;
	uint64_t offset;       /* in the file */
	uint64_t semaphore;    /* in the file, 0: none */
	const char *args_text; /* with n_args 0: usdt_args_parse says why */
	struct usdt_arg args[USDT_ARGS_MAX];
	size_t n_args;
};
int usdt_args_parse(const char *text, struct usdt *u, struct error *e);
int binary_usdts(struct binary *b, const char *provider_glob, const char *name_glob,
		 int (*f)(void *arg, const struct usdt *u), void *arg, struct error *e);

#endif
