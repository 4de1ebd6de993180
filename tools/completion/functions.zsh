#compdef ax
# zsh completion for ax, printed by 'ax completion zsh'. Commands, options and fixed words stand in
# it; names of apps, services, rules and so on come from ax when they are asked for.

# What ax prints: lines, or a column of a table. Rows without a number or name begin with "-". "{}"
# stands for the first argument.
_ax_ask() { # COLUMN WORD...
	local -a found

	found=(${(f)"$(_call_program names ax ${(q)_ax_agent} ${(q)@[2,-1]/(#s)\{\}(#e)/$line[1]} 2>/dev/null |
		awk -v c=$1 '!c { print } c && NR > 1 && $1 != "-" && $c != "-" { print $c }' |
		sort -u)"})
	compadd -a found
}

_ax_words() { # SUFFIX WORD...
	compadd -q -S "$1" -- "${@[2,-1]}"
}

_ax_processes() {
	compadd -- /proc/[0-9]##(N:t)
}

_ax_interfaces() {
	compadd -- /sys/class/net/*(N:t)
}
