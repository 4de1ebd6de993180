/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What of a long test `make check-quick` does. */
#ifndef AX_TESTS_LIB_QUICK_H
#define AX_TESTS_LIB_QUICK_H

#include <stdbool.h>
#include <stdlib.h>

/* Is this `make check-quick`? Its loops are shorter, and the longest tests are left out. */
static inline bool quick(void)
{
	const char *v = getenv("AX_TEST_QUICK");

	return v && *v;
}

/* How often, or every how manyth one: in `make check-quick`, and in all else. */
static inline unsigned quick_or(unsigned in_quick, unsigned otherwise)
{
	return quick() ? in_quick : otherwise;
}

#endif
