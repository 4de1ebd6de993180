# SPDX-License-Identifier: GPL-2.0-or-later
"""How long others wait: stall.py SOCKET DNS_ADDRESS NAME UNTIL PID

Asks the agent's socket and its DNS server in turn, until the file UNTIL exists; prints the longest
wait of each in milliseconds, how long it was without what the agent (PID) and this program waited
for a processor that others had, and how often they were asked."""
import os, socket, struct, sys, time

path, dns, name, until, pid = sys.argv[1:]
agent = socket.socket(socket.AF_UNIX)
agent.connect(path)
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
udp.settimeout(60)
udp.connect((dns, 53))
query = struct.pack(">HHHHHH", 1, 0x100, 1, 0, 0, 0) + b"".join(
    bytes([len(p)]) + p.encode() for p in name.split(".")) + b"\0" + struct.pack(">HH", 1, 1)


def request():
    agent.sendall(b'{"op":"logs","app":"nobody"}\n')
    while not agent.recv(65536).endswith(b"\n"):
        pass


def lookup():
    udp.send(query)
    udp.recv(4096)


def queued():
    """Seconds that the agent's loop and we could have run, but did not."""
    ns = 0
    for task in f"/proc/{pid}/task/{pid}", "/proc/self":
        with open(task + "/schedstat") as f:
            ns += int(f.read().split()[1])
    return ns / 1e9


waits = {request: [], lookup: []}
print("asks", flush=True)
while not os.path.exists(until):
    for ask, seen in waits.items():
        others, before = queued(), time.monotonic()
        ask()
        waited = time.monotonic() - before
        seen.append((max(waited - (queued() - others), 0), waited))
    time.sleep(0.001)
for ask, seen in waits.items():
    held = max(s[0] for s in seen)
    late = sum(1 for s in seen if s[1] > 0.05)
    print(f"{ask.__name__} {max(s[1] for s in seen) * 1000:.0f} ms, by the agent {held * 1000:.0f} ms, "
          f"of {len(seen)}, {late} above 50 ms")
