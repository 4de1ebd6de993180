// SPDX-License-Identifier: GPL-2.0-or-later
/* One field for the sink. */
#include "probes/perfdata/priv.h"

static void put(const struct perfdata_sink *to, const char *name, enum perfdata_kind kind,
		uint64_t v)
{
	struct perfdata_field f = {.name = name, .kind = kind, .number = v};

	to->put(to->arg, &f);
}

void put_number(const struct perfdata_sink *to, const char *name, uint64_t v)
{
	put(to, name, PERFDATA_NUMBER, v);
}

void put_signed(const struct perfdata_sink *to, const char *name, int64_t v)
{
	put(to, name, PERFDATA_SIGNED, (uint64_t)v);
}

void put_hex(const struct perfdata_sink *to, const char *name, uint64_t v)
{
	put(to, name, PERFDATA_HEX, v);
}

void put_time(const struct perfdata_sink *to, const char *name, uint64_t v)
{
	put(to, name, PERFDATA_TIME, v);
}

void put_begin(const struct perfdata_sink *to, const char *name, enum perfdata_kind kind)
{
	put(to, name, kind, 0);
}

void put_end(const struct perfdata_sink *to)
{
	put(to, NULL, PERFDATA_END, 0);
}

void put_text(const struct perfdata_sink *to, const char *name, const void *s, size_t len)
{
	struct perfdata_field f = {.name = name, .kind = PERFDATA_TEXT, .data = s};

	f.len = s ? strnlen(s, len) : 0;
	to->put(to->arg, &f);
}

void put_string(const struct perfdata_sink *to, const char *name, const char *s)
{
	put_text(to, name, s, strlen(s));
}

void put_bytes(const struct perfdata_sink *to, const char *name, const void *s, size_t len)
{
	struct perfdata_field f = {
		.name = name, .kind = PERFDATA_BYTES, .data = s, .len = s ? len : 0};

	to->put(to->arg, &f);
}

void put_bits(const struct perfdata_sink *to, const char *name, uint64_t v,
	      const char *const *names, size_t n)
{
	uint64_t known = n < 64 ? (1ull << n) - 1 : ~0ull;

	put_begin(to, name, PERFDATA_LIST);
	for (size_t i = 0; i < n && i < 64; i++)
		if (v >> i & 1)
			put_string(to, NULL, names[i]);
	if (v & ~known)
		put_hex(to, NULL, v & ~known);
	put_end(to);
}
