# SPDX-License-Identifier: GPL-2.0-or-later
"""Clients of the control socket that behave badly: clients.py SOCKET UID MODE ARGUMENT...

idle N             N connections that say nothing; prints how many were refused, holds the rest
flood LINE BYTES   one connection that sends LINE again and again, BYTES in all, and reads
deaf LINE BYTES N  the same on N connections, and reads nothing
try FILE N         N connections, each of which dry-runs the config FILE again and again
Each prints a line when it stands, and ends when its standard input does."""
import json, os, select, socket, sys, threading

path, uid, mode, rest = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4:]
if uid:
    os.setgroups([])
    os.setresgid(64999, 64999, 64999)
    os.setresuid(uid, uid, uid)


def connect():
    s = socket.socket(socket.AF_UNIX)
    s.connect(path)
    return s


def idle(n):
    held, refused, told = [], 0, set()
    for _ in range(n):
        s = connect()
        held.append(s)
    for s in held:
        if select.select([s], [], [], 0.02)[0]:
            told.add(s.recv(4096).decode(errors="replace"))
            refused += 1
    print(refused, "refused:", *told, flush=True)
    sys.stdin.read()


def write(s, text):
    try:
        s.sendall(text)
    except OSError:
        pass


def flood(line, size):
    s = connect()
    text = (line + "\n").encode()
    threading.Thread(target=write, args=(s, text * (size // len(text))), daemon=True).start()
    print("sends", flush=True)
    while True:
        if sys.stdin in select.select([s, sys.stdin], [], [])[0] or not s.recv(1 << 20):
            return


def deaf(line, size, n):
    text = (line + "\n").encode()
    held = [connect() for _ in range(n)]
    for s in held:
        s.settimeout(0.2)
        write(s, text * (size // len(text)))
    print("sent", flush=True)
    sys.stdin.read()


def dry_run(s, text):
    while True:
        write(s, text)
        answer = s.recv(1 << 20)
        while answer and not answer.endswith(b"\n"):
            answer = s.recv(1 << 20)
        if not answer:
            return


def try_(file, n):
    with open(file) as f:
        request = {"op": "apply", "text": f.read(), "dry_run": True}
    text = (json.dumps(request) + "\n").encode()
    for _ in range(n):
        threading.Thread(target=dry_run, args=(connect(), text), daemon=True).start()
    print("tries", flush=True)
    sys.stdin.read()


{"idle": lambda n: idle(int(n)), "try": lambda file, n: try_(file, int(n)),
 "flood": lambda line, size: flood(line, int(size)),
 "deaf": lambda line, size, n: deaf(line, int(size), int(n))}[mode](*rest)
