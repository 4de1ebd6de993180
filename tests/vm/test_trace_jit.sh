# SPDX-License-Identifier: GPL-2.0-or-later
# Code that programs make while they run, on this kernel.
. "${0%/*}/lib.sh"

# kept NAME N WHAT...: `jit WHAT...` makes N pieces of code, which are all there.
kept()
{
	local name=$1 want=$2

	shift 2
	rm -rf /tmp/made
	ax trace jit -o /tmp/made -c "jit $*" >/tmp/jit.out 2>&1 </dev/null
	like "$name" "^$want\$" grep -c '"event":"code"' /tmp/made/index.jsonl
	like "$name: nothing is lost" ', 0 dropped$' cat /tmp/jit.out
}

kept "never writable and executable" 20 wx 20
kept "that may be executed only" 5 hidden 5
kept "by pkey_mprotect()" 5 pkey 5
kept "of threads" 40 threads 10
kept "of a child, too" 2 fork 7
# Of pages that are writable and executable at once versions are those that a look finds: on a machine
# this slow one may find what is half written, too.
kept "given back before the end" "[12]" unmapped 3
kept "at the end" "[12]" rwx 3
kept "by another mapping" "[12]" dual 3

done_testing
