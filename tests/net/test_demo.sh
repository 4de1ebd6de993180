#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# timeout: 300
# tools/demo.sh, which `make demo` runs: to its end, two at once as it says, with an ax that fails, and
# interrupted. Whatever becomes of it, it takes away what it made.
. "$(dirname "$0")/lib.sh"
need nginx curl python3 ip unshare pgrep

# demo NAME AX: in the background, its number in $BG; what it prints is in $T/NAME
demo() {
	bg "$T/$1" env AX_TEST_DEMO="$T" "$TOP/tools/demo.sh" "$2"
	# its instance has its number
	[ -z "${AX_TEST_INSTANCES:-}" ] || echo "d$BG" >>"$AX_TEST_INSTANCES"
}

# What there is of the demo with that name and number.
of_demo() {
	local p
	find "$CGROUP2" -mindepth 1 -maxdepth 1 -name "d$2"
	# shellcheck disable=SC2046 # names without blanks
	ls -d $(grep -o '/tmp/ax-demo\.[A-Za-z0-9]*' "$T/$1" | sort -u) /nothing
	for p in /proc/[0-9]*; do
		grep -qsz "^AX_TEST_DEMO=$T\$" "$p/environ" && echo "process $(tr '\0' ' ' <"$p/cmdline")"
	done
} 2>/dev/null

nothing_left() {
	wait_for -t 65 "[ -z \"\$(of_demo $1 $2)\" ]"
	is "$1: nothing of it is left" "$(of_demo "$1" "$2")" ""
}

# --- two at once ---

demo one "$AX"
ONE=$BG
demo two "$AX"
TWO=$BG
for demo in "one $ONE" "two $TWO"; do
	read -r name pid <<<"$demo"
	wait "$pid"
	is "$name: it comes to its end" "$?" 0
	is "$name: with nothing left, it says" "$(tail -n 1 "$T/$name")" \
		"# Nothing is left: no app, link, route, cgroup or pinned program."
	is "$name: no error is told" "$(grep -ciE '^demo: |error|warning' "$T/$name")" 0
	# each of its steps, by what it shows
	for shown in '^hello from web, the first nginx$' '^hello from files$' '^5\.6\.7\.8 - .*"GET / HTTP' \
		'hello from web, the second nginx$' '^web +1\.2\.3\.4 .*, web ' '^files +1\.2\.3\.5 ' \
		'^tcp +established +holder 5\.6\.7\.9:[0-9]+ +files 1\.2\.3\.5:80' '^stopped files'; do
		ok "$name: shown is $shown" grep -qE "$shown" "$T/$name"
	done
done
[ "$FAILED" = 0 ] || diag "$(tail -n 40 "$T/one" "$T/two")"
nothing_left one "$ONE"
nothing_left two "$TWO"

# --- an ax that does not do what it must ---

cat >"$T/ax" <<END
#!/bin/sh
case "\$*" in *' get services') exit 3 ;; esac
exec '$AX' "\$@"
END
chmod 755 "$T/ax"
demo failing "$T/ax"
FAILING=$BG
wait "$FAILING"
is "failing: its status" "$?" 1
is "failing: the sentence" "$(tail -n 1 "$T/failing")" "demo: 'ax get services' ended with status 3"
nothing_left failing "$FAILING"

cat >"$T/ax" <<END
#!/bin/sh
case "\$*" in *' curl -sS http://files/') echo something else; exit ;; esac
exec '$AX' "\$@"
END
demo wrong "$T/ax"
WRONG=$BG
wait "$WRONG"
is "wrong: its status" "$?" 1
is "wrong: the sentence" "$(tail -n 1 "$T/wrong")" "demo: http://files/ is not the page of python3"
nothing_left wrong "$WRONG"

# --- interrupted, with apps and an agent ---

demo ended "$AX"
ENDED=$BG
ok "ended: its apps run" wait_for -t 60 "grep -q 'curl -sS http://web/' $T/ended"
kill -TERM "$ENDED"
wait "$ENDED"
is "ended: its status is that of the signal" "$?" 143
nothing_left ended "$ENDED"

# --- what it cannot do is said in one sentence ---

is "without ax" "$("$TOP/tools/demo.sh" "$T/none" 2>&1)" "demo: give the path of ax, as 'make demo' does"
# (the tree may stand where nobody else can look)
install -m 755 "$TOP/tools/demo.sh" "$T/demo.sh"
is "without rights" "$(setpriv --reuid 65534 --regid 65534 --clear-groups "$T/demo.sh" "$AX" 2>&1)" \
	"demo: it launches apps under virtual IPs: run it as root"
done_testing
