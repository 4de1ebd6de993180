# SPDX-License-Identifier: GPL-2.0-or-later
# Writes the configs of the part about services. `what` is a number: so many services with 100 backends
# each (10.80., port 80), and in front of them what is measured: a service of each strategy with one
# backend (10.66.6.10 and so on) and with a thousand (10.66.7.10), nginx's (10.66.6.20), and an app that
# the first connection starts, with the program `server`. Or it is "rules": 1,000 of them, of which the
# last says that the client may reach the server.
BEGIN {
	print "agent:\n  pool:\n    ipv4: 10.66.128.0/17\n  dns:\n    enabled: false"
	if (what == "rules")
		rules(1000)
	else
		services(what)
}

function rules(n,    i) {
	print "policy:\n  rules:"
	for (i = 1; i < n; i++)
		if (i % 2)
			printf "    - deny: {from: guest%d, to: vault%d, port: %d, name: r%d}\n", i, i, 8000 + i % 500, i
		else
			printf "    - deny: {from: 198.18.%d.0/24, to: server, port: %d, name: r%d}\n", i / 4, 8000 + i % 500, i
	print "    - allow: {from: client, to: server, port: 7001, name: last}"
}

function services(n,    i, names) {
	printf "apps:\n  lazy: {ip: 10.66.6.4, net: host, start: on-connect, command: [%s, server, echo, \"7001\"]}\n", server
	print "services:"
	service("web", "10.66.6.20", "80:7080", "random", "app: nginx")
	split("random round-robin maglev least-connections", names, " ")
	for (i = 1; i <= 4; i++) {
		service(names[i] "-1", "10.66.6." i + 9, "80:7101", names[i], "address: 10.99.0.1")
		service(names[i] "-1000", "10.66.7." i + 9, "80:7101", names[i], "address: 10.99.0.1-10.99.3.232")
	}
	for (i = 0; i < n; i++)
		service("s" i, sprintf("10.80.%d.%d", i / 250, i % 250 + 1), "80:7101", "random",
			sprintf("address: 10.%d.%d.1-10.%d.%d.100", 128 + i / 250, i % 250, 128 + i / 250, i % 250))
}

function service(name, ip, port, strategy, backend) {
	printf "  %s: {ip: %s, ports: [\"%s\"], strategy: %s, backends: [{%s}]}\n", name, ip, port, strategy, backend
}
