# SPDX-License-Identifier: GPL-2.0-or-later
# Exposed ports on this kernel: their programs, and a list that drops by default and lets them through.
. "${0%/*}/lib.sh"

ax doctor -o wide >/tmp/judged 2>&1
tap "the programs of exposed ports are on" sh -c "grep '^from_outside *on' /tmp/judged && grep '^to_outside *on' /tmp/judged"
ip link add w0 type veth
ip link set w0 up
printf 'default: drop\nclasses: {exposed: pass}\nrules:\n  - {src: 10.0.0.0/8, proto: udp, action: drop}\n  - {dst: "fd00::/8", dport: 1-9, action: drop}\n' >/tmp/rules.yaml
tap "a list with exposed: pass" ax xdp load w0 --rules /tmp/rules.yaml
tap "explain" ax xdp explain w0 --packet 'tcp 198.51.100.2:5 > 198.51.100.1:8080'
tap "off with it" ax xdp unload w0
done_testing
