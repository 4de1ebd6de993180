# SPDX-License-Identifier: GPL-2.0-or-later
# TAP and waiting for the scripts inside the VM (busybox ash).
n=0
failures=0
feature=

# needs FEATURE...: the next test needs them; where `ax doctor` says that one is off, it is skipped.
needs()
{
	local f

	[ -s /tmp/doctor ] || ax doctor -o wide >/tmp/doctor 2>&1
	for f in "$@"; do
		if ! grep -q "^$f  *on" /tmp/doctor; then
			feature=$f
			return
		fi
	done
}

# Counts a test, and says whether it is to be run.
begin()
{
	n=$((n + 1))
	[ -n "$feature" ] || return 0
	echo "ok $n - $1 # SKIP missing kernel feature $feature"
	feature=
	return 1
}

# result STATUS NAME WHY: what the command printed, in /tmp/tap.out, is shown for a failure.
result()
{
	if [ "$1" = 0 ]; then
		echo "ok $n - $2"
		return
	fi
	echo "not ok $n - $2"
	echo "# $3"
	head -n 40 /tmp/tap.out | sed 's/^/# /'
	failures=$((failures + 1))
}

# tap NAME COMMAND...: ok if the command succeeds. It runs in this shell, not in a subshell.
tap()
{
	local name=$1 status

	shift
	begin "$name" || return 0
	"$@" >/tmp/tap.out 2>&1 </dev/null
	status=$?
	result "$status" "$name" "exit status $status of: $*"
	return "$status"
}

# like NAME REGEX COMMAND...: ok if what the command prints matches; its exit status does not count.
like()
{
	local name=$1 regex=$2

	shift 2
	begin "$name" || return 0
	"$@" >/tmp/tap.out 2>&1 </dev/null
	grep -qE "$regex" /tmp/tap.out
	result $? "$name" "what '$*' prints does not match: $regex"
}

# eventually SECONDS COMMAND...: tries every 0.1 s until it succeeds.
eventually()
{
	local tries=$(($1 * 10))

	shift
	until "$@" >/dev/null 2>&1; do
		tries=$((tries - 1))
		[ "$tries" -gt 0 ] || return 1
		usleep 100000
	done
}

done_testing()
{
	echo "1..$n"
	exit $((failures > 0))
}
