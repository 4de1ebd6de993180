# SPDX-License-Identifier: GPL-2.0-or-later
# A name server for tests: named.py ADDRESS. Whatever is asked for, by UDP or TCP, is 192.0.2.1.
import socket
import struct
import sys
import threading


def answer(query):
    at = 12
    while query[at]:
        at += 1 + query[at]
    question = query[12 : at + 5]
    head = query[:2] + struct.pack("!HHHHH", 0x8400, 1, 1, 0, 0)
    return head + question + b"\xc0\x0c" + struct.pack("!HHIH", 1, 1, 5, 4) + bytes((192, 0, 2, 1))


def read(conn, n):
    data = b""
    while len(data) < n:
        more = conn.recv(n - len(data))
        if not more:
            raise EOFError
        data += more
    return data


def one(conn):
    try:
        reply = answer(read(conn, struct.unpack("!H", read(conn, 2))[0]))
        conn.sendall(struct.pack("!H", len(reply)) + reply)
    except (EOFError, OSError, IndexError):
        pass
    conn.close()


def tcp(server):
    while True:
        conn, _ = server.accept()
        threading.Thread(target=one, args=(conn,), daemon=True).start()


def main():
    family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
    udp = socket.socket(family, socket.SOCK_DGRAM)
    udp.bind((sys.argv[1], 53))
    server = socket.create_server((sys.argv[1], 53), family=family)
    threading.Thread(target=tcp, args=(server,), daemon=True).start()
    while True:
        data, who = udp.recvfrom(65535)
        try:
            udp.sendto(answer(data), who)
        except IndexError:
            pass


main()
