# SPDX-License-Identifier: GPL-2.0-or-later
# Following on this kernel: its programs load, processes that are started are seen, and so is a program
# that another file has taken the place of.
. "${0%/*}/lib.sh"

traced=/bin/traced
ax trace count uprobe:$traced:twice by comm -f -c "sh -c '$traced 2; sh -c \"$traced 3; true\"; true'" >/tmp/f.out 2>&1 </dev/null
like "processes that are started" '^5 events, 5 received, 0 dropped$' cat /tmp/f.out
ax trace count uprobe:$traced:twice -c "sh -c '$traced 2; true'" >/tmp/f.out 2>&1 </dev/null
like "but not without -f" '^0 events, 0 received, 0 dropped$' cat /tmp/f.out
ax trace exec -c "sh -c '$traced 1; true'" >/tmp/f.out 2>&1 </dev/null
like "what they execute" 'traced 1$' cat /tmp/f.out

cp $traced /tmp/served
cp $traced /tmp/new
(while [ ! -e /tmp/end ]; do /tmp/served 1 >/dev/null; done) &
loop=$!
ax trace count uprobe:/tmp/served:twice -f -p $loop,$$ -d 300s >/tmp/f.out 2>/tmp/f.err </dev/null &
tracer=$!
tries=0
while ! grep -q 'Ctrl-C ends' /tmp/f.err && [ $((tries += 1)) -lt 1000 ]; do sleep 0.1; done
mv /tmp/new /tmp/served
while ! grep -q 'place more' /tmp/f.err && [ $((tries += 1)) -lt 2000 ]; do sleep 0.1; done
kill -INT $tracer
wait $tracer
touch /tmp/end
wait $loop
like "a program that was replaced" '1 place more, in /tmp/served of process' cat /tmp/f.err
like "and all is accounted for" ' received, 0 dropped$' cat /tmp/f.err
done_testing
