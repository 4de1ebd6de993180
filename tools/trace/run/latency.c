/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ax trace latency: the time of a function, or between two probes. */
#include "tools/trace/run/run.h"

static char *join(int argc, char **argv)
{
	size_t size = 1, n = 0;
	char *text;

	for (int i = 0; i < argc; i++)
		size += strlen(argv[i]) + 1;
	text = malloc(size);
	if (!text)
		return NULL;
	for (int i = 0; i < argc; i++)
		n += (size_t)sprintf(text + n, "%s%s", i ? " " : "", argv[i]);
	text[n] = '\0';
	return text;
}

bool trace_parse_latency(struct trace *t, int argc, char **argv, int *status)
{
	autofree char *text = join(argc, argv);
	struct error e = {0};
	struct latency l;

	if (!text) {
		*status = cmd_usage(t->c, "out of memory");
		return false;
	}
	if (latency_parse(text, &l, &e) < 0) {
		*status = cmd_usage(t->c, "%s", e.text);
		return false;
	}
	t->latency = l;
	t->n_parts = latency_parts(&t->latency, t->parts);
	return true;
}
