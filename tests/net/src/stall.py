# SPDX-License-Identifier: GPL-2.0-or-later
"""How long others wait: stall.py SOCKET DNS_ADDRESS NAME UNTIL PID [ADDRESS PORT]

Asks the agent's socket and its DNS server in turn, until the file UNTIL exists; prints the longest
wait of each in milliseconds, how long it was without what the agent (PID) and this program waited
for a processor that others had, and how often they were asked. With the address of an app it also
connects to that, and is told of it as an event: that comes within the time between two looks at
what the programs tell, and what it comes later is the agent's. It fails if somebody got no answer,
and does not end before each has got one."""
import json, os, select, socket, struct, sys, time

FETCH = 0.05  # between two looks (FETCH_MS in agent/registry/events.c)
LONGEST = 60  # nothing takes so long

path, dns, name, until, pid = sys.argv[1:6]
app = (sys.argv[6], int(sys.argv[7])) if len(sys.argv) > 6 else None
query = struct.pack(">HHHHHH", 1, 0x100, 1, 0, 0, 0) + b"".join(
    bytes([len(p)]) + p.encode() for p in name.split(".")) + b"\0" + struct.pack(">HH", 1, 1)


def connected(family, kind, to):
    s = socket.socket(family, kind)
    s.settimeout(LONGEST)
    s.connect(to)
    return s


def received(s):
    got = s.recv(65536)
    if not got:
        raise EOFError("the agent has hung up")
    return got


agent = connected(socket.AF_UNIX, socket.SOCK_STREAM, path)
udp = connected(socket.AF_INET, socket.SOCK_DGRAM, (dns, 53))


def request():
    agent.sendall(b'{"op":"logs","app":"nobody"}\n')
    while not received(agent).endswith(b"\n"):
        pass


def lookup():
    udp.send(query)
    received(udp)


def queued():
    """Seconds that the agent's loop and we could have run, but did not."""
    ns = 0
    for task in f"/proc/{pid}/task/{pid}", "/proc/self":
        with open(task + "/schedstat") as f:
            ns += int(f.read().split()[1])
    return ns / 1e9


class Wait:
    def __init__(self):
        self.others, self.begin = queued(), time.monotonic()

    def end(self):
        """How long it was by the agent, and at all."""
        waited = time.monotonic() - self.begin
        return max(waited - (queued() - self.others), 0), waited


class Events:
    """Of our connections to an app, one at a time: they come while others are asked, in as many turns
    as that takes. Of turns after an event was due, all is the agent's but what others had of it."""

    def __init__(self):
        self.socket, self.text, self.port, self.seen = None, b"", 0, []
        if not app:
            return
        self.socket = connected(socket.AF_UNIX, socket.SOCK_STREAM, path)
        self.socket.sendall(b'{"op":"events"}\n')
        while b"\n" not in self.text:
            self.text += received(self.socket)
        answer = self.lines()[0]
        if "error" in answer:
            raise ValueError(answer)

    def lines(self):
        *whole, self.text = self.text.split(b"\n")
        return [json.loads(line) for line in whole]

    def cause(self):
        if not self.socket or self.port:
            return
        with connected(socket.AF_INET, socket.SOCK_STREAM, app) as s:
            self.port, self.due, self.held = s.getsockname()[1], time.monotonic() + FETCH, 0

    def end(self, turn):
        """Of a turn, which waits a moment for what comes."""
        if not self.socket:
            time.sleep(0.001)
            return
        if select.select([self.socket], [], [], 0.001)[0]:
            self.text += received(self.socket)
        ours = any(e["event"] == "accept" and e.get("remote_port") == self.port for e in self.lines())
        late = max(time.monotonic() - self.due, 0)
        self.held += min(turn.end()[0], late)
        if ours:
            self.seen.append((self.held, late))
            self.port = 0
        elif late > LONGEST:
            raise TimeoutError("no event of a connection")


waits = {request: [], lookup: []}
events = Events()
print("asks", flush=True)
while not os.path.exists(until) or events.port or not all(waits.values()):
    turn = Wait()
    events.cause()
    for ask, seen in waits.items():
        wait = Wait()
        ask()
        seen.append(wait.end())
    events.end(turn)
of = {ask.__name__: seen for ask, seen in waits.items()}
if app:
    of["event"] = events.seen
for what, seen in of.items():
    held = max(s[0] for s in seen)
    late = sum(1 for s in seen if s[1] > 0.05)
    print(f"{what} {max(s[1] for s in seen) * 1000:.0f} ms, by the agent {held * 1000:.0f} ms, "
          f"of {len(seen)}, {late} above 50 ms")
