# SPDX-License-Identifier: GPL-2.0-or-later
"""foreign_fds.py SOCKET UID GID DIR: sends descriptors to the agent, as that user, whose close() takes as long as
somebody likes: sockets that linger, by themselves, with urgent data, in another socket, and not read when their sender goes; and a file
of FUSE, which is served from here, in DIR ("": none). Says "sent" after all. Ends with its input.
"""
import array
import ctypes
import os
import socket
import struct
import sys
import threading

path, uid, gid, directory = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]

LOOKUP, GETATTR, FORGET, OPEN, FLUSH, INIT = 1, 3, 2, 14, 25, 26


def attr(node):
    mode = 0o40755 if node == 1 else 0o100666
    return struct.pack("<6Q10I", node, 0, 0, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)


def serve(dev):
    while True:
        request = os.read(dev, 1 << 20)
        _, op, unique, node, _, _, pid = struct.unpack_from("<IIQQIII", request)
        error, out = 0, b""
        if op == INIT:
            out = struct.pack("<IIIIHHIIHHI28x", 7, 31, 0, 0, 1, 1, 4096, 1, 1, 0, 0)
        elif op == LOOKUP:
            out = struct.pack("<QQQQII", 2, 0, 3600, 0, 0, 0) + attr(2)
        elif op == GETATTR:
            out = struct.pack("<QII", 0, 0, 0) + attr(node)
        elif op == OPEN:
            out = struct.pack("<QII", 0, 0, 0)
        elif op == FLUSH and pid == os.getpid():
            pass
        elif op in (FORGET, FLUSH):  # the one has no answer, the other gets none
            continue
        else:
            error = -38
        os.write(dev, struct.pack("<IiQ", 16 + len(out), error, unique) + out)


def serve_or_end(dev):
    try:
        serve(dev)
    finally:
        os._exit(1)


def lingering():
    """A socket whose peer reads nothing, with more than that takes; and the peer."""
    listener = socket.create_server(("127.0.0.1", 0))
    s = socket.create_connection(listener.getsockname())
    peer = listener.accept()[0]
    s.setblocking(False)
    try:
        while True:
            s.send(b"x" * 65536)
    except BlockingIOError:
        pass
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 3600))
    return s, peer


def leave(s):
    """Closes it, beside: where the agent has done so before, it is this process that waits."""
    threading.Thread(target=s.close, daemon=True).start()


def send(s, data, fds, flags=0):
    try:
        s.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))], flags)
    except (BrokenPipeError, ConnectionResetError):
        pass  # the agent has had enough


def file_of_fuse():
    dev = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    libc = ctypes.CDLL(None, use_errno=True)
    options = f"fd={dev},rootmode=40000,user_id=0,group_id=0,allow_other".encode()
    if libc.mount(b"fuse", directory.encode(), b"fuse", 0, options):
        sys.exit(f"mount: {os.strerror(ctypes.get_errno())}")
    threading.Thread(target=serve_or_end, args=(dev,), daemon=True).start()
    return os.open(directory + "/file", os.O_RDWR)


held = file_of_fuse() if directory else -1
os.setgroups([])
os.setresgid(gid, gid, gid)
os.setresuid(uid, uid, uid)

peers = []


def client():
    c = socket.socket(socket.AF_UNIX)
    c.connect(path)
    return c


def send_lingering(to, data=b" ", flags=0):
    s, peer = lingering()
    peers.append(peer)
    send(to, data, [s.fileno()], flags)
    leave(s)


# by themselves, read by the agent
for _ in range(8):
    with client() as c:
        for _ in range(3):
            send_lingering(c)
# behind requests, which take their turns: not read when their sender goes
for _ in range(8):
    with client() as c:
        c.sendall(b'{"op":"get","what":"apps"}\n' * 200)
        send_lingering(c)
# with urgent data
for _ in range(8):
    with client() as c:
        send_lingering(c, flags=socket.MSG_OOB)
# in a socket, whose end is theirs; also in an empty datagram
for kind, data in ((socket.SOCK_STREAM, b" "), (socket.SOCK_DGRAM, b"")):
    with client() as c:
        a, b = socket.socketpair(socket.AF_UNIX, kind)
        send_lingering(a, data)
        a.close()
        send(c, b" ", [b.fileno()])
        b.close()
# many, but fewer than would have him refused
if held >= 0:
    with client() as c:
        send(c, b" ", [held] * 40)
    os.close(held)
print("sent", flush=True)
sys.stdin.read()
os._exit(0)
