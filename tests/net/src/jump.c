/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Preloaded: the clock jumps a year ahead when the file $JUMP is made. */
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

time_t time(time_t *__timer)
{
	const char *jump = getenv("JUMP");
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	if (jump && access(jump, F_OK) == 0)
		now.tv_sec += 365 * 24 * 3600;
	if (__timer)
		*__timer = now.tv_sec;
	return now.tv_sec;
}
