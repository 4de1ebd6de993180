# SPDX-License-Identifier: GPL-2.0-or-later
# kernel: 6.1
# What apps may use, where cgroup2 has the controllers, and what they see of files.
. "${0%/*}/lib.sh"

ax agent >/tmp/agent.log 2>&1 </dev/null &
agent=$!
tap "the agent starts" eventually 20 ax status

own() # FILE OPTIONS...: what the app's cgroup says
{
	local file=$1

	shift
	ax run "$@" -- sh -c "cat /sys/fs/cgroup\$(sed -n 's/^0:://p' /proc/self/cgroup)/$file"
}

# limit CONTROLLER OPTION VALUE FILE EXPECTED
limit()
{
	grep -qw "$1" /sys/fs/cgroup/cgroup.controllers || feature="controller $1"
	like "$2 $3" "^$5\$" own "$4" "$2" "$3"
}

for net in private host; do
	limit memory --memory 64m memory.max 67108864
	limit cpu --cpus 0.5 cpu.max "50000 100000"
	limit pids --pids 20 pids.max 20
	grep -qw pids /sys/fs/cgroup/cgroup.controllers || feature="controller pids"
	like "no more processes than --pids ($net)" "fork" ax run --net $net --pids 4 -- sh -c \
		'for i in 1 2 3 4 5 6; do sleep 3 & done; wait'
	mkdir -p /tmp/data /mnt
	echo there >/tmp/data/file
	like "a volume ($net)" there ax run --net $net -v /tmp/data:/mnt -- cat /mnt/file
	like "a volume that is read-only ($net)" "Read-only" ax run --net $net -v /tmp/data:/mnt:ro -- touch /mnt/x
	like "files that are read-only ($net)" "Read-only" ax run --net $net --read-only -- touch /etc/x
	tap "and a /tmp that is not ($net)" ax run --net $net --read-only -- touch /tmp/x
	tap "which is the app's own ($net)" test ! -e /tmp/x
done
ax run --detach --name stays -- sleep 1000 >/tmp/out 2>&1
like "exec ($net)" "0::/ax/stays-" ax exec stays cat /proc/self/cgroup
ax stop stays
tap "nothing is left" eventually 10 sh -c '! ls -d /sys/fs/cgroup/ax/*-[0-9]*'
kill $agent
wait $agent
ax agent --flush >/dev/null 2>&1
done_testing
