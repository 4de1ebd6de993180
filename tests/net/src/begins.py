# SPDX-License-Identifier: GPL-2.0-or-later
"""A server that begins to listen at one port after another, and a client that connects at those very moments.

    begins.py listen START N             from that moment of the monotonic clock on, a port every 20 ms
    begins.py close START N              those are the moments at which it listens no more; soon it does again
    begins.py connect START N HOST...    prints "tries T", and "HOST: ERROR" for each that failed

Both go by the same clock: what is looked at is a window of some microseconds in which a server is known and its
socket is not to be found yet, or the other way round.
"""
import errno
import select
import socket
import sys
import time

FIRST = 20000
EVERY = 0.02
WITHIN = 5
AROUND = 0.0015


def until(moment):
    while time.monotonic() < moment - 0.003:
        time.sleep(0.001)
    while time.monotonic() < moment:
        pass


def listen(start, n):
    held = []
    for i in range(n):
        s = socket.socket(socket.AF_INET6)
        s.bind(("::", FIRST + i))
        until(start + i * EVERY)
        s.listen(1024)
        held.append(s)
        if i >= 100:  # who is late on a busy machine finds it yet
            held.pop(0).close()
    time.sleep(1)


def listener(port):
    s = socket.socket(socket.AF_INET6)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind(("::", port))
    s.listen(1024)
    return s


def close(start, n):
    held = []
    first = [listener(FIRST + i) for i in range(n)]
    print("listening", flush=True)
    for i, s in enumerate(first):
        until(start + i * EVERY)
        s.close()
        time.sleep(0.01)
        held.append(listener(FIRST + i))
    time.sleep(WITHIN + 1)


def begin(host, port):
    s = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    s.setblocking(False)
    return s, s.connect_ex((host, port))


def ends(tries, within):
    """How each of them ends, in the order in which they were begun."""
    end = time.monotonic() + within
    poll = select.poll()
    open_ = {s.fileno(): (host, s) for host, s, r in tries if r == errno.EINPROGRESS}
    for host, s, r in tries:
        if r not in (0, errno.EINPROGRESS):
            yield host, r
    for fd in open_:
        poll.register(fd, select.POLLOUT)
    while open_ and time.monotonic() < end:
        for fd, _ in poll.poll(100):
            host, s = open_.pop(fd)
            poll.unregister(fd)
            yield host, s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    for host, s in open_.values():
        yield host, errno.ETIMEDOUT


def connect(start, n, hosts):
    total = 0
    for i in range(n):
        moment = start + i * EVERY
        if time.monotonic() > moment - AROUND:
            continue
        until(moment - AROUND)
        tries = []
        while time.monotonic() < moment + AROUND:
            for host in hosts:
                tries.append((host, *begin(host, FIRST + i)))
        total += len(tries)
        for host, r in ends(tries, WITHIN):
            if r:
                print(f"{host}: {errno.errorcode[r]}")
        for _, s, _ in tries:
            s.close()
    print("tries", total)


if __name__ == "__main__":
    if sys.argv[1] == "listen":
        listen(float(sys.argv[2]), int(sys.argv[3]))
    elif sys.argv[1] == "close":
        close(float(sys.argv[2]), int(sys.argv[3]))
    else:
        connect(float(sys.argv[2]), int(sys.argv[3]), sys.argv[4:])
