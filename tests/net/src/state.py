# SPDX-License-Identifier: GPL-2.0-or-later
# Traffic for the test of rules that ask for a packet's state.
#
#   state.py answer ADDR PORT BYTES     UDP: answers each datagram with so many bytes
#   state.py ask ADDR PORT              prints how long the answer to a connected socket is
#   state.py take ADDR PORT             TCP: answers the end of what comes with how much it was
#   state.py give ADDR PORT BYTES       prints that answer
#   state.py talk ADDR PORT FILE        a line there and back, and, when FILE exists, another one
#   state.py echo ADDR PORT             TCP: what `talk` talks to
#   state.py ping ADDR 0                prints pong when an ICMP echo is answered
import os
import socket
import struct
import sys
import time


def family(addr):
    return socket.AF_INET6 if ":" in addr else socket.AF_INET


def server(kind, addr, port):
    s = socket.socket(family(addr), kind)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind((addr, port))
    if kind == socket.SOCK_STREAM:
        s.listen(8)
    print("ready", flush=True)
    return s


def client(kind, addr, port):
    s = socket.socket(family(addr), kind)
    s.settimeout(20 if kind == socket.SOCK_STREAM else 3)
    s.connect((addr, port))
    return s


def answer(addr, port, size):
    s = server(socket.SOCK_DGRAM, addr, port)
    while True:
        _, who = s.recvfrom(65535)
        s.sendto(b"x" * int(size), who)


def ask(addr, port):
    s = client(socket.SOCK_DGRAM, addr, port)
    s.send(b"?")
    print(len(s.recv(65535)))


def checksum(data):
    s = sum(data[i] << 8 | data[i + 1] for i in range(0, len(data), 2))
    while s >> 16:
        s = (s & 0xFFFF) + (s >> 16)
    return s ^ 0xFFFF


def ping(addr, _):
    v6 = ":" in addr
    ident = os.getpid() & 0xFFFF
    s = socket.socket(
        family(addr), socket.SOCK_RAW, socket.getprotobyname("ipv6-icmp" if v6 else "icmp")
    )
    s.settimeout(3)
    s.connect((addr, 0))
    ask = struct.pack("!BBHHH", 128 if v6 else 8, 0, 0, ident, 1)
    if not v6:
        ask = struct.pack("!BBHHH", 8, 0, checksum(ask), ident, 1)
    s.send(ask)
    while True:
        data = s.recv(2048)
        if not v6:
            data = data[(data[0] & 15) * 4 :]
        kind, _, _, who, _ = struct.unpack("!BBHHH", data[:8])
        if kind == (129 if v6 else 0) and who == ident:
            print("pong")
            return


def take(addr, port):
    s = server(socket.SOCK_STREAM, addr, port)
    while True:
        c, _ = s.accept()
        n = 0
        while data := c.recv(65536):
            n += len(data)
        c.sendall(str(n).encode())
        c.close()


def give(addr, port, size):
    s = client(socket.SOCK_STREAM, addr, port)
    s.sendall(b"x" * int(size))
    s.shutdown(socket.SHUT_WR)
    print(s.recv(64).decode())


def echo(addr, port):
    s = server(socket.SOCK_STREAM, addr, port)
    while True:
        c, _ = s.accept()
        while data := c.recv(65536):
            c.sendall(data)
        c.close()


def talk(addr, port, file):
    s = client(socket.SOCK_STREAM, addr, port)
    s.sendall(b"one")
    print(s.recv(64).decode(), flush=True)
    while not os.path.exists(file):
        time.sleep(0.05)
    s.sendall(b"two")
    print(s.recv(64).decode(), flush=True)


try:
    globals()[sys.argv[1]](sys.argv[2], int(sys.argv[3]), *sys.argv[4:])
except OSError as e:
    print(type(e).__name__)
