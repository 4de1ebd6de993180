// SPDX-License-Identifier: GPL-2.0-or-later
/* Any bytes as what an agent left for the next one: refused, or what is written of it is read again
 * as the same. */
#include "cluster/remembered.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool good)
{
	if (!good)
		abort();
}

static void check_head(const char *line, size_t len)
{
	struct remembered_head a, b;
	autofree char *text = NULL;

	if (remembered_head_read(line, len, &a))
		return;
	text = remembered_head_text(&a);
	check(text && remembered_head_read(text, strlen(text), &b) == 0);
	check(streq(a.cluster, b.cluster) && streq(a.id, b.id) && a.revision == b.revision);
}

static void check_line(char *line, size_t len)
{
	struct remembered a, b;
	autofree char *text = NULL;
	size_t size = 0;
	FILE *f;

	if (remembered_read(line, len, &a))
		return;
	check(a.at >= 0 && a.away >= 0 && a.lease >= 0 && strlen(a.key) < RECORD_KEY_MAX);
	f = open_memstream(&text, &size);
	check(f);
	remembered_write(f, &a);
	fclose(f);
	check(size && text[size - 1] == '\n');
	text[--size] = 0;
	check(remembered_read(text, size, &b) == 0);
	check(a.at == b.at && a.away == b.away && a.lease == b.lease);
	check(streq(a.key, b.key) && streq(a.value, b.value));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	autofree char *line = malloc(size + 1);

	check(line);
	memcpy(line, data, size);
	line[size] = 0;
	check_head(line, size);
	check_line(line, size);
	return 0;
}
