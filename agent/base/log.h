/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The agent's and the commands' only way to write diagnostics (stderr; "<3>" levels for journald
 * when it is the reader). Libraries return errors and do not log. */
#ifndef AX_BASE_LOG_H
#define AX_BASE_LOG_H

#include "base/util.h"

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARN, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

void log_set_level(enum log_level level);
void log_msg(enum log_level level, const char *fmt, ...) PRINTF(2, 3);

#define log_error(...) log_msg(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warn(...)  log_msg(LOG_LEVEL_WARN, __VA_ARGS__)
#define log_info(...)  log_msg(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) log_msg(LOG_LEVEL_DEBUG, __VA_ARGS__)

#endif
