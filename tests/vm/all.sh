# SPDX-License-Identifier: GPL-2.0-or-later
# Runs every test script of this directory, one after the other.
status=0
for t in /tests/test_*.sh; do
	sh "$t" || status=1
done
exit $status
