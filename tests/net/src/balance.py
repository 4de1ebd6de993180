# SPDX-License-Identifier: GPL-2.0-or-later
"""What the balancer's test needs behind it and in front of it.

balance.py echo PORT                 sends UDP datagrams back, over both families
balance.py ask HOST PORT SIZE N      sends N of them; says how many came back whole
balance.py keep HOST PORT N DIR      N HTTP connections that stay; for each DIR/go.R (R = 1, 2 ...)
                                     asks on all of them and writes the answers to DIR/round.R
balance.py serve NAME PORT           TCP and UDP over both families: a line with a number is answered by
                                     NAME, the peer's address, and over TCP so many bytes
balance.py query tcp|udp HOST PORT BYTES N [SOURCE]
                                     asks N times, from that address; one line for each answer
balance.py ping HOST                 three times; says how often there was an answer
balance.py decap ipip|gue            takes packets out of tunnels and gives them to this host
"""
import fcntl
import os
import select
import socket
import struct
import sys
import threading
import time


def echo(port):
    s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    s.bind(("::", int(port)))
    while True:
        data, peer = s.recvfrom(65535)
        s.sendto(data, peer)


def ask(host, port, size, n):
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    whole = 0
    for _ in range(int(n)):
        with socket.socket(family, socket.SOCK_DGRAM) as s:
            s.settimeout(3)
            s.connect((host, int(port)))
            data = os.urandom(int(size))
            try:
                s.send(data)
                whole += s.recv(65535) == data
            except OSError as e:
                print(e, file=sys.stderr)
    print(whole)


def serve_tcp(s, name):
    while True:
        conn, peer = s.accept()
        threading.Thread(target=serve_one, args=(conn, peer, name), daemon=True).start()


def serve_one(conn, peer, name):
    with conn, conn.makefile("rb") as f:
        for line in f:
            conn.sendall(f"{name} {peer[0]}\n".encode() + bytes(int(line)))


def serve_udp(s, name):
    while True:
        data, peer = s.recvfrom(65535)
        s.sendto(f"{name} {peer[0]}\n".encode() + data, peer)


def serve(name, port):
    for family, any_addr in ((socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::")):
        for kind, run in ((socket.SOCK_DGRAM, serve_udp), (socket.SOCK_STREAM, serve_tcp)):
            s = socket.socket(family, kind)
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            s.bind((any_addr, int(port)))
            if kind == socket.SOCK_STREAM:
                s.listen(1024)
            threading.Thread(target=run, args=(s, name), daemon=True).start()
    print("serving", flush=True)
    threading.Event().wait()


def query_one(kind, host, port, size, source):
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    kind = socket.SOCK_STREAM if kind == "tcp" else socket.SOCK_DGRAM
    with socket.socket(family, kind) as s:
        s.settimeout(3)
        if source:
            s.bind((source, 0))
        s.connect((host, port))
        if kind == socket.SOCK_DGRAM:
            s.send(bytes(size))
            return s.recv(65535)
        s.sendall(b"%d\n" % size)
        s.shutdown(socket.SHUT_WR)
        with s.makefile("rb") as f:
            return f.read()


def query(kind, host, port, size, n, source=None):
    for _ in range(int(n)):
        try:
            got = query_one(kind, host, int(port), int(size), source)
            line, rest = got.split(b"\n", 1)
            whole = "whole" if len(rest) == int(size) else f"{len(rest)} bytes"
            print(line.decode(), whole)
        except (OSError, ValueError) as e:
            print("none", e)
            break


def ping(host):
    got = 0
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, 1) as s:
        s.settimeout(2)
        s.connect((host, 0))
        for i in range(3):
            checksum = 0xFFFF - (0x0800 + 0x1234 + i)
            s.send(struct.pack("!BBHHH", 8, 0, checksum, 0x1234, i))
            try:
                got += s.recv(100)[20] == 0
            except OSError as e:
                print(e, file=sys.stderr)
    print(got)


def one_answer(s):
    """The body's line, or the error's name."""
    try:
        s.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        got = b""
        while b"\r\n\r\n" not in got:
            got += s.recv(4096) or b"closed\n\r\n\r\n"
        body = got.split(b"\r\n\r\n", 1)[1]
        while not body.endswith(b"\n"):
            more = s.recv(4096)
            if not more:
                break
            body += more
        return body.decode().split(" ")[0].strip() or "closed"
    except OSError as e:
        return type(e).__name__


def keep(host, port, n, where):
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    socks, r = [], 1
    for _ in range(int(n)):
        s = socket.socket(family, socket.SOCK_STREAM)
        s.settimeout(3)
        s.connect((host, int(port)))
        socks.append(s)
    while True:
        while not os.path.exists(f"{where}/go.{r}"):
            time.sleep(0.02)
        with open(f"{where}/new", "w") as f:
            f.write("".join(one_answer(s) + "\n" for s in socks))
        os.rename(f"{where}/new", f"{where}/round.{r}")
        r += 1


def vnet_header(packet):
    """GRO looks into IPIP and joins TCP packets, whose checksum it leaves to be finished."""
    v6 = packet[0] >> 4 == 6
    if packet[6 if v6 else 9] != socket.IPPROTO_TCP:
        return bytes(10)
    return struct.pack("=BBHHHH", 1, 0, 0, 0, 40 if v6 else (packet[0] & 15) * 4, 16)


def decap(kind):
    tun = os.open("/dev/net/tun", os.O_RDWR)
    # TUNSETIFF, TUN | NO_PI | VNET_HDR
    fcntl.ioctl(tun, 0x400454CA, struct.pack("16sH", b"decap", 0x5001))
    os.system("ip link set decap up")
    if kind == "gue":
        socks = [socket.socket(f, socket.SOCK_DGRAM) for f in (socket.AF_INET, socket.AF_INET6)]
        socks[1].setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        socks[0].setsockopt(socket.SOL_SOCKET, 11, 1)  # SO_NO_CHECK
        socks[1].setsockopt(socket.IPPROTO_UDP, 102, 1)  # UDP_NO_CHECK6_RX
        socks[0].bind(("0.0.0.0", 6080))
        socks[1].bind(("::", 6080))
    else:
        socks = [
            socket.socket(socket.AF_INET, socket.SOCK_RAW, 4),
            socket.socket(socket.AF_INET6, socket.SOCK_RAW, 41),
        ]
    print("listening", flush=True)
    while True:
        for s in select.select(socks, [], [])[0]:
            data = s.recv(65535)
            if kind == "ipip" and s.family == socket.AF_INET:
                data = data[(data[0] & 15) * 4 :]  # raw IPv4 sockets show the outer header
            os.write(tun, vnet_header(data) + data)


{
    "echo": echo,
    "ask": ask,
    "serve": serve,
    "query": query,
    "ping": ping,
    "keep": keep,
    "decap": decap,
}[sys.argv[1]](*sys.argv[2:])
