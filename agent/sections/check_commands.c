/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <fcntl.h>

#include "sections/check_commands.h"
#include "base/address.h"
#include "config/config.h"
#include "registry/app_table.h"
#include "registry/state.h"
#include "sections/command.h"
#include "services/checks.h"

#define RUNS_MAX 32 /* at the same time */

int check_command_start(void *arg, const struct health_target *t, const struct service_check *c,
			const char *name, int *output)
{
	struct agent *a = arg;
	const struct app *app = t->app ? app_by_id(a, t->app) : NULL;
	autoclose int read_end = -1, write_end = -1;
	char address[ADDR_STRLEN], port[8];
	const struct command_word words[] = {{"AX_CHECK_SERVICE", name},
					     {"AX_CHECK_ADDRESS", address},
					     {"AX_CHECK_PORT", port},
					     {"AX_CHECK_APP", app ? app->spec.name : ""}};
	struct command_run run = {.kind = "check of",
				  .name = name,
				  .user = c->user,
				  .command = &c->command,
				  .words = words,
				  .n_words = ARRAY_SIZE(words),
				  .ends_with_us = true};
	int ends[2], r = checks_netns(a, t, &run.netns);

	if (r)
		return r;
	if (health_running(a->health) >= RUNS_MAX)
		return -EAGAIN;
	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
		return -errno;
	read_end = ends[0];
	write_end = ends[1];
	fcntl(write_end, F_SETFL, 0); /* the command's may block */
	addr_format(&t->addr, address);
	snprintf(port, sizeof(port), "%u", t->port);
	run.output = write_end;
	r = command_start(a, &run);
	if (r > 0)
		*output = take_fd(&read_end);
	return r;
}
