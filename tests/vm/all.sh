# SPDX-License-Identifier: GPL-2.0-or-later
# Runs the test scripts that are named, or else every one of this directory, one after the other.
status=0
[ $# -gt 0 ] || set -- /tests/test_*.sh
for t; do
	sh "/tests/${t##*/}" || status=1
done
exit $status
