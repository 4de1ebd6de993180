# SPDX-License-Identifier: GPL-2.0-or-later
# kernel: 6.12
# ax trace hypercall on this kernel, with a guest of our own: the machine emulates SVM.
. "${0%/*}/lib.sh"

# all_came N: N events came and all were received.
all_came()
{
	like "$1: all are received" "^$2 events, $2 received, 0 dropped$" cat /tmp/hyper.out
}

tap "the guest runs" guest 2 3 42

# --- calls ---

ax trace hypercall --nr 42 -c "guest -name guest=shop,debug-threads=on 2 100 42 43 10" \
	>/tmp/hyper.out 2>&1 </dev/null
like "calls of one number, on the first vCPU" \
	'^shop +[0-9]+ +- +0 +42 +VMMCALL +100 +[0-9.]+[mu]s ' cat /tmp/hyper.out
like "on the second one" '^shop +[0-9]+ +- +1 +42 +VMMCALL +100 ' cat /tmp/hyper.out
like "a histogram of each" '^shop \([0-9]+\) vCPU 1$' cat /tmp/hyper.out
like "with what it says" '^100 times: mean [0-9.]+[mu]s, 50% up to ' cat /tmp/hyper.out
all_came "calls of one number" 200

ax trace hypercall -c "guest 1 50 10 0xffffffff" >/tmp/hyper.out 2>&1 </dev/null
like "calls by name" '^guest +[0-9]+ +- +0 +10 SEND_IPI +VMMCALL +50 ' cat /tmp/hyper.out
like "and by number" '^guest +[0-9]+ +- +0 +4294967295 +VMMCALL +50 ' cat /tmp/hyper.out
all_came "calls" 100

many_numbers()
{
	local i=1000 numbers=

	while [ "$i" -lt 1100 ]; do
		numbers="$numbers $i"
		i=$((i + 1))
	done
	ax trace hypercall -o json -O /tmp/hyper.json -c "guest 1 2 $numbers" || return 1
	grep -q '"vcpu":0,"others":true,"isa":"svm","reason":129,"exit":"VMMCALL"},"count":72,' \
		/tmp/hyper.json && grep -q '"emitted":200,"received":200,"dropped":0' /tmp/hyper.json
}
tap "a guest that makes up numbers" many_numbers

# --- each one, and every exit ---

like "each call with its arguments" ' shop +0 +VMMCALL +[0-9.]+[mu]s +42 \(0x7, 0x8, 0x9, 0xa\)$' \
	ax trace hypercall --live --nr 42 -c "guest -name shop 1 3 42 43"
like "as JSON" \
	'"event":"hypercall",.*"vm":"shop","vcpu":0,"nr":10,"call":"SEND_IPI","args":\[7,8,9,10\],"isa":"svm","reason":129,"exit":"VMMCALL","duration_ns":[0-9]+}' \
	ax trace hypercall --live --nr send_ipi -o json -c "guest -name shop 1 3 42 10"

ax trace hypercall --all -c "guest -name shop 1 100 42" >/tmp/hyper.out 2>&1 </dev/null
like "every exit: calls" '^shop +[0-9]+ +- +0 +VMMCALL +100 ' cat /tmp/hyper.out
like "instructions" '^shop +[0-9]+ +- +0 +CPUID +100 ' cat /tmp/hyper.out
like "nothing is dropped" ' 0 dropped$' cat /tmp/hyper.out

# --- whose ---

guest 1 2000000 42 >/dev/null &
other=$!
like "only one process's" '^10 events, 10 received' \
	ax trace hypercall --nr 42 -c "guest 1 10 42"
like "one that is there already" '^guest +'$other' +- +0 +42 +VMMCALL ' \
	ax trace hypercall -p "$other" -d 1s
# as the manual page has them
ax trace hypercall --nr 42 -d 2s >/tmp/hyper.out 2>&1
like "of all machines" '^guest +[0-9]+ +- +0 +42 +VMMCALL +[0-9]+ +[0-9.]+m?s +[0-9.]+[mu]s ' cat /tmp/hyper.out
ax trace hypercall --all -d 2s >/tmp/hyper.out 2>&1
like "all that they are left for" '^guest +[0-9]+ +- +0 +CPUID +[0-9]+ ' cat /tmp/hyper.out
like "as CTF" '[0-9]+ events, [0-9]+ received, 0 dropped' ax trace hypercall --live -o ctf -O /tmp/ctf -c "guest -name shop 1 3 42 10"
like "which says what it has" 'name = "hypercall"' cat /tmp/ctf/metadata
like "the next few calls" '^[0-9]+ events, [0-9]+ received, 0 dropped, 5 shown$' ax trace hypercall --live -n 5
kill "$other"
wait "$other" 2>/dev/null

ax agent --detach >/dev/null 2>&1
like "the app that a machine runs in" '^guest +[0-9]+ +box +0 +42 +VMMCALL +10 ' \
	ax trace hypercall -c "ax run --name box --net host -- guest 1 10 42"
ax agent --stop >/dev/null 2>&1
ax agent --flush >/dev/null 2>&1

# --- without KVM ---

tap "KVM's modules can be removed again" rmmod kvm_amd kvm
like "then it says what to do" 'no tracepoints of KVM: load its module \(modprobe' \
	ax trace hypercall -c "touch /tmp/hyper.ran"
tap "and runs no command" test ! -e /tmp/hyper.ran
for m in /modules/*-kvm.ko /modules/*-kvm-amd.ko; do
	insmod "$m"
done

done_testing
