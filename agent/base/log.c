/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdarg.h>

#include "base/log.h"

static enum log_level level_max = LOG_LEVEL_INFO;

void log_set_level(enum log_level level)
{
	level_max = level;
}

void log_msg(enum log_level level, const char *fmt, ...)
{
	/* sd-daemon(3): a reader that is the journal takes the priority from this prefix */
	static const char *const journal[] = {"<3>", "<4>", "<6>", "<7>"};
	static const char *const plain[] = {"error: ", "warning: ", "", "debug: "};
	char line[2048];
	va_list ap;

	if (level > level_max)
		return;
	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	fprintf(stderr, "%s%s\n", getenv("JOURNAL_STREAM") ? journal[level] : plain[level], line);
}
