#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# a processor each
# timeout: 300
# What programs see of TCP connections, of those that are members of a sockhash, and of those that it
# redirects, is on this kernel what was kept of it (tests/splice). The suite makes itself a network
# namespace and a cgroup.
set -u
cd "$(dirname "$0")/../.." || exit 1

if [ "$(id -u)" != 0 ]; then
	echo "1..0 # SKIP needs root"
	exit 0
fi
suite=${OUT:-.output/gcc}/tests/splice/suite
release=$(uname -r | cut -d. -f1,2)
kept=tests/splice/expected/$release.tsv
if [ ! -e "$kept" ]; then
	echo "1..0 # SKIP missing kernel feature: no table is kept of Linux $release; to keep one: $suite >$kept"
	exit 0
fi
exec "$suite" --compare "$kept" "${kept/expected/earlier}"
