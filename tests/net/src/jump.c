/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Preloaded: the clock jumps a year ahead when the file $JUMP is made, whichever way it is read. */
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t __clock_id, struct timespec *__tp)
{
	const char *jump = getenv("JUMP");
	int r = (int)syscall(SYS_clock_gettime, __clock_id, __tp);

	if (!r && __clock_id == CLOCK_REALTIME && jump && access(jump, F_OK) == 0)
		__tp->tv_sec += 365 * 24 * 3600;
	return r;
}

time_t time(time_t *__timer)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	if (__timer)
		*__timer = now.tv_sec;
	return now.tv_sec;
}
