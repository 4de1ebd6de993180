// SPDX-License-Identifier: GPL-2.0-or-later
/* Where a uretprobe, which puts another address in the place of a function's return address, would
 * be in a program's way. */
#include <fcntl.h>
#include <gelf.h>

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

static bool table_throws(Elf *elf, Elf_Scn *scn, const GElf_Shdr *sh)
{
	Elf_Data *data = elf_getdata(scn, NULL);
	size_t n = data && sh->sh_entsize ? data->d_size / sh->sh_entsize : 0;

	for (size_t i = 0; i < n && i <= INT32_MAX; i++) {
		GElf_Sym sym;
		const char *name;

		if (!gelf_getsym(data, (int)i, &sym))
			break;
		name = elf_strptr(elf, sh->sh_link, sym.st_name);
		if (name && throws(name))
			return true;
	}
	return false;
}

/* With a trampoline in a return address's place, an exception does not find its handler, and the
 * program is terminated. */
bool binary_throws(const struct binary *b)
{
	autoclose int fd = open(b->path, O_RDONLY | O_CLOEXEC);
	Elf_Scn *scn = NULL;
	bool found = false;
	Elf *elf;

	elf_version(EV_CURRENT);
	elf = fd >= 0 ? elf_begin(fd, ELF_C_READ, NULL) : NULL;
	while (elf && !found && (scn = elf_nextscn(elf, scn))) {
		GElf_Shdr sh;

		if (gelf_getshdr(scn, &sh) &&
		    (sh.sh_type == SHT_DYNSYM || sh.sh_type == SHT_SYMTAB))
			found = table_throws(elf, scn, &sh);
	}
	if (elf)
		elf_end(elf);
	return found;
}
