# SPDX-License-Identifier: GPL-2.0-or-later
# Steps behind a probe, and what it changes, on this kernel too: by whatever kind of link, and
# wherever the kernel executes the probed instruction.
. "${0%/*}/lib.sh"

traced=/bin/traced

$traced 10 >/tmp/plain
plain=$(cat /tmp/plain)
like "instructions behind a probe" '^ *[0-9]+ +5 twice|^ *[0-9]+ +5 ' \
	ax trace step "uprobe:$traced:twice" -n 5 -c "$traced 10"
like "where it was asked for exactly" '^ *[0-9]+ +5 ' \
	ax trace step "uprobe:$traced:twice" --exact -n 5 -c "$traced 10"
like "behind a return" '^ *[0-9]+ +3 ' ax trace step "uretprobe:$traced:twice" -n 3 -c "$traced 10"
ax trace step "uprobe:$traced:twice" -n 300 --times 0 -O /tmp/steps -c "$traced 10" >/tmp/stepped 2>/tmp/err
like "the program has its results" "^$plain\$" cat /tmp/stepped
ax trace step "uprobe:$traced:twice" -f -n 3 --times 0 -O /tmp/steps -c "sh -c '$traced 1; $traced 1; true'" \
	>/tmp/stepped 2>/tmp/err </dev/null
like "processes that are started are stepped, each for itself" '^2$' \
	sh -c "grep -E '^ *[0-9]+ +3 ' /tmp/steps | awk '{ print \$1 }' | sort -u | wc -l"
like "a result is changed" 'returns 5 instead of' \
	ax trace change "uretprobe:$traced:twice" --return 5 --unsafe -c "$traced 10"
done_testing
