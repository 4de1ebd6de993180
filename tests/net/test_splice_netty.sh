#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# Netty, as a server that echoes and as a proxy of bytes between two such, over spliced connections.
# (Debian's has the selectors of Java, and not Netty's own by epoll.)
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/splice.sh"
need jq bpftool java
JARS=/usr/share/java
[ -e $JARS/netty-transport.jar ] || skip_all "missing package libnetty-java"
build_c talk

splice_agent </dev/null
NETTY=(java -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto -Xmx128m
	-cp "$JARS/jctools-core.jar$(printf ":$JARS/netty-%s.jar" common buffer transport resolver)"
	"$SRC/NettyRelay.java")

# echoed WHAT MODE ADDRESS PORT SOCKETS: byte for byte, one connection after the other and at once
echoed() {
	splice_mark
	JOINS=$5 talk "$1, client in $2 mode" --net "$2" -- 4 "$3" "$4" -e -n 5 -w $JOIN_MS -k 30 -s 20000000 -p
	spliced "$1" 200 "$5"
}

for mode in private host; do
	serve 7000 --net $mode --ip 10.77.1.1 --name echo -- "${NETTY[@]}" 7000
	echo=$APP echo_out=$OUT
	echoed "Netty in $mode mode" $mode 10.77.1.1 7000 10
	serve 7001 --net $mode --ip 10.77.2.1 --name proxy -- "${NETTY[@]}" 7001 10.77.1.1 7000
	proxy=$APP proxy_out=$OUT
	echoed "Netty in $mode mode behind Netty as a proxy" $mode 10.77.2.1 7001 20
	is "Netty in $mode mode met no error" "$(grep -h "^end" "$echo_out" "$proxy_out")" ""
	stop_app "$proxy"
	stop_app "$echo"
done
done_testing
