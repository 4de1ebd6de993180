# SPDX-License-Identifier: GPL-2.0-or-later
"""upstream.py ADDRESS PORT LOG

A DNS server of the test's own, for what the agent forwards: UDP and TCP, A only. *.example.test is
192.0.2.77, big.example.test has so many addresses that UDP gets TC, everything else is NXDOMAIN.
Every query is written to LOG as "PROTOCOL NAME TYPE".
"""
import selectors
import socket
import struct
import sys


def parse_name(query):
    labels, at = [], 12
    while query[at]:
        labels.append(query[at + 1:at + 1 + query[at]].decode("ascii"))
        at += 1 + query[at]
    return ".".join(labels), at + 1


def answer(query, protocol, log):
    name, at = parse_name(query)
    qtype = struct.unpack("!H", query[at:at + 2])[0]
    question = query[12:at + 4]
    print(protocol, name, qtype, file=log, flush=True)
    lower = name.lower()
    addresses, rcode, flags = [], 0, 0x8180
    if lower == "big.example.test":
        addresses = ["192.0.2.%d" % i for i in range(1, 101)]
    elif lower.endswith(".example.test"):
        addresses = ["192.0.2.77"]
    else:
        rcode = 3
    if qtype != 1:
        addresses = []
    if protocol == "udp" and len(addresses) > 20:
        addresses, flags = [], flags | 0x0200
    header = query[:2] + struct.pack("!HHHHH", flags | rcode, 1, len(addresses), 0, 0)
    records = b"".join(
        b"\xc0\x0c" + struct.pack("!HHIH", 1, 1, 60, 4) + socket.inet_aton(a) for a in addresses)
    return header + question + records


def main():
    address, port, log_path = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    log = open(log_path, "a", encoding="ascii")
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.bind((address, port))
    tcp = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    tcp.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    tcp.bind((address, port))
    tcp.listen(16)
    selector = selectors.DefaultSelector()
    selector.register(udp, selectors.EVENT_READ)
    selector.register(tcp, selectors.EVENT_READ)
    print("ready", flush=True)
    while True:
        for key, _ in selector.select():
            if key.fileobj is udp:
                query, peer = udp.recvfrom(4096)
                udp.sendto(answer(query, "udp", log), peer)
                continue
            connection, _ = tcp.accept()
            connection.settimeout(2)
            try:
                size = struct.unpack("!H", connection.recv(2))[0]
                reply = answer(connection.recv(size), "tcp", log)
                connection.sendall(struct.pack("!H", len(reply)) + reply)
            except (OSError, struct.error):
                pass
            connection.close()


main()
