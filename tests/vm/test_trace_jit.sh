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
kept "given back before the end" 1 unmapped 3
kept "at the end" 1 rwx 3
kept "by another mapping" 1 dual 3

done_testing
