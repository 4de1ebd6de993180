# SPDX-License-Identifier: GPL-2.0-or-later
# Packets for the tests of `ax xdp`, and what comes back.
#
#   packets.py ping ADDR [N]                echo requests: prints how many answers were right
#   packets.py udp ADDR PORT N [TEXT]       N datagrams
#   packets.py ask ADDR PORT TEXT [MARK]    a datagram: prints the answer and who sent it
#   packets.py send IFACE KEY=VALUE ...     frames: n, proto (udp tcp icmp arp), src, dst, sport,
#                                           dport, flags, vlan, size, smac, dmac, type
#   packets.py turned IFACE KEY=VALUE ...   the same, and prints each frame that comes back
#   packets.py flood IFACE SECONDS [KEY=VALUE ...] dport=A,B,...  prints how many of each
#   packets.py serve ADDR PORT              UDP: answers each datagram with itself
#   packets.py hold IFACE SECONDS           counts frames by protocol and destination port
import signal
import socket
import struct
import sys
import time

ETH_ALL = 3


def checksum(data):
    if len(data) % 2:
        data += b"\0"
    s = sum(struct.unpack("!%dH" % (len(data) // 2), data))
    while s >> 16:
        s = (s & 0xFFFF) + (s >> 16)
    return ~s & 0xFFFF


def family(addr):
    return socket.AF_INET6 if ":" in addr else socket.AF_INET


def raw(addr):
    return socket.inet_pton(family(addr), addr)


def mac(text):
    return bytes(int(b, 16) for b in text.split(":"))


def pseudo(src, dst, proto, length):
    if len(src) == 4:
        return src + dst + struct.pack("!BBH", 0, proto, length)
    return src + dst + struct.pack("!II", length, proto)


def l4_packet(o, src, dst):
    v6 = len(src) == 16
    sport, dport = int(o.get("sport", 40000)), int(o.get("dport", 9))
    payload = b"x" * int(o.get("size", 18))
    if o["proto"] == "udp":
        proto, head, at = 17, struct.pack("!HHHH", sport, dport, 8 + len(payload), 0), 6
    elif o["proto"] == "tcp":
        flags = {"syn": 2, "ack": 16, "rst": 4}[o.get("flags", "syn")]
        proto, at = 6, 16
        head = struct.pack("!HHIIBBHHH", sport, dport, 1000, 0, 5 << 4, flags, 1024, 0, 0)
    else:
        proto, at = (58 if v6 else 1), 2
        head = struct.pack("!BBHHH", int(o.get("type", 128 if v6 else 8)), 0, 0, 7, 1)
    over = b"" if proto == 1 else pseudo(src, dst, proto, len(head) + len(payload))
    sum16 = checksum(over + head + payload)
    return proto, head[:at] + struct.pack("!H", sum16) + head[at + 2:] + payload


def frame(o):
    eth = mac(o.get("dmac", "02:00:00:00:00:01")) + mac(o.get("smac", "02:00:00:00:00:02"))
    if "vlan" in o:
        eth += struct.pack("!HH", 0x8100, int(o["vlan"]))
    if o["proto"] == "arp":
        return eth + struct.pack("!HHHBBH", 0x806, 1, 0x800, 6, 4, 1) + eth[6:12] + raw(
            o.get("src", "198.51.100.2")) + bytes(6) + raw(o.get("dst", "198.51.100.1"))
    src = raw(o.get("src", "198.51.100.2"))
    dst = raw(o.get("dst", "198.51.100.1"))
    proto, l4 = l4_packet(o, src, dst)
    if len(src) == 16:
        ip = struct.pack("!IHBB", 6 << 28, len(l4), proto, 64) + src + dst
        return eth + struct.pack("!H", 0x86DD) + ip + l4
    ip = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(l4), 0, 0x4000, 64, proto, 0) + src + dst
    ip = ip[:10] + struct.pack("!H", checksum(ip)) + ip[12:]
    return eth + struct.pack("!H", 0x800) + ip + l4


def options(words):
    o = dict(w.split("=", 1) for w in words)
    o.setdefault("proto", "udp")
    return o


def packet_socket(iface, protocol=0):
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(protocol))
    s.bind((iface, protocol))
    return s


def send(iface, *words):
    o = options(words)
    s, f = packet_socket(iface), frame(o)
    for _ in range(int(o.get("n", 1))):
        s.send(f)


# What a frame is, and whether its checksums are right.
def describe(f):
    kind = struct.unpack("!H", f[12:14])[0]
    if kind == 0x800:
        head = (f[14] & 15) * 4
        total = struct.unpack("!H", f[16:18])[0]
        src, dst, proto = f[26:30], f[30:34], f[23]
        l4 = f[14 + head:14 + total]
        good = checksum(f[14:14 + head]) == 0
    elif kind == 0x86DD:
        src, dst, proto = f[22:38], f[38:54], f[20]
        l4 = f[54:54 + struct.unpack("!H", f[18:20])[0]]
        good = True
    else:
        return None
    over = b"" if proto == 1 else pseudo(src, dst, proto, len(l4))
    none = proto == 17 and l4[6:8] == b"\0\0"
    good = good and (none or checksum(over + l4) == 0)
    fam = socket.AF_INET if len(src) == 4 else socket.AF_INET6
    ports = "%d > %d" % struct.unpack("!HH", l4[:4]) if proto in (6, 17) else "type %d" % l4[0]
    return "%s > %s proto %d %s %s > %s checksum %s" % (
        socket.inet_ntop(fam, src), socket.inet_ntop(fam, dst), proto, ports,
        f[6:12].hex(":"), f[:6].hex(":"), "none" if none else "right" if good else "WRONG")


def turned(iface, *words):
    o = options(words)
    s, f = packet_socket(iface, ETH_ALL), frame(o)
    want, seen, end = int(o.get("n", 1)), 0, time.monotonic() + 2
    for _ in range(want):
        s.send(f)
    while seen < want and time.monotonic() < end:
        s.settimeout(max(0.01, end - time.monotonic()))
        try:
            got, addr = s.recvfrom(65536)
        except socket.timeout:
            break
        if addr[2] == socket.PACKET_OUTGOING or got[:6] != f[6:12]:
            continue
        text = describe(got)
        if text:
            print(text)
            seen += 1


def hold(iface, seconds):
    s, counts = packet_socket(iface, ETH_ALL), {}
    end = time.monotonic() + float(seconds)
    while time.monotonic() < end:
        s.settimeout(max(0.01, end - time.monotonic()))
        try:
            f, addr = s.recvfrom(65536)
        except socket.timeout:
            break
        text = describe(f) if addr[2] != socket.PACKET_OUTGOING else None
        if text:
            words = text.split()
            key = " ".join(words[4:8] if words[5] == "type" else ["proto", words[4], words[7]])
            counts[key] = counts.get(key, 0) + 1
    for key in sorted(counts):
        print(key, counts[key])


# About 40 packets a millisecond at most: the receiver's queue of 256 frames must not run over. SIGTERM
# ends it early.
def flood(iface, seconds, *words):
    o = options(words)
    s = packet_socket(iface)
    ports = o["dport"].split(",")
    frames = [(p, frame(dict(o, dport=p.rstrip("t"), proto="tcp" if p[-1] == "t" else "udp")))
              for p in ports]
    sent = dict.fromkeys(ports, 0)
    ended = []
    signal.signal(signal.SIGTERM, lambda *_: ended.append(True))
    end = time.monotonic() + float(seconds)
    while not ended and time.monotonic() < end:
        for _ in range(8):
            for port, f in frames:
                try:
                    s.send(f)
                    sent[port] += 1
                except OSError:  # ENOBUFS: not sent
                    pass
        time.sleep(0.0005)
    print(" ".join("%s=%d" % (p, sent[p]) for p in ports))


def ping(addr, n="1"):
    v6, good = family(addr) == socket.AF_INET6, 0
    proto = socket.IPPROTO_ICMPV6 if v6 else socket.IPPROTO_ICMP
    s = socket.socket(family(addr), socket.SOCK_RAW, proto)
    s.connect((addr, 0))
    for i in range(int(n)):
        echo = struct.pack("!BBHHH", 128 if v6 else 8, 0, 0, 4711, i) + b"echo" * 8
        if not v6:
            echo = echo[:2] + struct.pack("!H", checksum(echo)) + echo[4:]
        s.send(echo)
        end = time.monotonic() + 1
        while time.monotonic() < end:
            s.settimeout(max(0.01, end - time.monotonic()))
            try:
                got = s.recv(2048)
            except OSError:
                break
            got = got if v6 else got[20:]
            if got[0] == (129 if v6 else 0) and got[4:] == echo[4:]:
                good += 1
                break
    print(good)


def udp(addr, port, n, text="data"):
    s = socket.socket(family(addr), socket.SOCK_DGRAM)
    for _ in range(int(n)):
        s.sendto(text.encode(), (addr, int(port)))


def ask(addr, port, text, mark="0"):
    s = socket.socket(family(addr), socket.SOCK_DGRAM)
    if int(mark, 0):
        s.setsockopt(socket.SOL_SOCKET, socket.SO_MARK, struct.pack("=I", int(mark, 0)))
    s.settimeout(1)
    s.sendto(text.encode(), (addr, int(port)))
    try:
        got, who = s.recvfrom(65536)
    except OSError as e:
        print("no answer: %s" % e)
        sys.exit(1)
    print(got.decode(), "from", who[0], who[1])


def serve(addr, port):
    s = socket.socket(family(addr), socket.SOCK_DGRAM)
    s.bind((addr, int(port)))
    while True:
        got, who = s.recvfrom(65536)
        s.sendto(got, who)


commands = {f.__name__: f for f in (ping, udp, ask, send, turned, flood, serve, hold)}
commands[sys.argv[1]](*sys.argv[2:])
