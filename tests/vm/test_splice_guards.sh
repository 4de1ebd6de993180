# SPDX-License-Identifier: GPL-2.0-or-later
# What of splicing's messages goes by TCP, each with its reason, on another kernel's sockets: the very
# program of tests/prog. kTLS is here.
. "${0%/*}/lib.sh"
ax doctor >/tmp/doctor 2>&1
needs splice_join
if [ -n "$feature" ]; then
	tap "what only TCP gets right goes by TCP" true
	done_testing
fi
CMOCKA_MESSAGE_OUTPUT=TAP exec test_splice_guards
