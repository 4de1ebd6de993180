// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/lib/rule_lists.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "config/rule_file.h"

struct rule_list rule_list_of(const char *text)
{
	struct config_errors errs;
	struct rule_list l;

	if (rule_file_parse(text, strlen(text), DIRECTION_INGRESS, &l, &errs) != 0) {
		config_errors_print(&errs, "text", stderr);
		config_errors_free(&errs);
		fail_msg("refused");
	}
	config_errors_free(&errs);
	return l;
}
