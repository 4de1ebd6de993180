// SPDX-License-Identifier: GPL-2.0-or-later
/* Any line on the control socket: it is refused with a sentence, or it is an object; one that is an
 * app's specification gives JSON that gives the same specification again. */
#include "control/control.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool good)
{
	if (!good)
		abort();
}

static void check_spec(const struct app_spec *s)
{
	json_t *j = control_spec_to_json(s), *parsed;
	struct app_spec again;
	struct error e;
	char *line;

	check(j != NULL);
	line = json_dumps(j, JSON_COMPACT);
	check(line && !strchr(line, '\n'));
	check(control_parse_line(line, strlen(line), &parsed, &e) == 0);
	check(json_equal(j, parsed));
	check(control_spec_from_json(parsed, &again, &e) == 0);
	check(app_spec_eq(s, &again));
	app_spec_free(&again);
	json_decref(parsed);
	free(line);
	json_decref(j);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct error e = {0};
	struct app_spec s;
	json_t *j;
	int r;

	r = control_parse_line((const char *)data, size, &j, &e);
	if (r) {
		check(r == -EBADMSG && e.code == r && *e.text);
		return 0;
	}
	check(json_is_object(j));
	e = (struct error){0};
	r = control_spec_from_json(j, &s, &e);
	if (r) {
		check(e.code == r && *e.text);
	} else {
		check(addr_is_zero(&s.ip4) || addr_is_v4(&s.ip4));
		check(addr_is_zero(&s.ip6) || !addr_is_v4(&s.ip6));
		check_spec(&s);
		app_spec_free(&s);
	}
	json_decref(j);
	return 0;
}
