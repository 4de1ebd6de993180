#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# Rules that name services are about all who serve them: by name, by labels, and by an address, which
# may be an app's; services of the config and those that 'ax service' adds, when they change, and
# from one agent to the next.
. "$(dirname "$0")/lib.sh"
build_c tcp

config() {
	cat <<-EOC
		agent:
		  pool: {ipv4: $POOL4, ipv6: "$POOL6"}
		services:
		  shop:
		    ip: "10.77.200.1,fd77::200:1"
		    ports: ["80:7000"]
		    backends: [{address: "$1"}, {address: "$2"}]
		apps:
		  stock: {ip: "10.77.1.5,fd77::1:5"}
		policy:
		  rules:
		    - deny: {from: {role: guest}, to: shop, name: no-shop}
		    - deny: {from: {role: guest}, to: cart, name: no-cart}
	EOC
}

# error_of MODE ADDR PORT: as a guest; to itself, or through a service
error_of() {
	in_app --net "$1" --labels zone=default,role=guest -- "$BIN/tcp" connect "${@:2}" 2>&1 |
		sed -n 's/^error [a-z]* //p; s/^peer=.* you=.*/connected/p' | sort -u
}

agent_start - < <(config 10.77.1.1:7000 "[fd77::1:2]:7000")
for i in 1 2 3; do
	mode=private
	[ $i != 2 ] || mode=host
	serve 7000 --net $mode --ip 10.77.1.$i,fd77::1:$i --name peer$i --labels zone=default -- \
		"$BIN/tcp" listen 6 :: 7000 peer
done

# judged WHAT CART: the first and the second serve the shop, the third does not; CART: who serves
# the cart besides
judged() {
	local i expected
	for mode in private host; do
		for i in 1 2 3; do
			expected=connected
			case "1 2 $2" in *$i*) expected=EACCES ;; esac
			is "$1, $mode: peer $i" "$(error_of $mode 4 10.77.1.$i 7000)" $expected
			is "$1, $mode: peer $i, IPv6" "$(error_of $mode 6 fd77::1:$i 7000)" $expected
		done
		is "$1, $mode: the service" "$(error_of $mode 4 10.77.200.1 80)" EACCES
		is "$1, $mode: the service, IPv6" "$(error_of $mode 6 fd77::200:1 80)" EACCES
	done
}

judged "addresses of apps" ""
ok "a service is added" ax service add cart --ip 10.77.200.2 --port 80:7000 --backend address:10.77.1.3:7000
judged "an added service" 3
is "through it" "$(error_of private 4 10.77.200.2 80)" EACCES
agent_kill9
agent_again
judged "by the next agent" 3
ok "it has another backend" ax service set cart --backend address:10.77.1.9:7000
judged "an added service that changed" ""
ok "and its former one again" ax service set cart --backend "address:[fd77::1:3]:7000"
judged "an added service that changed again" 3
ok "it is removed" ax service del cart
judged "without the added service" ""

# the app with the address comes later than the rule
ok "a service of an app that does not run" ax service add cart --ip 10.77.200.2 --port 80:7000 \
	--backend address:10.77.1.4:7000
serve 7000 --ip 10.77.1.4,fd77::1:4 --labels zone=default -- "$BIN/tcp" listen 6 :: 7000 late
is "whoever gets the address is judged as its owner" "$(error_of private 4 10.77.1.4 7000)" EACCES
is "by its other address, too" "$(error_of host 6 fd77::1:4 7000)" EACCES

# a service of the config changes
config 10.77.1.1:7000 10.77.1.5:7000 >"$T/$INST.yaml"
ok "the config has other backends" ax config apply "$T/$INST.yaml"
is "who serves no more is free" "$(error_of private 4 10.77.1.2 7000)" connected
is "who still does is not" "$(error_of private 4 10.77.1.1 7000)" EACCES
serve 7000 --name stock -- "$BIN/tcp" listen 6 :: 7000 stock
is "nor is a declared app that has the address" "$(error_of private 4 10.77.1.5 7000)" EACCES

ok "it is removed for good" ax service del cart

# offline
cat >"$T/expect.yaml" <<EOF
config: $T/$INST.yaml
tests:
  - {from: role=guest, to: "stock:7000", expect: deny, rule: no-shop}
  - {from: role=guest, to: "10.77.1.5:7000", expect: deny, rule: no-shop}
  - {from: role=guest, to: "shop:80", expect: deny}
EOF
is "so it is without an agent" "$("$AX" policy test "$T/expect.yaml" 2>&1)" "3 expectations hold"
stop_apps
done_testing
