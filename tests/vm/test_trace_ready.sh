# SPDX-License-Identifier: GPL-2.0-or-later
# The ready commands that count or look into libraries, on this kernel.
. "${0%/*}/lib.sh"

# all NAME REGEX COMMAND...: what comes out matches, and all events were received.
all()
{
	local name=$1 regex=$2

	shift 2
	"$@" >/tmp/ready.out 2>&1 </dev/null
	like "$name" "$regex" cat /tmp/ready.out
	like "$name: all are received" '^"?.*"dropped":0|^[0-9,]+ events?, .* 0 dropped' cat /tmp/ready.out
}

mkdir -p /tmp/ready
all "system calls" '"syscall":"getppid","count":300,"failed":0' \
	ax trace syscalls -o json -c "tallied calls 300"
like "and their errors" '"syscall":"read".*"errors":\{"EBADF":300\}' cat /tmp/ready.out
like "and names of processes" '"comm":"tallied","syscall":"getppid","count":20' \
	ax trace syscalls --by process -o json -c "sh -c 'tallied calls 20; :'"
all "files" '"file":"/tmp/ready/a","kind":"file",.*"opens":2,"reads":3,"read_bytes":4700,"writes":10,"written_bytes":10000' \
	ax trace files -o json -c "tallied files /tmp/ready"
all "signals" '"comm":"tallied".*"signal":"SIGUSR2","number":12,"code":"SI_USER","result":"ignored"' \
	ax trace signals --failed -o json -c "tallied signals"
like "and refused ones" '"signal":"SIGTERM".*"error":"ESRCH"' cat /tmp/ready.out
all "memory that is left" '"left_bytes":50000,"left":50,"allocated_bytes":50000,"allocated":50,' \
	ax trace malloc --library /bin/tallied -o json -c "tallied leak 50"
like "by whom" '"left":50,.*"stack":\["leaks_here\+0x[0-9a-f]+ \(tallied\)","main\+' cat /tmp/ready.out
all "threads that allocate" '"dropped":0' ax trace malloc --library /bin/tallied -o json -c "tallied churn 2 300"
all "plain text" '"connection":1,"library":"openssl","direction":"sent",.*"data":"a question\\u000a"' \
	ax trace tls --library /bin/plain -o json -c plain
like "of other functions" '"library":"openssl","direction":"received".*"data":"an answer"' cat /tmp/ready.out
like "of another library" '"connection":2,"library":"gnutls","direction":"received".*"data":"another"' cat /tmp/ready.out
like "and the end" '"event":"tls-end"' cat /tmp/ready.out
# musl says nothing of how its functions are left, so only the first place is known
all "locks" '"comm":"tallied","lock":"0x[0-9a-f]+","waits":[1-9].*"stack":\[".* \(tallied\)"' \
	ax trace locks -o json -c "tallied locks 3 700"

done_testing
