#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# timeout: 240
# The agent's client of etcd over TLS: who is on the other side is always verified, a client shows its
# certificate, and a file that was replaced holds without a new start.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/etcd.sh"
. "$(dirname "$0")/certificates.sh"

cd "$T" || exit 1
authority ours
authority theirs
certificate server ours /CN=server IP:127.0.0.1
certificate elsewhere ours /CN=server IP:192.0.2.7
certificate expired ours /CN=server IP:127.0.0.1 20200101000000Z 20200201000000Z
certificate client ours "/O=nodes" DNS:n1
certificate named ours /CN=n1 DNS:n1
certificate stranger theirs /CN=n1 DNS:n1
certificate old ours /CN=n1 DNS:n1 20200101000000Z 20200201000000Z

chmod 644 ./*.key # the client is nobody
build_etcd_client
export ETCD_SCHEME=https
MEMBERS=1
etcd_with() { # CERTIFICATE
	[ -z "${MEMBER[1]:-}" ] || etcd_kill9 1
	etcd_member 1 --cert-file "$1.pem" --key-file "$1.key" --client-cert-auth --trusted-ca-file ours.pem
	wait_for -t 60 "ss -Hltn 'sport = :2381' | grep -q ."
}
HERE=https://127.0.0.1:2381
with() { # CERTIFICATE OF-ITS-CA [MS]: how long it tries
	client -t "${3:-60000}" -c "$2.pem" -C "$1.pem" -K "$1.key" "$HERE"
	say put key value
}

etcd_with server
with client ours
hears "a client with a certificate is served" '^put key value: done$'
say watch k 1
hears "watches too" '^watch: put key=value$'
say lease 10
hears "and leases" '^lease: held '

# its files are replaced: the old ones have expired, say
cp server.pem server.first
certificate server2 ours /CN=again IP:127.0.0.1
etcd_with server2
hears "after the member has another certificate of the same CA it is connected again" '^watch: current$' 2
client_end

with named ours
hears "a certificate with a CN is taken as one without" '^put key value: done$'
client_end
with stranger ours 1000
hears "one of another CA is refused" '^put key value: EHOSTUNREACH: '
hears_not "for good" '^put key value: done'
client_end
with old ours 1000
hears "one that has expired is refused" '^put key value: EHOSTUNREACH: '
client_end
client -t 1000 -c ours.pem "$HERE"
say put key value
hears "and none" '^put key value: EHOSTUNREACH: '
client_end
with client theirs 4000
hears "a member whose CA is not ours gets nothing" '^put key value: EHOSTUNREACH: .*certificate'
client_end
client -t 1000 http://127.0.0.1:2381
say put key value
hears "nor does one that wants TLS, without it" '^put key value: EHOSTUNREACH: '
client_end

etcd_with elsewhere
with client ours 4000
hears "nor one whose certificate is another address's" '^put key value: EHOSTUNREACH: .*(127.0.0.1|host name|certificate)'
client_end
etcd_with expired
with client ours 4000
hears "nor one whose certificate has expired" '^put key value: EHOSTUNREACH: .*expired'
client_end

ok "a file that is not there is said at once" bash -c \
	"'$T/etcd_client' -c no.pem $HERE </dev/null | grep -q 'no.pem, cannot be read'"
ok "and so is a certificate without its key" bash -c \
	"'$T/etcd_client' -C client.pem $HERE </dev/null | grep -q 'needs its key'"
ok "and an endpoint that is none" bash -c \
	"'$T/etcd_client' 127.0.0.1:2379 </dev/null | grep -q 'is no endpoint of etcd'"
etcd_kill9 1
cd / || exit 1
done_testing
