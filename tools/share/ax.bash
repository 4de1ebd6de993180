# SPDX-License-Identifier: GPL-2.0-or-later
# bash completion for ax. Commands and options come from ax's own help, so that nothing here can
# become outdated; names of apps come from the agent, if one answers.

# Where the command is in COMP_WORDS, 0 when it is not there yet; and the options before and after
# it that say which agent is meant.
_ax_scan()
{
	local i word

	command_at=0
	agent=()
	for ((i = 1; i < COMP_CWORD; i++)); do
		word=${COMP_WORDS[i]}
		case $word in
		--instance | --socket)
			# bash makes three words of --socket=PATH
			[[ ${COMP_WORDS[i + 1]} == = ]] && ((i++))
			((++i < COMP_CWORD)) && agent+=("$word=${COMP_WORDS[i]}")
			;;
		--) break ;;
		-*) ;;
		*) ((command_at)) || command_at=$i ;;
		esac
	done
}

# The long and short options that the help of a command (of one or several words) lists.
_ax_options() # WORD...
{
	"$ax" ${1:+"$@"} --help 2>/dev/null |
		awk '/^  (-.,|   ) --/ { for (i = 1; i <= 2; i++)
			if ($i ~ /^-/) { sub(/,$/, "", $i); print $i } }'
}

_ax_commands() # WORD...
{
	"$ax" "$@" --help 2>/dev/null | awk '/^Commands:/ { on = 1; next } /^$/ { on = 0 } on { print $1 }'
}

_ax_reply() # WORDS...
{
	mapfile -t COMPREPLY < <(compgen -W "$*" -- "$cur")
}

_ax_apps()
{
	_ax_reply "$("$ax" "${agent[@]}" get apps -o name 2>/dev/null | sort -u)"
}

_ax_interfaces()
{
	_ax_reply "$(ls /sys/class/net 2>/dev/null)"
}

_ax_files()
{
	compopt -o filenames 2>/dev/null
	mapfile -t COMPREPLY < <(compgen "$1" -- "$cur")
}

# The value of the option before the cursor. Fails when there is none.
_ax_value()
{
	local option=${COMP_WORDS[COMP_CWORD - 1]}

	if [[ $option == = ]]; then
		option=${COMP_WORDS[COMP_CWORD - 2]}
	elif [[ $cur == = ]]; then
		option=${COMP_WORDS[COMP_CWORD - 1]}
		cur=
	fi
	case $option in
	-o | --output)
		case $command in
		get) _ax_reply table wide json name ;;
		doctor) _ax_reply table wide json ;;
		'xdp rule') _ax_reply table json yaml ;;
		'trace ls') _ax_reply table json ;;
		trace*) _ax_reply text json ;;
		*) _ax_reply table json ;;
		esac
		;;
	--rules | --pcap | --write | --file | --key-file | --output-file | -r | -w | -k | -O) _ax_files -f ;;
	--mode | -m) _ax_reply auto native generic offload ;;
	--default) _ax_reply pass drop ;;
	--create) _ax_reply prefixes ports ;;
	--format) _ax_reply ascii hex json pcap ;;
	--interface) _ax_interfaces ;;
	--app) _ax_apps ;;
	--cgroup) _ax_files -d ;;
	--action | -a) _ax_reply watch count hist stats latency ;;
	--graph | -g) _ax_reply none dot svg ;;
	--armed-by | --disarmed-by) _ax_probe_kinds ;;
	--under | -u) ;;
	--command | -c) mapfile -t COMPREPLY < <(compgen -c -- "$cur") ;;
	--pid) _ax_pids ;;
	-p) [[ $command != trace* ]] || _ax_pids ;;
	--linear | --last | -l)
		[[ $command == trace* && $command != 'trace tcp' ]]
		;;
	-x) [[ $command != trace* ]] ;; # there it takes no value
	-f)
		case $command in
		'xdp capture') _ax_reply ascii hex json pcap ;;
		'xdp set') _ax_files -f ;;
		*) return 1 ;;
		esac
		;;
	-i)
		case $command in
		'xdp set') _ax_interfaces ;;
		trace*) ;;
		*) return 1 ;;
		esac
		;;
	--config | --socket) _ax_files -f ;;
	--directory) _ax_files -d ;;
	--user) mapfile -t COMPREPLY < <(compgen -u -- "$cur") ;;
	--net) _ax_reply private host ;;
	--restart) _ax_reply no on-failure always ;;
	--log-level) _ax_reply error warn info debug ;;
	--name) _ax_apps ;;
	--instance | --ip | --labels | --env | --wait | --timeout | --tail | --count | --duration) ;;
	--confirm | --priority | --interval | --packet | --hex | --at | --before | --after) ;;
	-n | -t | -P) ;;
	-d) # elsewhere it takes no value
		[[ $command == events || $command == 'xdp capture' || $command == trace* ]]
		;;
	*) return 1 ;;
	esac
}

# After `ax run`: the index of the command to run, which is the first word that is neither an
# option nor an option's value; 0 when it is not there yet.
_ax_run_command()
{
	local i

	run_at=0
	for ((i = command_at + 1; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		--)
			run_at=$((i + 1))
			return
			;;
		--egress | --detach | -d | --help | -h | --version) ;;
		-*)
			[[ ${COMP_WORDS[i + 1]} == = ]] && ((i++))
			((i++))
			;;
		*)
			run_at=$i
			return
			;;
		esac
	done
}

