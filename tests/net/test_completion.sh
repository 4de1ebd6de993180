#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# timeout: 240
# ax completion: the scripts for bash, zsh and fish know all that the help knows, and what ax knows.
. "$(dirname "$0")/lib.sh"
export PATH=$T/bin:$PATH
mkdir "$T/bin" "$T/help"
ln -s "$AX" "$T/bin/ax"
"$AX" completion bash >"$T/ax.bash"
"$AX" completion zsh >"$T/_ax"
"$AX" completion fish >"$T/ax.fish"
ok "bash takes its script" bash -n "$T/ax.bash"
fails "a shell that is not known" "$AX" completion tcsh
fails "no shell" "$AX" completion

# in_bash WORD...: what is offered for the last one, on one line
in_bash() {
	bash "$SRC/complete.bash" "$T/ax.bash" "$@" | sort -u | xargs
}
in_fish() { # LINE
	fish --no-config -c "source $T/ax.fish; complete -C '$1'" | cut -f1
}
# help_of WORD...: each is asked for once
help_of() {
	[ -e "$T/help/ax $*" ] || "$AX" "$@" --help >"$T/help/ax $*"
	cat "$T/help/ax $*"
}
subcommands() { # WORD...
	help_of "$@" | awk '/^Commands:/ { on = 1; next } /^$/ { on = 0 } on { print $1 }'
}
options() { # WORD...
	help_of "$@" | awk '
		/^  -., --/ { print substr($1, 1, 2); sub(/\[=.*/, "", $2); print $2 }
		/^      --/ { sub(/\[=.*/, "", $1); print $1 }'
}

# all that the help of each command lists
walk() { # WORD...
	local below
	# shellcheck disable=SC2046
	is "bash: ax $* -" "$(in_bash ax "$@" -)" "$(options "$@" | sort | xargs)"
	below=$(subcommands "$@")
	commands+=("$*")
	[ -n "$below" ] || return
	is "bash: ax $*" "$(in_bash ax "$@" '')" "$(sort <<<"$below" | xargs)"
	for word in $below; do
		walk "$@" "$word"
	done
}
commands=()
walk
is "there are commands of three words" "$(printf '%s\n' "${commands[@]}" | grep -c '^xdp rule ')" 4

# what a usage line names is there
for name in "${commands[@]}"; do
	# shellcheck disable=SC2086
	for word in $(help_of $name | sed '/^$/,$d' | grep -oE -e '(^|[^[:alnum:]-])--?[a-z][a-z-]*' | grep -oE -e '--?[a-z].*'); do
		options $name | grep -qx -e "$word" || echo "ax $name $word"
	done
done >"$T/missing"
is "usage lines name no other options" "$(cat "$T/missing")" ""

# values and arguments
case_of() { # EXPECTED WORD...
	local expected=$1
	shift
	is "bash: $*" "$(in_bash "$@")" "$expected"
}
case_of "json name table wide" ax get apps -o ''
case_of "json" ax get --output = j
case_of "conns" ax --socket = /x get con
case_of "services" ax --instance x get service
case_of "auto generic native offload" ax xdp load lo --mode ''
case_of "host private" ax run --net ''
case_of "always no on-failure" ax run --restart ''
case_of "balance challenge cpu drop pass redirect reflect route" ax xdp rule add lo dport 22 action ''
case_of "lo" ax xdp rule add lo action redirect l
case_of "checksum" ax xdp rule add lo chec
case_of "lo" ax xdp status l
case_of "kprobe: kretprobe:" ax trace count k
case_of "kprobe: kretprobe:" ax trace add it k
case_of "count hist latency stats watch" ax trace add it --action ''
case_of "dot none svg" ax trace flow prog -g ''
case_of "debug" ax agent --log-level d
case_of "$T/ax.bash $T/ax.fish" ax agent --config "$T/ax."
case_of "$T/ax.fish" ax config check "$T/ax.f"
case_of "$T/bin" ax run --directory "$T/b"
case_of "root" ax run --user roo
case_of "apply check history rollback" ax config ''
case_of "xdp" ax help x
case_of "flows ports prefixes" ax xdp set add x --create ''
case_of "basename" ax run basenam
case_of "" ax run basename --n
case_of "" ax xdp load lo --priority ''

agent_start
for app in alpha beta; do
	run_app --name $app -- sleep 1000
done
wait_for "ax get apps -o name | grep -c . | grep -x 2"
case_of "alpha beta" ax --instance "$INST" stop ''
case_of "beta" ax --instance "$INST" get apps b
case_of "alpha" ax --instance "$INST" run --name al
case_of "alpha beta" ax --instance "$INST" exec -u nobody ''
case_of "basename" ax --instance "$INST" exec alpha basenam
case_of "" ax --instance "$INST" exec alpha basename --us

if command -v fish >/dev/null; then
	ok "fish takes its script" fish --no-config -n "$T/ax.fish"
	for name in "${commands[@]}"; do
		printf '%s\n' "ax $name --" "ax $name "
	done | fish --no-config -c "source $T/ax.fish
		while read -l line; complete -C \$line | string replace -r '^' \$line:; end" 2>"$T/complaints" |
		cut -f1 | sort >"$T/fish"
	for name in "${commands[@]}"; do
		# shellcheck disable=SC2086
		options $name | grep '^--' | sed "s/^/ax $name --:/"
		# shellcheck disable=SC2086
		subcommands $name | sed "s/^/ax $name :/"
	done | sort | comm -23 - "$T/fish" >"$T/missing"
	is "fish: all commands and options" "$(cat "$T/missing")" ""
	is "fish complains of nothing" "$(cat "$T/complaints")" ""
	while IFS='|' read -r line want; do
		is "fish: $line" "$(in_fish "$line" | xargs)" "$want"
	done <<-EOF
		ax get apps -o |json name table wide
		ax xdp load lo --mode n|native
		ax --instance x get s|servers services
		ax xdp rule add lo action r|redirect reflect route
		ax xdp rule add lo che|checksum
		ax trace count k|kprobe: kretprobe:
		ax config check $T/ax.f|$T/ax.fish
		ax --instance $INST stop |alpha beta
		ax --instance $INST exec al|alpha
		ax --instance $INST exec alpha basenam|basename
		ax exec alpha basename --us|
		ax run basename --instanc|
		ax run basename --|
	EOF
else
	skip "fish" "missing program fish"
fi

if command -v zsh >/dev/null; then
	ok "zsh takes its script" zsh -n "$T/_ax"
	for name in "${commands[@]}"; do
		# shellcheck disable=SC2086
		for option in $(options $name | grep '^--'); do
			grep -q -e "${option}[]=[}]" "$T/_ax" || echo "$option"
		done
	done >"$T/missing"
	is "zsh: all options" "$(cat "$T/missing")" ""
	while IFS='|' read -r line want; do
		lines+=("$line")
		wants+=("$want")
	done <<-EOF
		ax ru|ax run 
		ax xdp rule ad|ax xdp rule add 
		ax xdp load lo --mod|ax xdp load lo --mode=
		ax xdp load lo --mode=nat|ax xdp load lo --mode=native 
		ax xdp load lo -m gen|ax xdp load lo -m generic 
		ax xdp rule add lo action refl|ax xdp rule add lo action reflect 
		ax xdp rule add lo che|ax xdp rule add lo checksum 
		ax trace watch kretp|ax trace watch kretprobe:
		ax config check $T/ax.f|ax config check $T/ax.fish 
		ax run basename --instan|ax run basename --instan
		ax --instance $INST stop al|ax --instance $INST stop alpha 
		ax --instance $INST exec al|ax --instance $INST exec alpha 
		ax --instance $INST exec alpha basenam|ax --instance $INST exec alpha basename 
	EOF
	mapfile -t got < <(timeout 60 zsh "$SRC/complete.zsh" "$T" "${lines[@]}")
	for i in "${!lines[@]}"; do
		is "zsh: ${lines[i]}" "${got[i]:-}" "${wants[i]}"
	done
else
	skip "zsh" "missing program zsh"
fi
agent_stop
done_testing
