# SPDX-License-Identifier: GPL-2.0-or-later
"""A datagram on its way through routers, and what comes back.

udp_probe.py serve              answers at port 7007 of all addresses, and prints who asked
udp_probe.py ADDRESS [KEY=VALUE]...
    ttl=N size=N from=ADDRESS df=1
    prints "answer", "nothing", or what an ICMP error says:
    "error EHOSTUNREACH by 10.1.0.1 mtu 0"
"""
import errno
import ipaddress
import select
import socket
import struct
import sys

PORT = 7007
IP_MTU_DISCOVER, IPV6_MTU_DISCOVER = 10, 23
PMTUDISC_DONT, PMTUDISC_PROBE = 0, 3
IP_RECVERR, IPV6_RECVERR = 11, 25
IPV6_DONTFRAG = 62


def serve():
    s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    s.bind(("::", PORT))
    print("ready", flush=True)
    while True:
        data, peer = s.recvfrom(65535)
        print("asked", peer[0], flush=True)
        s.sendto(data[:20], peer)


def make(v6, given):
    s = socket.socket(socket.AF_INET6 if v6 else socket.AF_INET, socket.SOCK_DGRAM)
    level = socket.IPPROTO_IPV6 if v6 else socket.IPPROTO_IP
    s.setsockopt(level, IPV6_RECVERR if v6 else IP_RECVERR, 1)
    # PROBE: what a former error said of the path is not heeded
    how = PMTUDISC_PROBE if "df" in given else PMTUDISC_DONT
    s.setsockopt(level, IPV6_MTU_DISCOVER if v6 else IP_MTU_DISCOVER, how)
    if "ttl" in given:
        s.setsockopt(level, socket.IPV6_UNICAST_HOPS if v6 else socket.IP_TTL, int(given["ttl"]))
    if "from" in given:
        s.bind((given["from"], 0))
    return s


def told(s):
    """The error in the socket's queue."""
    _, aux, _, _ = s.recvmsg(65535, 1024, socket.MSG_ERRQUEUE)
    for level, kind, data in aux:
        if (level, kind) not in ((socket.IPPROTO_IP, IP_RECVERR), (socket.IPPROTO_IPV6, IPV6_RECVERR)):
            continue
        code, _, _, _, _, info, _ = struct.unpack_from("IBBBBII", data)
        by = data[20:24] if level == socket.IPPROTO_IP else data[24:40]
        return f"error {errno.errorcode.get(code, code)} by {ipaddress.ip_address(by)} mtu {info}"
    return "error without a word"


def probe(to, given):
    s = make(":" in to, given)
    s.connect((to, PORT))
    s.send(b"x" * int(given.get("size", 20)))
    p = select.poll()
    p.register(s, select.POLLIN | select.POLLERR)
    for _, event in p.poll(2000):
        return told(s) if event & select.POLLERR else "answer"
    return "nothing"


if sys.argv[1] == "serve":
    serve()
print(probe(sys.argv[1], dict(a.split("=") for a in sys.argv[2:])))
