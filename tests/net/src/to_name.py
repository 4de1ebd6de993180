# SPDX-License-Identifier: GPL-2.0-or-later
"""to_name.py NAME PORT [4|6]: what becomes of a connection to a name: "connected ADDRESS", or an
error's name. With "hold FIFO" behind it the connection then sends one line for each line that comes
by FIFO, and prints what comes back.
"""
import errno
import socket
import sys

FAMILIES = {"4": socket.AF_INET, "6": socket.AF_INET6}


def connect(name, port, family):
    try:
        found = socket.getaddrinfo(name, port, family, socket.SOCK_STREAM)
    except socket.gaierror as e:
        return None, "no name" if e.errno in (socket.EAI_NONAME, socket.EAI_NODATA) else str(e)
    s = socket.socket(found[0][0], socket.SOCK_STREAM)
    s.settimeout(10)
    try:
        s.connect(found[0][4])
    except TimeoutError:
        return None, "ETIMEDOUT"
    except OSError as e:
        return None, errno.errorcode[e.errno]
    return s, "connected " + found[0][4][0]


def main():
    family = FAMILIES[sys.argv[3]] if len(sys.argv) > 3 else socket.AF_INET
    s, what = connect(sys.argv[1], int(sys.argv[2]), family)
    print(what, flush=True)
    if len(sys.argv) <= 5 or not s:
        return
    while True:
        with open(sys.argv[5], encoding="ascii") as orders:
            for line in orders:
                s.sendall(line.encode())
                print("got", s.recv(100).decode().strip() or "the end", flush=True)


main()
