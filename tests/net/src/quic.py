# SPDX-License-Identifier: GPL-2.0-or-later
"""What a balancer sees of QUIC: headers and connection ids, with nothing encrypted behind them.

quic.py serve NAME NUMBER PORT ADDRESS...
                                     a server at these addresses: who begins a connection gets an id that
                                     has the number; packets of ids that are not of its making get no
                                     answer but "reset"
quic.py clients HOST PORT N ROUNDS SOURCE...
                                     N connections, each of which asks from another address and port in
                                     each round; a line for each: who began it, and who answered then
"""
import os
import select
import socket
import struct
import sys

ID_LEN = 8


def connection_id(number):
    """draft-ietf-quic-load-balancers: config and length, the server's id of 2 bytes, a nonce."""
    return bytes([ID_LEN - 1]) + struct.pack("!H", number) + os.urandom(ID_LEN - 3)


def answer(data, name, number, known):
    if data[0] & 0x80:  # RFC 9000, 17.2: version, the receiver's id, the sender's
        to = data[6 : 6 + data[5]]
        new = connection_id(number)
        known.add(new)
        return b"\xc0" + struct.pack("!I", 1) + bytes([len(to)]) + to + bytes([ID_LEN]) + new + name
    if data[1 : 1 + ID_LEN] in known:
        return b"\x40" + name
    return b"\x40reset"


def serve(name, number, port, *addresses):
    known, socks = set(), []
    for a in addresses:
        family = socket.AF_INET6 if ":" in a else socket.AF_INET
        socks.append(socket.socket(family, socket.SOCK_DGRAM))
        socks[-1].bind((a, int(port)))
    print("serving", flush=True)
    while True:
        for s in select.select(socks, [], [])[0]:
            data, peer = s.recvfrom(65535)
            s.sendto(answer(data, name.encode(), int(number), known), peer)


def ask(host, port, source, data):
    """From a port of its own."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as s:
        s.settimeout(5)
        s.bind((source, 0))
        s.connect((host, port))
        try:
            s.send(data)
            return s.recv(65535)
        except OSError as e:
            return b"\x40" + type(e).__name__.encode()


def begin(host, port, source):
    to = os.urandom(ID_LEN)
    hello = b"\xc0" + struct.pack("!I", 1) + bytes([ID_LEN]) + to + bytes(1200)
    got = ask(host, port, source, hello)
    at = 6 + got[5]
    return got[at + 1 : at + 1 + ID_LEN], got[at + 1 + ID_LEN :].decode()


def clients(host, port, n, rounds, *sources):
    begun = [begin(host, int(port), sources[i % len(sources)]) for i in range(int(n))]
    for i, (own, first) in enumerate(begun):
        then = []
        for r in range(int(rounds)):
            source = sources[(i + r + 1) % len(sources)]
            then.append(ask(host, int(port), source, b"\x40" + own + bytes(20))[1:].decode())
        print(first, *then)


{"serve": serve, "clients": clients}[sys.argv[1]](*sys.argv[2:])
