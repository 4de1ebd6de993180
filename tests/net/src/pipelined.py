# SPDX-License-Identifier: GPL-2.0-or-later
"""Requests one behind the other: pipelined.py SOCKET

Asks for long lists and short ones without waiting for an answer, and prints which came in what order;
then goes away in the middle of some, and says how a new client fares."""
import json, socket, sys, time

ORDER = ["services", "apps", "names", "apps", "services"]


def ask(n=1):
    s = socket.socket(socket.AF_UNIX)
    s.connect(sys.argv[1])
    for what in ORDER * n:
        s.sendall(json.dumps({"op": "get", "what": what}).encode() + b"\n")
    # a request that is long itself, whose answer comes after the others'
    s.sendall(json.dumps({"op": "logs", "app": "x" * 200000}).encode() + b"\n")
    return s


came = []
for line in ask().makefile("rb"):
    answer = json.loads(line)
    came.append(next((k for k in answer if k in ORDER), "error"))
    if len(came) == len(ORDER) + 1:
        break
print(" ".join(came))
for pause in range(20):
    gone = ask(3)
    time.sleep(pause / 100)
    gone.close()
print("ok" if ask().recv(1) else "closed")
