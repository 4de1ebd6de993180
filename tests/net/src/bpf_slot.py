# SPDX-License-Identifier: GPL-2.0-or-later
# Reads an entry of the pinned map of captures' latest payloads as any other program may: under its
# spin lock (BPF_F_LOCK).   bpf_slot.py MAP INDEX  prints: length count payload-in-hex
import ctypes
import os
import platform
import struct
import sys

BPF_MAP_LOOKUP_ELEM, BPF_OBJ_GET, BPF_F_LOCK = 1, 7, 4
SYS_bpf = {"x86_64": 321, "aarch64": 280}[platform.machine()]
libc = ctypes.CDLL(None, use_errno=True)


def bpf(cmd, *fields):
    attr = ctypes.create_string_buffer(struct.pack("=" + "".join(f[0] for f in fields),
                                                   *[f[1] for f in fields]).ljust(128, b"\0"))
    r = libc.syscall(SYS_bpf, cmd, attr, 128)
    if r < 0:
        sys.exit("bpf(%d): %s" % (cmd, os.strerror(ctypes.get_errno())))
    return r


path = ctypes.create_string_buffer(sys.argv[1].encode())
fd = bpf(BPF_OBJ_GET, ("Q", ctypes.addressof(path)), ("I", 0), ("I", 0))
key = ctypes.create_string_buffer(struct.pack("=I", int(sys.argv[2])))
value = ctypes.create_string_buffer(280)  # struct ax_slot
bpf(BPF_MAP_LOOKUP_ELEM, ("I", fd), ("I", 0), ("Q", ctypes.addressof(key)),
    ("Q", ctypes.addressof(value)), ("Q", BPF_F_LOCK))
lock, length, when, count = struct.unpack("=IIQQ", value.raw[:24])
print(length, count, value.raw[24:24 + length].hex())
