// SPDX-License-Identifier: GPL-2.0-or-later
/* Any text as what make -p prints: a target needs itself, and nothing that has no name. */
#include "probes/build/makedb.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct makedb *db = NULL;
	struct error e = {0};

	if (makedb_read((const char *)data, size, &db, &e) < 0) {
		if (!*e.text)
			abort();
		return 0;
	}
	if (makedb_target(db, "/a") && !makedb_needs(db, "/a"))
		abort();
	if (makedb_needs(db, ""))
		abort();
	makedb_free(db);
	return 0;
}
