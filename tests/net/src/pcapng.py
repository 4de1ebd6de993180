# SPDX-License-Identifier: GPL-2.0-or-later
# Reads a pcapng file by the draft's text (draft-ietf-opsawg-pcapng) and nothing else, and prints
# what is in it, a line for each block. Whatever is not as the draft has it ends it with an error.
#
#   pcapng.py FILE           lines
#   pcapng.py FILE frames    the packets' bytes in hex, one a line
import struct
import sys

NAMES = {0x0A0D0D0A: "section", 1: "interface", 6: "packet", 5: "statistics"}
DIRECTIONS = ["unknown", "in", "out"]


def options(data):
    found, at = {}, 0
    while at < len(data):
        number, n = struct.unpack_from("=HH", data, at)
        if number == 0:
            assert n == 0 and at + 4 == len(data), "something behind the last option"
            return found
        value = data[at + 4:at + 4 + n]
        padding = data[at + 4 + n:at + 4 + (n + 3) // 4 * 4]
        assert len(value) == n and not any(padding), "option %d" % number
        assert number not in found, "option %d twice" % number
        found[number] = value
        at += 4 + (n + 3) // 4 * 4
    assert False, "options without an end"


def number(value, size):
    assert len(value) == size, value
    return int.from_bytes(value, sys.byteorder)


def when(high, low):
    return high << 32 | low


def packet(body, interfaces):
    interface, high, low, captured, original = struct.unpack_from("=IIIII", body)
    name, snap = interfaces[interface]
    data = body[20:20 + captured]
    o = options(body[20 + (captured + 3) // 4 * 4:])
    assert len(data) == captured <= min(original, snap)
    verdict = "-"
    if 7 in o:
        assert len(o[7]) == 9 and o[7][0] == 2, "a verdict of XDP"
        verdict = number(o[7][1:], 8)
    return data, when(high, low), [
        name, DIRECTIONS[number(o[2], 4) & 3], "id", number(o[5], 8), "queue", number(o[6], 4),
        "%d of %d" % (captured, original), "xdp", verdict, "|", o.get(1, b"-").decode()]


def blocks(f):
    at = 0
    while at < len(f):
        kind, length = struct.unpack_from("=II", f, at)
        assert length % 4 == 0 and length >= 12 and at + length <= len(f), "length of a block"
        assert struct.unpack_from("=I", f, at + length - 4)[0] == length, "its length again"
        yield NAMES[kind], f[at + 8:at + length - 4]
        at += length
    assert at == len(f)


def main():
    interfaces, started = [], False
    for kind, body in blocks(open(sys.argv[1], "rb").read()):
        line, data = [], None
        if kind == "section":
            assert not started and struct.unpack_from("=IHHq", body) == (0x1A2B3C4D, 1, 0, -1)
            o, started = options(body[16:]), True
            line = [o[3].decode(), o[4].decode()]
        elif kind == "interface":
            link, zero, snap = struct.unpack_from("=HHI", body)
            o = options(body[8:])
            assert zero == 0 and o[9] == b"\x09", "nanoseconds"
            interfaces.append((o[2].decode(), snap))
            line = [o[2].decode(), "link", link, "snap", snap, "filter", o.get(11, b"\0-")[1:].decode()]
        elif kind == "packet":
            data, time, line = packet(body, interfaces)
            assert 1600000000 < time / 1e9 < 4000000000, "the time is in nanoseconds"
        else:
            interface, high, low = struct.unpack_from("=III", body)
            o = options(body[12:])
            assert when(*struct.unpack("=II", o[2])) <= when(*struct.unpack("=II", o[3])) == when(high, low)
            line = [interfaces[interface][0], "received", number(o[4], 8), "dropped", number(o[7], 8)]
        if len(sys.argv) == 2:
            print(kind, *line)
        elif data is not None:
            print(data.hex())


main()
