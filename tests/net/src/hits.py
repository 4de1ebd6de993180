# SPDX-License-Identifier: GPL-2.0-or-later
"""Which backends of a service the connections go to.

hits.py serve ADDR PORT [NAME]   answers each connection with NAME, or else with the address where it
                                 was reached; resets it if "reset" is asked. Says "accepted" of each.
hits.py ask ADDR N [WORD]        N connections to port 80, one after the other, each of which asks
                                 WORD ("hello"), but with "abort" resets itself; says how often each
                                 backend has answered, and each error came
"""
import collections
import errno
import socket
import struct
import sys


def reset(s):
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def serve(addr, port, name=None):
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind((addr, int(port)))
    s.listen(256)
    while True:
        c, _ = s.accept()
        print("accepted", flush=True)
        try:
            c.settimeout(5)
            if c.recv(100) == b"reset\n":
                reset(c)
            else:
                c.sendall((name or c.getsockname()[0]).encode() + b"\n")
        except OSError:
            pass
        c.close()


def ask(addr, n, word="hello"):
    got = collections.Counter()
    for _ in range(int(n)):
        try:
            s = socket.create_connection((addr, 80), 10)
            if word == "abort":
                reset(s)
            else:
                s.sendall(word.encode() + b"\n")
                got[s.recv(100).decode().strip()] += 1
            s.close()
        except OSError as e:
            got[errno.errorcode.get(e.errno, str(e))] += 1
    print(" ".join("%s=%d" % x for x in sorted(got.items())))


{"serve": serve, "ask": ask}[sys.argv[1]](*sys.argv[2:])
