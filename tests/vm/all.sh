# SPDX-License-Identifier: GPL-2.0-or-later
# Runs the test scripts that are named, or else every one of this directory, one after the other, and
# says how long each took.
status=0
[ $# -gt 0 ] || set -- /tests/test_*.sh
for t; do
	begin=$(date +%s)
	sh "/tests/${t##*/}" || status=1
	echo "# ${t##*/}: $(($(date +%s) - begin)) s"
done
exit $status
