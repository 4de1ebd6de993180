# SPDX-License-Identifier: GPL-2.0-or-later
"""names.py ADDRESS PORT LOG TTL NAME=VALUE...

A DNS server over UDP and TCP that knows those names: a VALUE is an IPv4 or IPv6 address, or the name
that is meant (a CNAME, followed in the same answer). Everything else is NXDOMAIN. Each name that is
asked for is written to LOG.
"""
import selectors
import socket
import struct
import sys

A, CNAME, AAAA = 1, 5, 28


def wire(name):
    return b"".join(bytes([len(x)]) + x.encode() for x in name.split(".")) + b"\0"


def parse_name(query):
    labels, at = [], 12
    while query[at]:
        labels.append(query[at + 1:at + 1 + query[at]].decode("latin-1"))
        at += 1 + query[at]
    return ".".join(labels), at + 1


def address(value):
    if ":" in value:
        return AAAA, socket.inet_pton(socket.AF_INET6, value)
    try:
        return A, socket.inet_aton(value)
    except OSError:
        return CNAME, wire(value)


def records(zone, name, qtype):
    found = []
    for _ in range(8):
        values = [address(v) for v in zone.get(name, [])]
        found += [(name, t, data) for t, data in values if t in (qtype, CNAME)]
        target = [v for v in zone.get(name, []) if address(v)[0] == CNAME]
        if not target:
            return found
        name = target[0]
    return found


def answer(query, zone, ttl, log):
    name, at = parse_name(query)
    qtype = struct.unpack("!H", query[at:at + 2])[0]
    print(name, file=log, flush=True)
    found = records(zone, name.lower(), qtype)
    rcode = 0 if name.lower() in zone else 3
    body = b"".join(wire(n) + struct.pack("!HHIH", t, 1, ttl, len(data)) + data
                    for n, t, data in found)
    return query[:2] + struct.pack("!HHHHH", 0x8180 | rcode, 1, len(found), 0, 0) + \
        query[12:at + 4] + body


def main():
    zone = {}
    for word in sys.argv[5:]:
        name, value = word.split("=", 1)
        zone.setdefault(name, []).append(value)
    log = open(sys.argv[3], "a", encoding="utf-8")
    where, ttl = (sys.argv[1], int(sys.argv[2])), int(sys.argv[4])
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.bind(where)
    tcp = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    tcp.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    tcp.bind(where)
    tcp.listen(16)
    selector = selectors.DefaultSelector()
    selector.register(udp, selectors.EVENT_READ)
    selector.register(tcp, selectors.EVENT_READ)
    print("ready", flush=True)
    while True:
        for key, _ in selector.select():
            if key.fileobj is udp:
                query, peer = udp.recvfrom(4096)
                udp.sendto(answer(query, zone, ttl, log), peer)
                continue
            connection, _ = tcp.accept()
            connection.settimeout(2)
            try:
                size = struct.unpack("!H", connection.recv(2))[0]
                reply = answer(connection.recv(size), zone, ttl, log)
                connection.sendall(struct.pack("!H", len(reply)) + reply)
            except (OSError, struct.error):
                pass
            connection.close()


main()
