#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Files in the format jitdump, as perf's specification has it, by somebody else's hand:

  jitdump.py show FILE                    a line for each piece: PID TIME ADDRESS SIZE, and the number that
                                          the function at its beginning returns, if it is of jit.c
  jitdump.py write FILE PID:TIME:ADDRESS:HEX...  pieces with these bytes
"""
import struct
import sys


def number(code):
    if code[:1] == b"\xb8" and code[5:6] == b"\xc3":
        return struct.unpack("<I", code[1:5])[0]
    first, second = struct.unpack("<II", code[:8])
    if first & 0xFFE00000 == 0x52800000 and second == 0xD65F03C0:
        return first >> 5 & 0xFFFF
    return "-"


def show(path):
    with open(path, "rb") as f:
        data = f.read()
    magic, version, at = struct.unpack_from("<III", data)
    assert magic == 0x4A695444 and version == 1, path
    while at < len(data):
        kind, size, time = struct.unpack_from("<IIQ", data, at)
        assert kind == 0 and at + size <= len(data)
        pid, _, _, address, length, _ = struct.unpack_from("<IIQQQQ", data, at + 16)
        code = data[at + size - length : at + size]
        assert data[at + size - length - 1] == 0
        print(pid, time, hex(address), length, number(code))
        at += size


def write(path, pieces):
    with open(path, "wb") as f:
        f.write(struct.pack("<IIIIIIQQ", 0x4A695444, 1, 40, 62, 0, 1, 0, 0))
        for i, piece in enumerate(pieces):
            pid, time, address, code = piece.split(":")
            code = bytes.fromhex(code)
            name = b"made\0"
            f.write(struct.pack("<IIQ", 0, 56 + len(name) + len(code), int(time)))
            f.write(struct.pack("<IIQQQQ", int(pid), int(pid), int(address, 0), int(address, 0), len(code), i))
            f.write(name + code)


if sys.argv[1] == "show":
    show(sys.argv[2])
else:
    write(sys.argv[2], sys.argv[3:])
