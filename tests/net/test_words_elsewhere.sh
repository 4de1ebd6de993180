#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# quick
# Words and options of docker, systemd and kubectl, which ax has not, get a sentence that says what it has; and
# what the sentences tell people to write is there.
. "$(dirname "$0")/lib.sh"

# says COMMAND... => REGEX: it is wrong usage, of which one sentence (and where help is) tells
says() {
	local words=() status
	while [ "$1" != "=>" ]; do
		words+=("$1")
		shift
	done
	"$AX" "${words[@]}" >"$T/said" 2>&1
	status=$?
	like "ax ${words[*]}" "$status $(head -n 1 "$T/said")" "^2 ax[^:]*: $2"
}

while read -r options words; do
	# shellcheck disable=SC2086 # several options
	says run $options -- true "=>" "there is no option ${options%%=*}: .*$words"
done <<-'EOL'
	--rm leave it out
	--interactive leave it out
	--tty leave it out
	--network=front private.*host
	--hostname=x --name NAME
	--label=a=b --labels K=V
	--link=db reach each other by name
	--entrypoint=/bin/sh first word of the command
	--publish-all --expose HOSTPORT:PORT
	--workdir=/tmp --directory DIR
	--mount=type=bind --volume SOURCE:TARGET
	--unit=web --name NAME
	--setenv=A=B --env K=V
	--pids-limit=5 --pids N
EOL
says run -it sh "=>" "there is no option -i: .*standard input"
says run -dt sh "=>" "there is no option -t: .*terminal"
says run -P sh "=>" "there is no option -P: .*--expose HOSTPORT:PORT"
says run -l a=b sh "=>" "there is no option -l: .*--labels"
says run --network host sh "=>" "there is no option --network: .*--net host"
says run --restart unless-stopped sh "=>" "--restart cannot be 'unless-stopped': give no, on-failure or always"
says ps -q "=>" "there is no option -q: write -o name"
says ps -a "=>" "there is no option -a: leave it out"
says get apps --watch "=>" "there is no option --watch: .*'ax events'"
says run --nmae x "=>" "there is no option --nmae: did you mean --name[?]"
says run -Z "=>" "there is no option -Z$"

while read -r word words; do
	says "$word" x "=>" "there is no command '$word': write .*$words"
done <<-'EOL'
	start ax run
	restart ax stop APP.*--restart always
	inspect ax get apps -o json
	top ax ps
	stats ax get conns -o wide
	port ax get servers
	images no images
	pull no images
	apply ax config apply FILE
	describe ax get
	scale --name NAME
	rollout ax service drain
	port-forward ax run -p
	unpause kill -CONT
	cat ax get apps -o json
	label --labels K=V
EOL

# what all sentences name is there: commands, options of `ax run`
"$AX" run --help >"$T/run"
strings=$(tr -d '\n' <"$TOP/tools/cmd/elsewhere.c" | sed 's/"[[:space:]]*"//g' | grep -o '"[^"]*"')
while read -r command; do
	ok "there is ax $command" "$AX" "$command" --help
done < <(grep -oE "'ax [a-z]+" <<<"$strings" | cut -d ' ' -f 2 | sort -u)
while read -r option; do
	like "there is $option" "$(cat "$T/run")" "$option([ =[]|$)"
done < <(grep -oE "write [^\"']*--[a-z]+[^\"]*" <<<"$strings" | grep -v "'ax stop" | grep -oE -- '--[a-z-]+' | sort -u)
done_testing
