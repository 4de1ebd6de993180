#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# The tour of ax-trace-ready(8), run as it is written there, and what it prints.
. "$(dirname "$0")/lib.sh"
need gcc openssl curl

tour_run ax-trace-ready.8 20
out=$(<"$T/out")
like "system calls" "$out" $'\nSYSCALL +CALLS +FAILED +TIME +MEAN LONGEST ERRORS\n[a-z_0-9]+ +[0-9]+ '
like "signals" "$out" ' SIGUSR1 +SI_USER +sent +[0-9]+ sh +- +-> +[0-9]+ sh '
like "plain text" "$out" $'\n    GET /hello.txt HTTP/1.1\n'
like "and the answer" "$out" $'\n    hello\n'
like "a leak" "$out" $'\n550 bytes left in 10 pieces .*, of 4.9K in 100: +[0-9]+ leak .*\n +remember\\+0x[0-9a-f]+ \\(leak\\)\n +main\\+'
like "a lock" "$out" $'[0-9.]+ms in [0-9]+ waits .* wait\n .*(lll_lock_wait|0x[0-9a-f]+ .libc).*\n .*pthread_mutex_lock.*\n +work\\+0x'
unlike "nothing is dropped" "$out" '[1-9][0-9]* dropped'
done_testing
