# SPDX-License-Identifier: GPL-2.0-or-later
# Writes a config with `n` declared apps and `n` services (10.70. and 10.80.), and with what is
# measured: the service `svc` (10.66.3.1, port 80), which puts connections through to port 7001 of
# the app `hclose`.
BEGIN {
	print "agent:"
	print "  pool:\n    ipv4: 10.66.128.0/17"
	print "  dns:\n    enabled: false"
	print "apps:"
	for (i = 0; i < n; i++)
		printf "  a%d:\n    ip: 10.70.%d.%d\n    net: host\n", i, i / 250, i % 250 + 1
	print "services:"
	for (i = 0; i < n; i++) {
		if (i == int(n / 2))
			service("svc", "10.66.3.1", "hclose")
		service("s" i, sprintf("10.80.%d.%d", i / 250, i % 250 + 1), "a" i)
	}
}

function service(name, ip, app) {
	printf "  %s:\n    ip: %s\n    ports:\n      - port: 80\n        target: 7001\n", name, ip
	printf "    backends:\n      - app: %s\n", app
}
