# SPDX-License-Identifier: GPL-2.0-or-later
"""stay.py ADDR TCP UDP: connects to both ports (0: not to that one) and asks every 50 ms; prints who answers when
it changes and errors, after which it connects anew by TCP; the datagrams are of one socket. Each 10th answer is a line."""
import errno, socket, sys, time
addr, ports = sys.argv[1], {"tcp": int(sys.argv[2]), "udp": int(sys.argv[3])}
family = socket.AF_INET6 if ":" in addr else socket.AF_INET
socks, names, answers = {}, {}, {"tcp": 0, "udp": 0}

def say(kind, text):
    if names.get(kind) != text:
        names[kind] = text
        print(kind, text, flush=True)

def answered(kind):
    answers[kind] += 1
    if answers[kind] % 10 == 0:
        print("still", kind, names[kind], flush=True)

def by_tcp():
    if "tcp" not in socks:
        s = socks["tcp"] = socket.socket(family, socket.SOCK_STREAM)
        s.settimeout(10)
        s.connect((addr, ports["tcp"]))
        say("tcp", s.recv(256).decode().split()[0])
    socks["tcp"].send(b"?\n")
    if not socks["tcp"].recv(256):
        raise ConnectionAbortedError(0, "closed")
    answered("tcp")

def by_udp():
    if "udp" not in socks:
        s = socks["udp"] = socket.socket(family, socket.SOCK_DGRAM)
        s.connect((addr, ports["udp"]))
        s.settimeout(0.2)
    socks["udp"].send(b"?\n")
    say("udp", socks["udp"].recv(256).decode().split()[0])
    answered("udp")

while True:
    if ports["tcp"]:
        try:
            by_tcp()
        except OSError as e:
            say("tcp", errno.errorcode.get(e.errno, "timeout"))
            socks.pop("tcp").close()
    if ports["udp"]:
        try:
            by_udp()
        except OSError:
            pass # lost, or refused: the same socket asks again
    time.sleep(0.05)
