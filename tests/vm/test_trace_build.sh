# SPDX-License-Identifier: GPL-2.0-or-later
# ax trace build on this kernel: its programs load, and every file of a small build is told.
. "${0%/*}/lib.sh"

mkdir -p /tmp/build/sub
cat >/tmp/build/run.sh <<'END2'
cd /tmp/build
echo text >made
/bin/busybox cp made copied
/bin/busybox mv copied sub/moved
/bin/busybox ln -s moved sub/link
cd sub
/bin/busybox cat ./link >/dev/null
/bin/busybox rm link
/bin/busybox cat none
exit 3
END2
ax trace build -o /tmp/build.trace -- /bin/busybox sh /tmp/build/run.sh >/tmp/build.out 2>&1
tap "the command's status is that of ax" [ $? = 3 ]
like "all is received" '^[0-9]+ events, [0-9]+ received, 0 dropped$' cat /tmp/build.out
ax trace build report --all --failed /tmp/build.trace >/tmp/build.report 2>&1
like "what was executed" ' exec +/bin/busybox cp made copied$' cat /tmp/build.report
like "a redirection" ' write +/tmp/build/made$' cat /tmp/build.report
like "a rename" ' rename +/tmp/build/copied to /tmp/build/sub/moved$' cat /tmp/build.report
like "a symbolic link" ' symlink +/tmp/build/sub/link -> moved$' cat /tmp/build.report
like "what a link leads to" ' read +/tmp/build/sub/moved$' cat /tmp/build.report
like "a removal, from another directory" ' remove +/tmp/build/sub/link$' cat /tmp/build.report
like "a failure" ' read +/tmp/build/sub/none: ENOENT$' cat /tmp/build.report
like "how it ended" ' exit +3 after ' cat /tmp/build.report
done_testing
