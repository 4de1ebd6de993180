// SPDX-License-Identifier: GPL-2.0-or-later
#include <ctype.h>

#include "probes/kernel/kallsyms.h"

/* "ffffffff81000000 T _text", "ffffffffc0201000 t f\t[module]": strtoull and sscanf would take more
 * time than the kernel. */
static bool parse(char *line, struct kallsym *s)
{
	char *p = line, *tab;

	s->address = 0;
	for (; isxdigit((unsigned char)*p); p++)
		s->address =
			s->address << 4 | (uint64_t)(*p <= '9' ? *p - '0' : (*p | 32) - 'a' + 10);
	if (p == line || p[0] != ' ' || !p[1] || p[2] != ' ')
		return false;
	s->type = p[1];
	s->name = p += 3;
	s->module = "";
	tab = strchr(p, '\t');
	if (tab) {
		*tab++ = 0;
		if (*tab == '[')
			s->module = tab + 1;
		tab[strcspn(tab, "]")] = 0;
	}
	return *s->name;
}

int kallsyms_read(const char *path, int (*f)(void *arg, const struct kallsym *s), void *arg)
{
	autofile FILE *file = fopen(path, "re");
	autofree char *line = NULL;
	size_t max = 0;
	int r = 0;

	if (!file)
		return -errno;
	while (!r) {
		ssize_t n = getline(&line, &max, file);
		struct kallsym s;

		if (n < 0)
			break;
		if (n && line[n - 1] == '\n')
			line[n - 1] = 0;
		if (parse(line, &s))
			r = f(arg, &s);
	}
	return r ? r : ferror(file) ? -EIO : 0;
}
