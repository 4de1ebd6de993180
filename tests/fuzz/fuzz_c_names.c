// SPDX-License-Identifier: GPL-2.0-or-later
/* Any text as a header in which functions are declared: names lie within it, and are words. */
#include <ctype.h>
#include <stdlib.h>

#include "probes/types/c_names.h"

#define MAX 4

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* of exactly its size, so that the sanitizer sees what lies outside */
	char *text = malloc(size ? size : 1);
	struct c_name v[MAX + 1];

	if (!text)
		return -1;
	if (size)
		memcpy(text, data, size);
	for (uint32_t line = 0; line < 4; line++) {
		int n;

		memset(v, 0, sizeof(v));
		n = c_parameter_names(text, size, line, "f", v, MAX);
		if (n < 0 ? n != -ENOENT : v[MAX].s != NULL)
			abort();
		for (int i = 0; i < n && i < MAX; i++) {
			if (!v[i].len)
				continue;
			if (v[i].s < text || v[i].s + v[i].len > text + size ||
			    !(isalnum((unsigned char)*v[i].s) || *v[i].s == '_'))
				abort();
		}
	}
	free(text);
	return 0;
}
