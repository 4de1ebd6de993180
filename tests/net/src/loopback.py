#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""TCP by loopback in one program: every kind of wildcard server, every kind of client. loopback.py
PORT prints a line for each with all the addresses that both ends see, or the error; servers are at
a port that the kernel chooses, and at PORT. loopback.py PORT udp HIGH: the same of datagrams, also at
HIGH, a port that clients get too; of the addresses only what the server reads of its own."""

import socket
import sys
import time

IPV4, IPV6 = socket.AF_INET, socket.AF_INET6
# name, family, address, IPV6_V6ONLY
SERVERS = (
    ("0.0.0.0", IPV4, "0.0.0.0", None),
    ("::", IPV6, "::", 0),
    (":: v6only", IPV6, "::", 1),
    ("::ffff:0.0.0.0", IPV6, "::ffff:0.0.0.0", 0),
)
# family, to, IPV6_V6ONLY, bound to
CLIENTS = (
    (IPV4, "127.0.0.1", None, None),
    (IPV4, "127.0.0.2", None, None),
    (IPV4, "0.0.0.0", None, None),
    (IPV4, "127.0.0.1", None, "127.0.0.9"),
    (IPV6, "::1", 0, None),
    (IPV6, "::", 0, None),
    (IPV6, "::1", 1, None),
    (IPV6, "::ffff:127.0.0.1", 0, None),
    (IPV6, "::1", 0, "::"),
    (IPV6, "::ffff:127.0.0.1", 0, "::"),
)


def open_socket(family, v6only, kind=socket.SOCK_STREAM):
    s = socket.socket(family, kind)
    s.settimeout(5)
    if v6only is not None:
        s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, v6only)
    return s


def talk(server, client, to):
    client.connect((to, server.getsockname()[1]))
    conn, peer = server.accept()
    with conn:
        client.sendall(b"x")
        assert conn.recv(1) == b"x"
        assert peer == conn.getpeername()
        return (f"client {client.getsockname()[0]} to {client.getpeername()[0]}, "
                f"server {conn.getsockname()[0]} from {peer[0]}")


def main(fixed):
    for port in (0, fixed):
        for name, family, addr, v6only in SERVERS:
            with open_socket(family, v6only) as server:
                server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                server.bind((addr, port))
                server.listen()
                what = f"{name} port {port}: at {server.getsockname()[0]}"
                for family, to, v6only, bound in CLIENTS:
                    with open_socket(family, v6only) as client:
                        if bound:
                            client.bind((bound, 0))
                            assert client.getsockname()[0] == bound
                        try:
                            seen = talk(server, client, to)
                        except OSError as e:
                            seen = e.strerror
                    print(f"{what}: {to} v6only {v6only} bound {bound}: {seen}")


def ask(server, client, to, connected):
    if connected:
        client.connect((to, server.getsockname()[1]))
        client.send(b"question")
    else:
        client.sendto(b"question", (to, server.getsockname()[1]))
    question, peer = server.recvfrom(100)
    server.sendto(b"answer to " + question, peer)
    assert client.recv(100) == b"answer to question"
    return "answered"


def datagrams(ports):
    for port in ports:
        for name, family, addr, v6only in SERVERS:
            with open_socket(family, v6only, socket.SOCK_DGRAM) as server:
                server.settimeout(0.2)
                server.bind((addr, port))
                time.sleep(0.1)  # one of both families is had by the other one then, too
                what = f"{name} port {port}: at {server.getsockname()[0]}"
                for family, to, v6only, bound in CLIENTS:
                    # (the answer to 127.0.0.2 comes from 127.0.0.1, and a connected one does not get it)
                    for connected in (False,) if to == "127.0.0.2" else (True, False):
                        with open_socket(family, v6only, socket.SOCK_DGRAM) as client:
                            if bound:
                                client.bind((bound, 0))
                            try:
                                seen = ask(server, client, to, connected)
                            except OSError as e:
                                seen = e.strerror or str(e)
                        how = "connect" if connected else "sendto"
                        print(f"{what}: {to} v6only {v6only} bound {bound} {how}: {seen}")


if sys.argv[2:] and sys.argv[2] == "udp":
    datagrams((0, int(sys.argv[1]), int(sys.argv[3])))
else:
    main(int(sys.argv[1]))
