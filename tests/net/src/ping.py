# SPDX-License-Identifier: GPL-2.0-or-later
"""ping.py raw|dgram|sendto ADDRESS...: for each, what becomes of an echo request by such a socket (sendto: a dgram
one that is not connected): "answered", the name of an error, or "nothing" if none comes in 10 s.
"""
import errno
import socket
import struct
import sys

IP_RECVERR = 11
IPV6_RECVERR = 25


def checksum(data):
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    total = (total >> 16) + (total & 0xFFFF)
    return ~(total + (total >> 16)) & 0xFFFF


def ping(kind, address):
    six = ":" in address
    try:
        s = socket.socket(
            socket.AF_INET6 if six else socket.AF_INET,
            socket.SOCK_RAW if kind == "raw" else socket.SOCK_DGRAM,
            socket.IPPROTO_ICMPV6 if six else socket.IPPROTO_ICMP,
        )
    except OSError as e:
        return errno.errorcode[e.errno]
    s.settimeout(10)
    if six:
        s.setsockopt(socket.IPPROTO_IPV6, IPV6_RECVERR, 1)
    else:
        s.setsockopt(socket.IPPROTO_IP, IP_RECVERR, 1)
    data = struct.pack(">BBHHH32s", 128 if six else 8, 0, 0, 4711, 1, b"x" * 32)
    if not six:
        data = data[:2] + struct.pack(">H", checksum(data)) + data[4:]
    try:
        # (of raw ones the kernel tells only errors of what they are connected to)
        if kind == "sendto":
            s.sendto(data, (address, 0))
        else:
            s.connect((address, 0))
            s.send(data)
        while True:
            got = s.recv(2000)
            if got[20 if kind == "raw" and not six else 0] in (0, 129):
                return "answered"
    except TimeoutError:
        return "nothing"
    except OSError as e:
        return errno.errorcode[e.errno]


for to in sys.argv[2:]:
    print(ping(sys.argv[1], to), flush=True)
