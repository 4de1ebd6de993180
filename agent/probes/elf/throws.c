// SPDX-License-Identifier: GPL-2.0-or-later
/* Where a uretprobe, which puts another address in the place of a function's return address, would
 * be in a program's way. */
#include "probes/elf/symbols.h"

/*
 * Functions whose return address must stay as it is: it is looked at (setjmp, which would keep the
 * trampoline's for a longjmp that comes when nothing waits there any more), or what is on the stack
 * is none.
 */
bool function_keeps_return(const char *name)
{
	static const char *const names[] = {
		"_start",	  "setjmp",	 "_setjmp",	    "__sigsetjmp",  "sigsetjmp",
		"__setjmp",	  "savectx",	 "getcontext",	    "swapcontext",  "__getcontext",
		"__swapcontext",  "vfork",	 "__vfork",	    "__libc_vfork", "__restore_rt",
		"_dl_start_user", "__morestack", "__start_context",
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (streq(name, names[i]))
			return true;
	return starts_with(name, "_dl_runtime_") || starts_with(name, "_dl_tlsdesc_");
}

static bool throws(const char *name)
{
	/* the last ones are of code that only cleans up: destructors, also when a thread is
	 * cancelled */
	static const char *const names[] = {"__cxa_throw",	   "__cxa_rethrow",
					    "__cxa_begin_catch",   "_Unwind_RaiseException",
					    "_Unwind_Resume",	   "__gxx_personality_v0",
					    "__gcc_personality_v0"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (starts_with(name, names[i]))
			return true;
	return false;
}

static bool table_throws(const struct image *im, const Elf64_Shdr *table)
{
	autofree void *symbols = NULL, *names = NULL;
	size_t len, names_len;
	const Elf64_Sym *v;

	if (table->sh_link >= im->n_sections || table->sh_entsize != sizeof(*v) ||
	    image_section_load(im, table, &symbols, &len) ||
	    image_section_load(im, &im->sections[table->sh_link], &names, &names_len))
		return false;
	v = symbols;
	for (size_t i = 0; i < len / sizeof(*v); i++)
		if (v[i].st_name < names_len && throws((const char *)names + v[i].st_name))
			return true;
	return false;
}

/* With a trampoline in a return address's place, an exception does not find its handler, and the
 * program is terminated. */
bool binary_throws(const struct binary *b)
{
	const struct image *im = &b->image;

	for (size_t i = 0; i < im->n_sections; i++) {
		const Elf64_Shdr *s = &im->sections[i];

		if ((s->sh_type == SHT_DYNSYM || s->sh_type == SHT_SYMTAB) && table_throws(im, s))
			return true;
	}
	return false;
}
