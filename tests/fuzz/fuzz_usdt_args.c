// SPDX-License-Identifier: GPL-2.0-or-later
/* Any text as operands of a USDT probe, as a mangled name, and any bytes as an instruction. */
#include "probes/elf/usdt.h"
#include "probes/place/priv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool good)
{
	if (!good)
		abort();
}

static bool has_end(const char *s, size_t max)
{
	return memchr(s, 0, max) != NULL;
}

static void check_arg(const struct usdt_arg *a)
{
	check(a->size == 1 || a->size == 2 || a->size == 4 || a->size == 8);
	check(has_end(a->reg, sizeof(a->reg)) && has_end(a->index, sizeof(a->index)));
	check(has_end(a->symbol, sizeof(a->symbol)));
	check(a->scale == 0 || a->scale == 1 || a->scale == 2 || a->scale == 4 || a->scale == 8);
	check(a->kind != USDT_REG || (*a->reg && !*a->index));
	check(a->kind != USDT_CONST || !*a->reg);
}

static void check_text(const char *text)
{
	autofree char *whole = demangle(text, true), *brief = demangle(text, false);
	struct error e = {0};
	struct usdt u;
	int r = usdt_args_parse(text, &u, &e);

	check(u.n_args <= USDT_ARGS_MAX);
	check(r == 0 || (u.n_args == 0 && *e.text));
	for (size_t i = 0; i < u.n_args; i++)
		check_arg(&u.args[i]);
	check(!whole || *whole);
	check(!brief || *brief);
}

static void check_instruction(const uint8_t *data, size_t size)
{
	const struct place_kernel all = {.long_nops = true, .nop5 = true, .arm64_nop = true};
	uint8_t bytes[X86_LEN_MAX] = {0};
	struct x86_insn i;
	const char *why = NULL;
	char text[64];
	uint32_t word;

	memcpy(bytes, data, size < sizeof(bytes) ? size : sizeof(bytes));
	memcpy(&word, bytes, sizeof(word));
	arm64_text(word, text, sizeof(text));
	check(*text && arm64_cost(word, all, &why) <= PLACE_REFUSED && why);
	arm64_in_exclusive(data, size & ~(size_t)3);
	check(arm64_go_prologue(data, size) <= size);
	if (!x86_decode(bytes, sizeof(bytes), &i))
		return;
	check(i.len >= 1 && i.len <= X86_LEN_MAX);
	check(x86_cost(&i, bytes, 0, all, &why) <= PLACE_REFUSED && *why);
	x86_text(&i, bytes, 0x401000, text, sizeof(text));
	check(*text && has_end(text, sizeof(text)));
	x86_slides(&i, size & 1, true);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	autofree char *text = malloc(size + 1);

	check(text != NULL);
	memcpy(text, data, size);
	text[size] = 0;
	check_text(text);
	check_instruction(data, size);
	return 0;
}
