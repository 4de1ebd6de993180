# SPDX-License-Identifier: GPL-2.0-or-later
"""segment.py send SOURCE DESTINATION FLAGS TEXT: a TCP segment of nobody's connection, by a raw
socket, from port 5555 to port 80; FLAGS is the byte as a number.
segment.py hear: prints the data of all segments that come to port 80 from port 5555.
"""
import socket
import struct
import sys


def checksum(data):
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack("!%dH" % (len(data) // 2), data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def send(source, destination, flags, text):
    family = socket.AF_INET6 if ":" in source else socket.AF_INET
    data = text.encode()
    header = struct.pack("!HHIIBBHHH", 5555, 80, 1, 1, 5 << 4, flags, 1000, 0, 0)
    ends = socket.inet_pton(family, source) + socket.inet_pton(family, destination)
    length = len(header) + len(data)
    pseudo = ends + (struct.pack("!BBH", 0, 6, length) if family == socket.AF_INET
                     else struct.pack("!II", length, 6))
    header = header[:16] + struct.pack("!H", checksum(pseudo + header + data)) + header[18:]
    with socket.socket(family, socket.SOCK_RAW, socket.IPPROTO_TCP) as s:
        s.bind((source, 0))
        s.sendto(header + data, (destination, 0))


def hear():
    with socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3)) as s:
        print("ready", flush=True)
        while True:
            packet, address = s.recvfrom(2048)
            if address[2] == socket.PACKET_OUTGOING:
                continue
            tcp = packet[(packet[0] & 15) * 4:] if packet[0] >> 4 == 4 else packet[40:]
            if len(tcp) >= 20 and tcp[:4] == struct.pack("!HH", 5555, 80):
                print(tcp[(tcp[12] >> 4) * 4:].decode(errors="replace"), flush=True)


if sys.argv[1] == "send":
    try:
        send(sys.argv[2], sys.argv[3], int(sys.argv[4]), sys.argv[5])
    except OSError as error:
        print(error)
else:
    hear()
