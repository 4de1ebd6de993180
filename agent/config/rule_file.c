// SPDX-License-Identifier: GPL-2.0-or-later
/* A rule file: one interface's list and all that belongs to it. */
#include "config/rule_file.h"
#include "config/rules.h"

static const struct key file_keys[] = {
	{"mode", list_read_mode, 0},	   {"priority", list_read_priority, 0},
	{"default", list_read_default, 0}, {"classes", list_read_classes, 0},
	{"sets", list_read_sets, 0},	   {"balancers", list_read_balancers, 0},
	{"rules", list_read_rules, 0},	   {"direction", list_read_direction, 0},
	{"track", list_read_track, 0},
};

int rule_file_parse(const char *text, size_t len, enum xdp_direction d, struct rule_list *l,
		    struct config_errors *errs)
{
	struct list_reading reading = {0};
	struct reader r = {.errs = errs};
	struct node root;
	int code;

	*errs = (struct config_errors){0};
	rule_list_init(&reading.list);
	reading.list.direction = d;
	code = node_parse(text, len, &root, errs);
	if (code == 0) {
		read_mapping(&r, &root, file_keys, ARRAY_SIZE(file_keys), &reading);
		if (errs->n == 0 && !r.out_of_memory)
			list_report_faults(&r, &reading, &root);
		code = r.out_of_memory ? -ENOMEM : errs->n ? -EINVAL : 0;
	}
	node_free(&root);
	if (code < 0)
		rule_list_free(&reading.list);
	else
		*l = reading.list;
	return code;
}
