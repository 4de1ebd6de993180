# SPDX-License-Identifier: GPL-2.0-or-later
"""syn.py HOW SOURCE NODE PORT SERVER SERVER_PORT NUMBER KEY ID

Sends a SYN by a raw socket, with the option by which nodes say whose a connection is, made from what its
format says and not by ax; and prints what is answered: "accepted", "refused", or "nothing" (in 1 s; in 10 s
where it would be an error). HOW: "good"; "mac", "number", "seq", "server" or "id": that is another one than was
signed; "short": without the last byte; "stolen": as good, though it may not; "none": without the option;
"extension" or "fragment": as good, behind such a header of IPv6.
"""
import random
import select
import socket
import struct
import sys
import time

MASK = (1 << 64) - 1


def rotate(x, bits):
    return ((x << bits) | (x >> (64 - bits))) & MASK


def siphash(key, data):
    """SipHash-2-4, as its authors describe it."""
    k0, k1 = struct.unpack("<QQ", key)
    v = [k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D, k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573]

    def rounds(n):
        for _ in range(n):
            v[0] = (v[0] + v[1]) & MASK
            v[1] = rotate(v[1], 13) ^ v[0]
            v[0] = rotate(v[0], 32)
            v[2] = (v[2] + v[3]) & MASK
            v[3] = rotate(v[3], 16) ^ v[2]
            v[0] = (v[0] + v[3]) & MASK
            v[3] = rotate(v[3], 21) ^ v[0]
            v[2] = (v[2] + v[1]) & MASK
            v[1] = rotate(v[1], 17) ^ v[2]
            v[2] = rotate(v[2], 32)

    padded = data + bytes(7 - len(data) % 8) + bytes([len(data) & 255])
    for (word,) in struct.iter_unpack("<Q", padded):
        v[3] ^= word
        rounds(2)
        v[0] ^= word
    v[2] ^= 255
    rounds(4)
    return struct.pack("<Q", v[0] ^ v[1] ^ v[2] ^ v[3])


# the example of the paper, appendix A
assert siphash(bytes(range(16)), bytes(range(15))) == bytes.fromhex("e545be4961ca29a1")


def checksum(data):
    data += bytes(len(data) % 2)
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total >> 16) + (total & 0xFFFF)
    return ~total & 0xFFFF


def packed(address):
    return socket.inet_pton(socket.AF_INET6 if ":" in address else socket.AF_INET, address)


def mapped(address):
    return packed(address) if ":" in address else bytes(10) + b"\xff\xff" + packed(address)


how, source, node, port, server, server_port, number, key, key_id = sys.argv[1:]
port, server_port, number, key_id = int(port), int(server_port), int(number), int(key_id)
seq, sport = random.getrandbits(32), random.randrange(20000, 30000)

signed = mapped(source) + mapped("10.1.2.3" if how == "server" else server)
signed += struct.pack(">HHHBB", sport, port, server_port, 1, key_id)
signed += struct.pack(">II", (seq + (how == "seq")) & 0xFFFFFFFF, number + (how == "number"))
mac = bytearray(siphash(bytes.fromhex(key), signed))
if how == "mac":
    mac[7] ^= 1
option = struct.pack(">BBHBBI", 253, 18, 0x6178, 1, key_id + (how == "id"), number) + mac
if how == "short":
    option = bytes([253, 17]) + option[2:17]
if how == "none":
    option = b""
options = struct.pack(">BBH", 2, 4, 1400) + b"\x01\x01" + option
options += bytes(-len(options) % 4)
header = struct.pack(">HHIIBBHHH", sport, port, seq, 0, (20 + len(options)) // 4 << 4, 2, 64000, 0, 0) + options
pseudo = packed(source) + packed(node) + struct.pack(">HH", 6, len(header))
header = header[:16] + struct.pack(">H", checksum(pseudo + header)) + header[18:]

family = socket.AF_INET6 if ":" in source else socket.AF_INET
raw = socket.socket(family, socket.SOCK_RAW, socket.IPPROTO_TCP)
raw.bind((source, 0))
out = raw
if how == "extension":
    raw.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_DSTOPTS, bytes([0, 0, 1, 4, 0, 0, 0, 0]))
if how == "fragment":
    out = socket.socket(family, socket.SOCK_RAW, 44)
    out.bind((source, 0))
    header = struct.pack(">BBHI", 6, 0, 0, seq) + header
out.sendto(header, (node, 0))
end = time.monotonic() + (10 if how in ("good", "none") else 1)
answer = "nothing"
while answer == "nothing" and select.select([raw], [], [], max(0, end - time.monotonic()))[0]:
    packet = raw.recv(2000)
    tcp = packet if ":" in source else packet[(packet[0] & 15) * 4 :]
    if tcp[:4] == struct.pack(">HH", port, sport):
        answer = "refused" if tcp[13] & 4 else "accepted" if tcp[13] & 18 == 18 else answer
print(answer)
