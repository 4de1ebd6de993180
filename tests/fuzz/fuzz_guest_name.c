// SPDX-License-Identifier: GPL-2.0-or-later
/* Any bytes as the command line of a process that runs a virtual machine: a name is some text, and
 * what stands behind the end of the bytes makes no difference. */
#include "probes/kvm/guest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool good)
{
	if (!good)
		abort();
}

static char *name_of(const uint8_t *data, size_t size)
{
	char *copy = malloc(size ? size : 1), *name;

	check(copy);
	if (size)
		memcpy(copy, data, size);
	name = guest_name(copy, size);
	free(copy);
	return name;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *name = name_of(data, size), *again = guest_name((const char *)data, size);

	check(!name == !again);
	check(!name || (*name && streq(name, again) && strlen(name) <= size));
	free(name);
	free(again);
	return 0;
}
