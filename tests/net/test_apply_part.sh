#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# A config of which a few services differ is applied as if all of it had been read: they are changed,
# added, renamed and removed, one that 'ax service' has added becomes the config's, what is wrong is
# refused, and each time the services are those that an agent has which reads the same file first.
. "$(dirname "$0")/lib.sh"
need jq

file=$T/services.yaml
{
	default_config
	echo services:
	for i in 1 2 3 4 5 6 7 8; do
		echo "  s$i: {ip: 10.77.200.$i, ports: [\"80:7900\"], backends: [{address: 127.0.9.$i}]}"
	done
} >"$file"
cp "$file" "$T/first.yaml"
agent_start "$file"
bg "$T/server.out" "$PYTHON" "$SRC/hits.py" serve 0.0.0.0 7900
SERVER=$BG
wait_for "ss -Hltn 'sport = :7900' | grep -q ."
hits() { in_app --net host -- "$PYTHON" "$SRC/hits.py" ask "$1" "$2"; }
change() { sed -i "$1" "$file" && ax config apply "$file"; }
shown() { ax get services -o json | jq -cS '[.[] | del(.id)] | sort_by(.name)'; }

like "one is changed" "$(change '/ s3:/s/127.0.9.3/127.0.9.33/')" '^~ service s3: backends.*1 difference applied'
is "it serves from there" "$(hits 10.77.200.3 2)" "127.0.9.33=2"
is "its neighbours as before" "$(hits 10.77.200.2 1) $(hits 10.77.200.4 1)" "127.0.9.2=1 127.0.9.4=1"
like "one is added" "$(change '/ s5:/a\  new: {ip: 10.77.200.20, ports: ["80:7900"], backends: [{address: 127.0.9.20}]}')" \
	'^\+ service new 10.77.200.20.*1 difference applied'
is "it serves" "$(hits new 1)" "127.0.9.20=1"
like "another name is another service" "$(change 's/^  new:/  other:/')" 'service new.*service other|service other.*service new'
is "at the same address" "$(hits other 1)" "127.0.9.20=1"
fails "the one before is none any more" ax get services new
like "one is removed" "$(change '/^  s2:/d')" '^- service s2.*1 difference applied'
fails "it is gone" ax get services s2
is "those behind it serve on" "$(hits 10.77.200.8 1)" "127.0.9.8=1"
like "the last one is changed" "$(change '/ s8:/s/127.0.9.8/127.0.9.88/')" '^~ service s8: backends.*1 difference applied'
is "and serves" "$(hits 10.77.200.8 1)" "127.0.9.88=1"
is "nothing is no difference" "$(ax config apply "$file")" "no differences"
ok "ax service adds one" ax service add cli --ip 10.77.200.30 --port 80:7900 --backend address:127.0.9.30
like "which becomes the config's" \
	"$(change '/^  s6:/a\  cli: {ip: 10.77.200.30, ports: ["80:7900"], backends: [{address: 127.0.9.31}]}')" \
	'service cli: was added by'
is "and serves as it says" "$(hits cli 1)" "127.0.9.31=1"

cp "$file" "$T/good.yaml"
like "a name that another has is refused, by its line" "$(change 's/^  s7:/  s8:/' 2>&1)" 'services.yaml:[0-9]*:3: services.s8'
cp "$T/good.yaml" "$file"
like "so is an address" "$(change '/ s7:/s/200.7/200.8/' 2>&1)" 'a service has'
cp "$T/good.yaml" "$file"
like "and the pool's host address" "$(change '/ s7:/s/10.77.200.7/10.77.0.1/' 2>&1)" "agent's own address"
cp "$T/good.yaml" "$file"
is "after which all is as it was" "$(ax config apply "$file")" "no differences"
like "a dry run says what would be" "$(sed -i '/ s7:/s/9.7/9.77/' "$file"; ax config apply "$file" --dry-run)" \
	'^~ service s7.*nothing was changed'
is "and does nothing" "$(hits 10.77.200.7 1)" "127.0.9.7=1"
like "what it showed can be done" "$(ax config apply "$file")" '1 difference applied'
is "then it serves" "$(hits 10.77.200.7 1)" "127.0.9.77=1"

before=$(shown)
agent_kill9
agent_again
is "the next agent has them all the same" "$(shown)" "$before"
like "and knows what differs from the file that holds" "$(change '/ s1:/s/9.1}/9.11}/')" '^~ service s1.*1 difference applied'
ok "the first file again" ax config apply "$T/first.yaml"
fails "has none of what came later" ax get services other
end "$SERVER"
done_testing
