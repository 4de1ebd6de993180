# shellcheck shell=bash
# bash completion for ax, printed by 'ax completion bash'. Commands, options and fixed words stand
# in it; names of apps, services, rules and so on come from ax when they are asked for.

_ax_words() # SUFFIX WORD...
{
	local suffix=$1

	shift
	[[ -z $suffix ]] || compopt -o nospace 2>/dev/null
	mapfile -t COMPREPLY < <(compgen -S "$suffix" -W "$*" -- "$cur")
}

_ax_generate() # KIND-OF-COMPGEN
{
	mapfile -t COMPREPLY < <(compgen "$1" -- "$cur")
}

_ax_files() # -f or -d
{
	compopt -o filenames 2>/dev/null
	_ax_generate "$1"
}

_ax_processes()
{
	_ax_words '' "$(printf '%s\n' /proc/[0-9]* | sed 's|/proc/||')"
}

_ax_interfaces()
{
	_ax_words '' "$(ls /sys/class/net 2>/dev/null)"
}

# What ax prints: lines, or a column of a table. Rows without a number or name begin with "-".
_ax_ask() # COLUMN WORD...
{
	local column=$1

	shift
	_ax_words '' "$("$ax" "${agent[@]}" "$@" 2>/dev/null |
		awk -v c="$column" '!c { print } c && NR > 1 && $1 != "-" && $c != "-" { print $c }' |
		sort -u)"
}

# Reads what stands before the cursor: which command it is, how many arguments it has, the first one
# of them, where a program to be executed begins, and which agent is meant.
_ax_scan()
{
	local i word

	_ax_table ''
	for ((i = 1; i < COMP_CWORD; i++)); do
		word=${COMP_WORDS[i]}
		if [[ $word == -- && $program == "$count" ]]; then
			program_at=$((i + 1))
			return
		elif [[ $word == -?* && " $valued " == *" $word "* ]]; then
			# bash makes three words of --socket=PATH
			[[ ${COMP_WORDS[i + 1]} == = ]] && ((i++))
			((i++))
			[[ $word == --instance || $word == --socket ]] && ((i < COMP_CWORD)) &&
				agent+=("$word=${COMP_WORDS[i]}")
		elif [[ $word == -?* ]]; then
			continue
		elif [[ " $below " == *" $word "* ]]; then
			command+=${command:+ }$word
			_ax_table "$command"
		elif [[ $program == "$count" ]]; then
			program_at=$i
			return
		else
			((count++)) || first=$word
		fi
	done
}

# The value of the option before the cursor. Fails when there is none.
_ax_value()
{
	local option=$before

	if [[ $before == = ]]; then
		option=${COMP_WORDS[COMP_CWORD - 2]}
	elif [[ $cur == = ]]; then
		cur=
	fi
	[[ $option == -?* && " $valued " == *" $option "* ]] && _ax_what "$command/$option"
}

_ax()
{
	local ax=${COMP_WORDS[0]} cur=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
	# shellcheck disable=SC2034 # _ax_what asks for the first argument
	local command='' first='' count=0 program_at=0 below options valued program agent=()

	COMPREPLY=()
	_ax_scan
	if ((program_at && program_at < COMP_CWORD)); then
		if declare -F _command_offset >/dev/null; then
			_command_offset "$program_at"
		else
			_ax_files -f
		fi
	elif ((program_at)); then
		_ax_generate -c
	elif _ax_value; then
		return
	elif [[ $cur == -* ]]; then
		_ax_words '' "$options"
	elif [[ $below ]]; then
		_ax_words '' "$below"
	else
		_ax_what "$command/$count"
	fi
}
