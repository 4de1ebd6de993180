#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# ax trace hypercall: its command line, and where there is no guest. Guests: tests/vm/test_hypercall.sh.
. "$(dirname "$0")/lib.sh"
need jq

trace() {
	timeout 60 "$AX" --instance "$INST" trace hypercall "$@" 2>&1
}
refused() { # NAME REGEX OPTION...
	local name=$1 regex=$2 out
	shift 2
	out=$(trace "$@")
	is "$name: exit status" "$?" 2
	like "$name" "$out" "$regex"
}

refused "a call that is none" "'ten' is no hypercall: expected a number or a name" --nr ten
refused "one that no register holds" "is no hypercall" --nr 18446744073709551616
refused "one and all" "--nr is about hypercalls, and --all about every exit" --nr 42 --all
refused "a number of lines of a table" "-n is a number of lines of --live" -n 4
refused "words" "unexpected word 'x'" x
refused "two processes" "-p and -c name two processes" -p $$ -c true

# On a machine of a kind that KVM does not run on, or without its module, the sentence says what to do.
mkdir "$T/tracefs"
mount -t tracefs tracefs "$T/tracefs"
[ -e "$T/tracefs/events/kvm/kvm_hypercall" ]
kvm=$?
umount "$T/tracefs"
if [ "$kvm" != 0 ]; then
	like "without KVM" "$(trace -d 100ms)" "has no tracepoints of KVM: load its module"
	done_testing
fi

# A process that runs no virtual machine, so that those of this machine do not count.
is "no guest, no events" "$(trace -c true)" "nothing happened
0 events, 0 received, 0 dropped"
trace --all -o json -O "$T/json" -c 'sh -c "exit 3"' >/dev/null
is "the command's status" "$?" 3
is "JSON: the table is empty" "$(jq -c 'select(.table) | .table' "$T/json")" "[]"
is "JSON: the accounts" "$(jq -c 'select(has("emitted")) | [.emitted, .received, .dropped, .status]' "$T/json")" "[0,0,0,3]"
like "each one" "$(trace --live --nr SEND_IPI -c true)" '^TIME +PID VM +VCPU EXIT +TOOK CALL'
like "while the time lasts" "$(trace -p $$ -d 100ms)" '0 events, 0 received, 0 dropped'

done_testing
