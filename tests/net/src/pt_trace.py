#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes a perf.data with a trace of Intel PT that no processor made:

  pt_trace.py [--hole | --fork] FILE PROGRAM...

Each PROGRAM (its _start calls a function twice, and ends) ran once on CPU 2, one after the other, with
process numbers 100, 200, ... and a time of its own. With --hole the trace lacks a part, while
the first program runs; with --fork each process but the first is a child of the one before."""
import os
import struct
import subprocess
import sys

MMAP, FORK, ITRACE_START, SWITCH, MMAP2, INFO, AUXTRACE = 1, 7, 12, 15, 10, 70, 71
ID = 5


def u32(*v):
    return struct.pack(f"<{len(v)}I", *v)


def u64(*v):
    return struct.pack(f"<{len(v)}Q", *v)


def event(kind, body, misc=0):
    return struct.pack("<IHH", kind, misc, 8 + len(body)) + body


def sample_id(pid, time):
    return u32(pid, pid) + u64(time) + u32(2, 0) + u64(ID)


def text_of(program):
    """Where it is loaded executable, and where it begins."""
    out = subprocess.run(["readelf", "-hlW", program], check=True, capture_output=True, text=True).stdout
    segment = next(line.split() for line in out.splitlines() if " LOAD " in line and " R E " in line)
    entry = next(line.split()[-1] for line in out.splitlines() if "Entry point" in line)
    return int(segment[1], 16), int(segment[2], 16), int(segment[5], 16), int(entry, 16)


def mapped(pid, program, time):
    offset, address, size, _ = text_of(program)
    name = os.path.realpath(program).encode() + b"\0"
    name += b"\0" * (-len(name) % 8)
    return event(MMAP2, u32(pid, pid) + u64(address, size, offset) + u32(8, 1) + u64(7, 1) + u32(5, 2) + name +
                 sample_id(pid, time))


PSB = b"\x02\x82" * 8 + b"\x19" + u64(1000)[:7] + b"\x02\x23"


def begins(i, program):
    out = b"\x19" + u64(1000 * (i + 1))[:7]  # TSC
    out += b"\x99\x01"  # MODE.Exec: 64 bits
    return out + b"\x71" + u64(text_of(program)[3])[:6]  # TIP.PGE


# TNT: a return, a jump, a return taken; the last jump not. TIP.PGD: into the kernel
ENDS = bytes([0b111100]) + b"\x01"


def trace(programs):
    return PSB + b"".join(begins(i, program) + ENDS for i, program in enumerate(programs))


def piece(bytes_, offset):
    return event(AUXTRACE, u64(len(bytes_), offset, 0) + struct.pack("<IiIi", 0, -1, 2, 0)) + bytes_


def pieces(programs, hole):
    if not hole:
        return piece(trace(programs), 0)
    first = PSB + begins(0, programs[0])
    rest = ENDS + PSB + b"".join(begins(i, program) + ENDS for i, program in list(enumerate(programs))[1:])
    return piece(first, 0) + piece(rest, 4096)


def main():
    hole, fork = sys.argv[1] == "--hole", sys.argv[1] == "--fork"
    path, *programs = sys.argv[1 + hole + fork:]
    info = [6, 0, 1, 0, 1] + [0] * 12  # time is the TSC
    data = event(INFO, u32(1, 0) + u64(*info))
    data += event(ITRACE_START, u32(100, 100) + sample_id(100, 900))
    for i, program in enumerate(programs):
        pid, time = 100 * (i + 1), 1000 * (i + 1)
        if fork and i:
            data += event(FORK, u32(pid, pid - 100, pid, pid - 100) + u64(time - 60) + sample_id(pid - 100, time - 60))
        data += mapped(pid, program, time - 50)
        data += event(SWITCH, u32(1, 1) + sample_id(pid, time - 10))
    data += pieces(programs, hole)
    attr = u32(6, 112) + u64(0, 1, 1 << 1 | 1 << 2 | 1 << 7 | 1 << 16, 4, 1 | 1 << 18)
    attr += b"\0" * (112 - len(attr))
    ids = 104 + 128
    header = u64(0x32454C4946524550, 104, 128, 104, 128, ids + 8, len(data)) + b"\0" * 48
    with open(path, "wb") as f:
        f.write(header + attr + u64(ids, 8) + u64(ID) + data)


main()
