# SPDX-License-Identifier: GPL-2.0-or-later
"""Groups of sockets that share a port (SO_REUSEPORT), of TCP and UDP, on the dual-stack wildcard.

group.py PORT N: makes N of each, prints "N left:" and whether its own servers answer on loopback, and
serves. SIGUSR1 closes the newest of each, SIGUSR2 makes a new one and closes the oldest; then it prints
that line again.
"""
import select
import signal
import socket
import sys

port, wanted = int(sys.argv[1]), int(sys.argv[2])
groups = {socket.SOCK_STREAM: [], socket.SOCK_DGRAM: []}
wake_read, wake_write = socket.socketpair()
wake_write.setblocking(False)
signal.signal(signal.SIGUSR1, lambda *_: None)
signal.signal(signal.SIGUSR2, lambda *_: None)
signal.set_wakeup_fd(wake_write.fileno())


def add():
    for kind, group in groups.items():
        sock = socket.socket(socket.AF_INET6, kind)
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        sock.bind(("::", port))
        if kind == socket.SOCK_STREAM:
            sock.listen(16)
        group.append(sock)


def serve(timeout):
    """Answers who has come, until nobody does for so long; a signal's number, or None."""
    listeners, datagrams = groups.values()
    while True:
        ready = select.select([wake_read] + listeners + datagrams, [], [], timeout)[0]
        for sock in ready:
            if sock in listeners:
                sock.accept()[0].close()
            elif sock in datagrams:
                sock.sendto(b"here", sock.recvfrom(100)[1])
        if wake_read in ready:
            return wake_read.recv(1)[0]
        if not ready:
            return None


def answers(address):
    try:
        socket.create_connection((address, port), 5).close()
    except OSError as error:
        return type(error).__name__
    serve(0)
    return "ok"


for _ in range(wanted):
    add()
while True:
    left = len(groups[socket.SOCK_STREAM])
    print(f"{left} left:", *[f"{a} {answers(a)}" for a in ("127.0.0.1", "::1")], flush=True)
    number = serve(None)
    if number == signal.SIGUSR2:
        add()
    for group in groups.values():
        group.pop(0 if number == signal.SIGUSR2 else -1).close()
