# SPDX-License-Identifier: GPL-2.0-or-later
"""lookups.py ADDRESS NAME COUNT

Asks the DNS server at ADDRESS COUNT times for a new name that ends in NAME, each once, with two
seconds for the answer. Prints "lost N of COUNT", where an answer without an address is lost, too.
"""
import os
import socket
import struct
import sys


def lookup(address, name, ident):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(2)
        s.connect((address, 53))
        question = b"".join(bytes([len(p)]) + p.encode() for p in name.split(".")) + b"\0"
        s.send(struct.pack("!HHHHHH", ident, 0x0100, 1, 0, 0, 0) + question + b"\0\1\0\1")
        try:
            answer = s.recv(4096)
        except OSError:
            return False
        return answer[3] & 15 == 0 and struct.unpack("!H", answer[6:8])[0] > 0


def main():
    address, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    lost = 0
    for i in range(count):
        full = "v%d-%d.%s" % (os.getpid(), i, name) if "." in name else name
        lost += not lookup(address, full, i)
    print("lost %d of %d" % (lost, count))


main()
