/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The signals that end a command which runs until Ctrl-C. */
#ifndef AX_TOOLS_LIB_RUN_SIGNALS_H
#define AX_TOOLS_LIB_RUN_SIGNALS_H

#include <signal.h>
#include <stdbool.h>

/* From now on SIGINT, SIGTERM and SIGHUP (unless it was ignored) end the command's loop and not the
 * process, but a second one ends that too. */
void run_signals_catch(void);
/* The same, but SIGHUP is left as it is, and any number of them only ends the loop: what is written
 * stays whole. */
void run_signals_catch_all(void);
/* Blocks the caught ones but while waiting, for which *open is the mask (see ppoll()). */
void run_signals_block(sigset_t *open);
/* Whether one has come, also one that is blocked: a flood of work may leave no time to wait. */
bool run_signals_came(void);
/* Whether it was Ctrl-C or the end of the terminal, which all programs there are told. */
bool run_signals_typed(void);

#endif
