# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs outside ax that use services with private backends, and the backends themselves.

service_ports.py serve PORT              answers each line with who asked (TCP); each datagram too
service_ports.py mix SERVICE BACKEND N   N connections from few ports, to one and the other in turn
                                         and both at once; says how many got a wrong answer
service_ports.py every BACKEND A B       a connection from each port from A to B that is free: how
                                         many had no answer, and whether it were more than half
service_ports.py keep SERVICE N GO       N connections; asks on each again once the file GO is there
service_ports.py datagrams TO N          to N ports there
service_ports.py syns SERVICE N          N SYNs from addresses of nobody

SERVICE and BACKEND are ADDRESS:PORT.
"""
import errno
import os
import socket
import struct
import sys
import threading
import time


def endpoint(text):
    addr, port = text.rsplit(":", 1)
    return addr, int(port)


def family_of(addr):
    return socket.AF_INET6 if ":" in addr else socket.AF_INET


def serve_one(conn, peer):
    with conn, conn.makefile("rb") as f:
        for _ in f:
            conn.sendall(f"{peer[0]}\n".encode())


def serve_udp(s):
    while True:
        _, peer = s.recvfrom(65535)
        s.sendto(f"{peer[0]}\n".encode(), peer)


def serve(port):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind(("0.0.0.0", int(port)))
    threading.Thread(target=serve_udp, args=(s,), daemon=True).start()
    with socket.create_server(("0.0.0.0", int(port)), backlog=4096) as s:
        while True:
            threading.Thread(target=serve_one, args=s.accept(), daemon=True).start()


def connect(to, port):
    """From that port of ours, which may have another connection that goes elsewhere."""
    s = socket.socket(family_of(to[0]), socket.SOCK_STREAM)
    s.settimeout(5)
    if port:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        s.bind(("", port))
    s.connect(to)
    return s


def ask(s):
    s.sendall(b"x\n")
    return s.recv(100).endswith(b"\n")


def one(to, port):
    with connect(to, port) as s:
        return ask(s)


def own_ports(n):
    """Ports that nobody has, below those that the kernel gives to whoever connects."""
    found = []
    port = 10000 + os.getpid() % 10000
    while len(found) < n:
        with socket.socket() as s:
            try:
                s.bind(("", port))
                found.append(port)
            except OSError:
                pass
        port += 1
    return found


def mix(service, backend, n):
    service, backend = endpoint(service), endpoint(backend)
    ports = own_ports(7)
    wrong = 0
    for i in range(int(n)):
        port = ports[i % 7]
        try:
            if i % 3:
                wrong += not one(service if i % 2 else backend, port)
                continue
            first, second = (service, backend) if i % 2 else (backend, service)
            with connect(first, port) as s, connect(second, port) as t:
                wrong += not (ask(s) and ask(t) and ask(s))
        except OSError as e:
            print(i, e, file=sys.stderr)
            wrong += 1
    print(wrong)


def every(backend, first, last):
    backend = endpoint(backend)
    wrong = made = 0
    for port in range(int(first), int(last) + 1):
        try:
            made += one(backend, port)
        except OSError as e:
            if e.errno != errno.EADDRINUSE:
                print(port, e, file=sys.stderr)
                wrong += 1
    print(wrong, made > (int(last) - int(first)) // 2)


def keep(service, n, go):
    socks = [connect(endpoint(service), 0) for _ in range(int(n))]
    print(sum(ask(s) for s in socks), flush=True)
    while not os.path.exists(go):
        time.sleep(0.05)
    for s in socks:
        try:
            s.sendall(b"x\n")
        except OSError:
            pass
    good = 0
    until = time.monotonic() + 20  # for all of them: whoever lives answers, also on a busy machine
    for s in socks:
        s.settimeout(max(0.1, until - time.monotonic()))
        try:
            good += s.recv(100).endswith(b"\n")
        except OSError:
            pass
    print(good)


def datagrams(to, n):
    s = socket.socket(family_of(to), socket.SOCK_DGRAM)
    for i in range(int(n)):
        for _ in range(2):  # once more, so that it looks used
            s.sendto(b"x", (to, 1 + i % 65535))


def checksum(data):
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    total = (total >> 16) + (total & 0xFFFF)
    return ~(total + (total >> 16)) & 0xFFFF


def syns(service, n):
    addr, port = endpoint(service)
    dst = socket.inet_aton(addr)
    s = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
    for i in range(int(n)):
        src = struct.pack("!I", 0xCB007100 + i % 200 + 1)
        tcp = struct.pack("!HHIIBBHHH", 1024 + i // 200, port, i, 0, 0x50, 2, 8192, 0, 0)
        check = checksum(src + dst + struct.pack("!HH", 6, 20) + tcp)
        tcp = tcp[:16] + struct.pack("!H", check) + tcp[18:]
        ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 40, 0, 0, 64, 6, 0, src, dst)
        s.sendto(ip + tcp, (addr, 0))


{"serve": serve, "mix": mix, "every": every, "keep": keep, "datagrams": datagrams, "syns": syns}[sys.argv[1]](*sys.argv[2:])