_ax_run()
{
	local run_at

	_ax_run_command
	if ((run_at && run_at < COMP_CWORD)) && declare -F _command_offset >/dev/null; then
		_command_offset "$run_at"
	elif ((run_at && run_at < COMP_CWORD)); then
		_ax_files -f
	elif ((run_at)); then
		mapfile -t COMPREPLY < <(compgen -c -- "$cur")
	elif [[ $cur == -* ]]; then
		_ax_value || _ax_reply "$(_ax_options run)"
	else
		_ax_value || mapfile -t COMPREPLY < <(compgen -c -- "$cur")
	fi
}

# After `ax xdp`: its commands, then the commands of these, then interfaces, sets and rules.
_ax_xdp()
{
	local at=$((command_at + 1)) word=${COMP_WORDS[command_at + 1]} what

	if ((COMP_CWORD == at)); then
		[[ $cur == -* ]] && _ax_reply "$(_ax_options xdp)" || _ax_reply "$(_ax_commands xdp)"
		return
	fi
	command="xdp $word"
	_ax_value && return
	if [[ $word == rule || $word == set ]]; then
		((++at == COMP_CWORD)) && {
			_ax_reply "$(_ax_commands xdp "$word")"
			return
		}
		what=${COMP_WORDS[at]}
	fi
	if [[ $cur == -* ]]; then
		_ax_reply "$(_ax_options xdp "$word" ${what:+"$what"})"
	elif [[ $word == sign ]]; then
		return
	elif [[ $word == set && $what != list ]]; then
		((COMP_CWORD == at + 1)) &&
			_ax_reply "$("$ax" "${agent[@]}" xdp set list 2>/dev/null | awk 'NR > 1 { print $2 }')"
	elif ((COMP_CWORD == at + 1)) || [[ $word == status ]]; then
		_ax_interfaces
	elif [[ $what == del || $what == move ]]; then
		_ax_reply "$("$ax" "${agent[@]}" xdp rule list "${COMP_WORDS[at + 1]}" 2>/dev/null |
			awk 'NR > 1 && $2 != "-" && $2 != "default" { print $2 }')"
	elif [[ $what == add ]]; then
		_ax_reply name src dst proto sport dport flags icmp icmp6 vlan fragment length mac action \
			smac dmac to to-port checksum capture rate sample log trigger
	fi
}

_ax_pids()
{
	_ax_reply "$(printf '%s\n' /proc/[0-9]* | sed 's|/proc/||')"
}

_ax_probe_kinds()
{
	compopt -o nospace 2>/dev/null
	_ax_reply uprobe: uretprobe: usdt: line: kprobe: kretprobe: tracepoint:
}

# After `ax trace`: its commands, then kinds of probes or names of those that stay. The words of a
# probe are divided at its colons, so further than its kind there is nothing to offer.
_ax_trace()
{
	local at=$((command_at + 1)) word=${COMP_WORDS[command_at + 1]}

	if ((COMP_CWORD == at)); then
		[[ $cur == -* ]] && _ax_reply "$(_ax_options trace)" || _ax_reply "$(_ax_commands trace)"
		return
	fi
	command="trace $word"
	_ax_value && return
	if [[ $cur == -* ]]; then
		_ax_reply "$(_ax_options trace "$word")"
		return
	fi
	case $word in
	ls | view | enable | disable | reset | rm)
		_ax_reply "$("$ax" "${agent[@]}" trace ls 2>/dev/null | awk 'NR > 1 { print $1 }')"
		;;
	flow) ((COMP_CWORD == at + 1)) && _ax_files -f ;;
	exec | tcp) ;;
	open) _ax_files -f ;;
	add) ((COMP_CWORD == at + 2)) && _ax_probe_kinds ;;
	*) ((COMP_CWORD == at + 1)) && _ax_probe_kinds ;;
	esac
}

_ax()
{
	local ax=${COMP_WORDS[0]} cur=${COMP_WORDS[COMP_CWORD]} command_at command agent

	COMPREPLY=()
	_ax_scan
	command=
	((command_at)) && command=${COMP_WORDS[command_at]}
	if [[ $command == run ]]; then
		_ax_run
		return
	fi
	if [[ $command == xdp ]]; then
		_ax_xdp
		return
	fi
	if [[ $command == trace ]]; then
		_ax_trace
		return
	fi
	_ax_value && return
	if [[ $cur == -* ]]; then
		_ax_reply "$(_ax_options "$command")"
		return
	fi
	case $command in
	'') _ax_reply "$(_ax_commands)" ;;
	help) _ax_reply "$(_ax_commands)" ;;
	get)
		if ((COMP_CWORD == command_at + 1)); then
			_ax_reply apps services servers conns names
		else
			_ax_apps
		fi
		;;
	stop | logs) _ax_apps ;;
	doctor) _ax_interfaces ;;
	config)
		if ((COMP_CWORD == command_at + 1)); then
			_ax_reply check apply
		else
			_ax_files -f
		fi
		;;
	esac
}

complete -F _ax ax
