# SPDX-License-Identifier: GPL-2.0-or-later
# The ready commands on this kernel: ax trace exec, open, tcp, profile and offcpu.
. "${0%/*}/lib.sh"

# exactly NAME REGEX N COMMAND...: what comes out matches, and N events came and all were received.
exactly()
{
	local name=$1 regex=$2 events=$3

	shift 3
	"$@" >/tmp/watch.out 2>&1 </dev/null
	like "$name" "$regex" cat /tmp/watch.out
	like "$name: all are received" "^$events events?, $events received, 0 dropped$" \
		cat /tmp/watch.out
}

cat >/tmp/watched.sh <<'END'
/bin/busybox true 'a b' "it's"
/none/there x
echo >/tmp/watched.new
cat /none/there
END

# --- exec ---

exactly "executed commands with their arguments" "/bin/busybox true 'a b' 'it'\\\\''s'$" 3 \
	ax trace exec -c "/bin/busybox sh -c '/bin/busybox true \"a b\" \"it'\\''s\"; :'"
exactly "where, and with which environment" \
	'cd /tmp && env -i A=1 /bin/busybox true$' 2 \
	ax trace exec --env --cwd -c "cd /tmp; exec env -i A=1 /bin/busybox true"
exactly "commands that fail" ' ENOENT +/none/there x$' 3 \
	ax trace exec --failed -c "/bin/busybox sh -c '/none/there x; :'"
exactly "how they end" ' exit 3 +after [0-9.]+[a-z]+$' 5 \
	ax trace exec --exit -c "/bin/busybox sh -c '/bin/busybox sh -c \"exit 3\"; exit 3'"

many()
{
	local i=0 args=

	while [ "$i" -lt 3000 ]; do
		args="$args argument-number-$i"
		i=$((i + 1))
	done
	echo "/bin/busybox true$args" >/tmp/many.sh
	ax trace exec -o json -O /tmp/many.json -c "/bin/busybox sh /tmp/many.sh" || return 1
	grep -q '"argument-number-0".*"argument-number-2999"\]' /tmp/many.json &&
		! grep -q '"complete":false' /tmp/many.json
}
tap "three thousand arguments" many

# --- open ---

ax trace open /none/ -c "/bin/busybox sh /tmp/watched.sh" >/tmp/watch.out 2>&1
like "files that are opened, by a prefix" \
	' cat .* ENOENT +O_RDONLY.* +/none/there$' cat /tmp/watch.out
like "and their times" '[0-9.]+[num]s +ENOENT' cat /tmp/watch.out
ax trace open '/tmp/*.new' --quick -c "/bin/busybox sh /tmp/watched.sh" >/tmp/watch.out 2>&1
like "flags and mode, by a glob" \
	'O_WRONLY\|O_CREAT\|O_TRUNC(\|O_LARGEFILE)? 0666 +/tmp/watched.new$' cat /tmp/watch.out
like "all that begin alike came" '^[0-9]+ events?, .* 0 dropped, 1 shown$' cat /tmp/watch.out

# --- tcp ---

ip link set lo up
mkdir -p /tmp/watched.d
dd if=/dev/zero of=/tmp/watched.d/file bs=1000 count=300 2>/dev/null
busybox httpd -f -p 127.0.0.1:8099 -h /tmp/watched.d &
server=$!
eventually 5 wget -q -O /dev/null http://127.0.0.1:8099/file

ax trace tcp -o json -d 4s -O /tmp/tcp.json >/dev/null 2>&1 &
tracer=$!
usleep 1500000
wget -q -O /dev/null http://127.0.0.1:8099/file
wget -q -O /dev/null http://127.0.0.1:8098/file
wait "$tracer"
like "the client's end of a connection, with its bytes" \
	'"comm":"wget".*"remote":"127.0.0.1","remote_port":8099.*"side":"client".*"received":300[0-9]{3},' \
	cat /tmp/tcp.json
like "the server's" \
	'"local_port":8099,.*"side":"server".*"sent":300[0-9]{3},.*"end":"closed' cat /tmp/tcp.json
like "whose process is that of its listener or who accepted it" \
	'"comm":"(busybox|httpd)".*"local_port":8099,' cat /tmp/tcp.json
like "one that is refused" '"remote_port":8098.*"end":"refused"' cat /tmp/tcp.json
like "all are received" '"dropped":0' cat /tmp/tcp.json
like "changes of state" 'SYN_SENT -> ESTABLISHED$' \
	ax trace tcp --live -c "wget -q -O /dev/null http://127.0.0.1:8099/file"
kill "$server"
wait "$server" 2>/dev/null

# --- profile and offcpu ---

# the shell is busy for a while
spin='i=0; while [ $i -lt 60000 ]; do i=$((i + 1)); done'
ax trace profile -F 499 -o folded -c "/bin/busybox sh -c '$spin'" >/tmp/watch.out 2>&1
like "where a processor is busy" '^(busybox|sh);.* [0-9]+$' cat /tmp/watch.out
like "samples are all received" '^[0-9,]+ events?, .* 0 dropped$' cat /tmp/watch.out
ax trace profile -F 499 --stack fp -c "/bin/busybox sh -c '$spin'" >/tmp/watch.out 2>&1
like "and by frame pointers" ' - +(busybox|sh) ' cat /tmp/watch.out
ax trace offcpu -c "/bin/busybox sleep 1" >/tmp/watch.out 2>&1
like "where a thread waits" '^ +[0-9.]+m?s .* - +(busybox|sleep) ' cat /tmp/watch.out
like "functions of the kernel have names" '^ +do_nanosleep \(kernel\)$' cat /tmp/watch.out

done_testing
