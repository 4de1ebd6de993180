# SPDX-License-Identifier: GPL-2.0-or-later
# Packets that scapy has made and that were spoilt, and lists of rules for them:
#
#   mutated.py lists DIR            NAME.yaml for each of LISTS, and large.nft, there
#   mutated.py packets FILE N       a pcap file of N packets
#   mutated.py compare LIST FILE N  what `ax xdp explain -o json` says of FILE's first N (on standard input)
#                                   against what reference.py says; prints some that differ; ends with 1 if any do
#   mutated.py plain FILE TO N      those of FILE's first N packets that nothing is odd about
#   mutated.py expect LIST FILE     how many of FILE's packets each rule has, as JSON
#   mutated.py send PID IFACE HERE FILE     sends them by IFACE of that process' network namespace, as fast as
#                                   they arrive at HERE; prints how many
#
import collections
import ctypes
import ipaddress
import itertools
import json
import random
import socket
import struct
import sys
import time

import reference
from reference import List, Rule, network

SEED = 20260314
SNAP = 9216

ADDRESSES4 = ["10.1.2.3", "10.1.2.4", "10.1.9.9", "10.200.0.1", "192.0.2.5", "192.0.2.200", "8.8.8.8"]
ADDRESSES6 = ["fd00:1::2", "fd00:1::3", "2001:db8::7", "fd77::1", "2a00::1"]

# --- lists: what is written for ax, what for nft(8), and what it means ---

NETS4 = ["10.0.0.0/8", "10.1.0.0/16", "10.1.2.0/24", "10.1.2.3/32", "192.0.2.0/25", "0.0.0.0/0"]
NETS6 = ["fd00::/8", "fd00:1::/32", "fd00:1::2/128", "2001:db8::/61", "::/0"]
PROTOCOLS = [6, 17, 1, 58, 47, 132, 2]
PORTS = [22, 53, 80, 443, 1024, 9000, 40000]
FLAGS = {"syn": 2, "ack": 16, "fin": 1, "rst": 4, "psh": 8, "urg": 32}


def ranges(r, points, last):
    lo = r.choice(points) if r.random() < 0.8 else r.randint(0, last)
    return lo, lo if r.random() < 0.6 else min(last, lo + r.choice([1, 100, 5000]))


def text_of(lo, hi):
    return str(lo) if lo == hi else "%d-%d" % (lo, hi)


class Writer:
    """A rule, in three languages."""

    def __init__(self):
        self.ax, self.nft, self.when = {}, [], {}

    def put(self, key, text, meaning, *nft):
        self.ax[key], self.when[key] = text, meaning
        self.nft += nft


def put_address(r, w, key, narrow):
    v6 = r.random() < 0.4
    if any(k in w.when for k in ("src", "dst")):  # the other one's family
        v6 = next(w.when[k] for k in ("src", "dst") if k in w.when)[0][0] == 6
    text = r.choice(NETS6 if v6 else NETS4)
    if narrow:  # around one that is there, so that no rule takes what hundreds are for
        text = "%s/%d" % (r.choice(ADDRESSES6 if v6 else ADDRESSES4), r.choice([64, 127, 128] if v6 else [24, 31, 32]))
        text = str(ipaddress.ip_network(text, strict=False))
    ip = "ip6" if v6 else "ip"
    w.put(key, text, [network(text)], "ether type %s" % ip, "%s %saddr %s" % (ip, key[0], text))


def put_ports(r, w, key):
    lo, hi = ranges(r, PORTS, 65535)
    w.put(key, text_of(lo, hi), [(lo, hi)], "th %s %s" % (key, text_of(lo, hi)))


def put_protocol(r, w):
    proto = r.choice([6, 17]) if r.random() < 0.7 else r.choice(PROTOCOLS)
    w.put("proto", str(proto), [(proto, proto)], "meta l4proto %d" % proto)
    if proto not in (6, 17):
        return
    for key in ("sport", "dport"):
        if r.random() < (0.7 if key == "dport" else 0.2):
            put_ports(r, w, key)
    if proto == 6 and r.random() < 0.3:
        put_flags(r, w)


def put_flags(r, w):
    names = r.sample(list(FLAGS), 2)
    mask = value = FLAGS[names[0]]
    text = names[0]
    if r.random() < 0.6:
        mask |= FLAGS[names[1]]
        text += ",!" + names[1]
    w.put("flags", text, (mask, value), "tcp flags & %d == %d" % (mask, value))


def put_icmp(r, w):
    v6, kind = r.random() < 0.5, r.choice([0, 3, 8, 11, 128, 129, 1, 2, 135])
    v6 = next((w.when[key][0][0] == 6 for key in ("src", "dst") if key in w.when), v6)
    key = "icmp6" if v6 else "icmp"
    w.put(key, str(kind), [(kind, code) for code in range(256)], "ether type %s" % ("ip6" if v6 else "ip"),
          "%s type %d" % ("icmpv6" if v6 else "icmp", kind))


def put_others(r, w):
    """What nft(8) has no word for, or another meaning, is for lists without it."""
    which = r.choice(["ttl", "dscp", "ecn", "length", "vlan", "fragment", "mac", "interface-group"])
    if which == "ttl":
        lo, hi = ranges(r, [1, 64, 255], 255)
        w.put("ttl", text_of(lo, hi), [(lo, hi)])
    elif which == "dscp":
        lo, hi = ranges(r, [0, 10, 46], 63)
        w.put("dscp", text_of(lo, hi), [(lo, hi)])
    elif which == "ecn":
        w.put("ecn", ["not-ect", "ect1", "ect0", "ce"][(v := r.randrange(4))], v)
    elif which == "length":
        lo, hi = ranges(r, [0, 60, 64, 100, 1500], 65535)
        w.put("length", text_of(lo, hi), [(lo, hi)])
    elif which == "vlan":
        none = r.random() < 0.4
        lo, hi = ranges(r, [0, 1, 7, 100], 4095)
        w.put("vlan", "none" if none else text_of(lo, hi), "none" if none else [(lo, hi)])
    elif which == "fragment" and not {"sport", "dport", "flags", "icmp", "icmp6"} & set(w.when):
        w.put("fragment", (v := r.choice(["none", "first", "later"])), v)
    elif which == "mac":
        w.put("mac", "02:00:00:00:00:0%d" % (v := r.randrange(1, 4)), bytes([2, 0, 0, 0, 0, v]))
    elif which == "interface-group":  # the interface's is the one that is not given one, 0
        w.put("interface-group", *r.choice([("default", True), ("!1-9", True), ("0,5", True), ("5-", False), ("!0", False)]))


def any_rule(r, w):
    for key in ("src", "dst"):
        if r.random() < 0.45:
            put_address(r, w, key, False)
    if r.random() < 0.12:
        put_icmp(r, w)
    elif r.random() < 0.8 or not w.when:
        put_protocol(r, w)
    if r.random() < 0.4:
        put_others(r, w)


def narrow_rule(r, w):
    """Of what nft(8) has words for, too."""
    for key in ("src", "dst"):
        put_address(r, w, key, True)
    if r.random() < 0.12:
        put_icmp(r, w)
    elif r.random() < 0.8:
        put_protocol(r, w)


def protocol_rule(r, w):
    lo, hi = ranges(r, PROTOCOLS, 255)
    w.put("proto", text_of(lo, hi), [(lo, hi)])


def tcp_rule(r, w):
    w.put("proto", "6", [(6, 6)])
    if r.random() < 0.8:
        put_ports(r, w, "dport")


# How rules are looked up depends on how many there are, and about what.
LISTS = {
    "protocols": (8, protocol_rule, "drop"),
    "ports": (12, tcp_rule, "pass"),
    "passing": (30, any_rule, "pass"),
    "dropping": (30, any_rule, "drop"),
    "large": (1000, narrow_rule, "pass"),
}


CLASSES = {
    "ports": {"ip-options": "drop", "later-fragment": "pass"},
    "dropping": {"tunnel": "drop", "ip-options": "pass", "bad-udp": "pass"},
}


def make_list(name):
    """(the list, its rules' Writers)"""
    n, make, default = LISTS[name]
    r, rules, writers = random.Random("%s %d" % (name, SEED)), [], []
    for i in range(n):
        w = Writer()
        make(r, w)
        writers.append(w)
        rules.append(Rule("r%d" % i, "pass" if name == "large" or r.random() < 0.5 else "drop", w.when))
    return List(default, rules, CLASSES.get(name, {})), writers


def write_lists(where):
    for name in LISTS:
        rules, writers = make_list(name)
        with open("%s/%s.yaml" % (where, name), "w") as f:
            json.dump({"default": rules.default, "classes": rules.classes, "rules": [
                dict(w.ax, name=rule.name, action=rule.action) for w, rule in zip(writers, rules.rules)]}, f)
        if name == "large":
            write_nft("%s/large.nft" % where, rules, writers)


def write_nft(path, rules, writers):
    with open(path, "w") as f:
        for rule in rules.rules:
            f.write("counter %s {}\n" % rule.name)
        f.write("counter default {}\nchain rules {\n")
        f.write("type filter hook ingress device IFACE priority 0; policy accept;\n")
        for rule, w in zip(rules.rules, writers):
            f.write("%s counter name %s accept\n" % (" ".join(w.nft), rule.name))
        f.write("counter name default\n}\n")


# --- packets ---


def addresses(r, v6):
    few = ADDRESSES6 if v6 else ADDRESSES4
    return r.choice(few), r.choice(few)


def ip_layer(r, s, v6, src, dst):
    ttl, tos = r.choice([1, 63, 64, 255]), r.choice([0, 2, 0x28, 0xB8, 0xBB])
    if v6:
        ip = s.IPv6(src=src, dst=dst, hlim=ttl, tc=tos)
        for make in r.sample([s.IPv6ExtHdrHopByHop, s.IPv6ExtHdrDestOpt, s.IPv6ExtHdrRouting],
                             r.choice([0, 0, 0, 1, 2])):
            ip /= make()
        if r.random() < 0.15:
            ip /= s.IPv6ExtHdrFragment(id=7, offset=r.choice([0, 0, 1, 185]), m=r.randrange(2))
        return ip
    more = {"flags": "MF" if r.random() < 0.5 else 0, "frag": r.choice([0, 0, 1, 2, 185])} \
        if r.random() < 0.15 else {}
    options = [s.IPOption_Router_Alert()] if r.random() < 0.1 else []
    return s.IP(src=src, dst=dst, ttl=ttl, tos=tos, options=options, **more)


def l4_layer(r, s, v6, src, dst):
    data = s.Raw(bytes(r.randrange(256) for _ in range(r.choice([0, 1, 18, 100, 600]))))
    sport, dport = r.choice(PORTS + [33000]), r.choice(PORTS + [33000])
    kind = r.random()
    if kind < 0.35:
        return s.UDP(sport=sport, dport=dport) / data
    if kind < 0.7:
        options = [("MSS", 1460), ("NOP", None)] if r.random() < 0.3 else []
        return s.TCP(sport=sport, dport=dport, flags=r.choice(["S", "A", "SA", "PA", "F", "RA", "U", ""]),
                     options=options) / data
    if kind < 0.9:
        return icmp_layer(r, s, v6, src, dst, s.UDP(sport=sport, dport=dport) / data)
    if kind < 0.95:
        return s.GRE() / s.IP(src="10.1.2.3", dst="10.1.2.4") / data
    return s.IP(src="10.1.2.3", dst="10.1.2.4") / s.UDP(sport=sport, dport=dport) / data


def icmp_layer(r, s, v6, src, dst, inner):
    """Errors are about what dst has sent."""
    if v6:
        about = s.IPv6(src=dst, dst=src) / inner
        return r.choice([
            s.ICMPv6EchoRequest(data=b"x" * 20), s.ICMPv6ND_NS(tgt=dst), s.ICMPv6ND_RA(),
            s.ICMPv6DestUnreach() / about, s.ICMPv6PacketTooBig(mtu=1300) / about,
            s.ICMPv6TimeExceeded() / about, s.ICMPv6MLReport2()])
    about = s.IP(src=dst, dst=src) / inner
    return r.choice([
        s.ICMP() / b"xxxxxxxx", s.ICMP(type=0) / b"x", s.ICMP(type=3, code=r.choice([1, 3, 4])) / about,
        s.ICMP(type=11) / about, s.ICMP(type=13)])


def make_seed(r, s):
    frame = s.Ether(src="02:00:00:00:00:0%d" % r.randrange(1, 4), dst="02:00:00:00:00:01")
    for _ in range(r.choice([0] * 12 + [1, 1, 1, 2, 3, 8, 9])):
        frame /= s.Dot1Q(vlan=r.choice([0, 1, 7, 100, 4095]))
    if r.random() < 0.03:
        return bytes(frame / s.ARP(psrc="10.1.2.3", pdst="10.1.2.4"))
    v6 = r.random() < 0.45
    src, dst = addresses(r, v6)
    return bytes(frame / ip_layer(r, s, v6, src, dst) / l4_layer(r, s, v6, src, dst))[:SNAP]


def spoil(r, frame):
    """Mostly where headers are."""
    b = bytearray(frame)
    for _ in range(r.choice([0, 0, 1, 1, 1, 2, 4])):
        at = min(len(b) - 1, r.randrange(12, 70) if r.random() < 0.9 else r.randrange(len(b)))
        what = r.random()
        if what < 0.35:
            b[at] = r.choice([0, 1, 2, 5, 6, 8, 17, 0x2B, 0x2C, 0x33, 0x3A, 0x3C, 0x45, 0x46, 0x60, 0xFF])
        elif what < 0.7:
            b[at] ^= 1 << r.randrange(8)
        elif what < 0.85:
            del b[max(14, r.randrange(len(b))):]
        elif what < 0.92:
            b += bytes(r.randrange(1, 40))
        else:
            b[12:12] = bytes([0x81, 0, 0, r.choice([1, 7, 100])])
    return bytes(b)


def make_packets(n):
    import logging
    logging.getLogger("scapy").setLevel(logging.ERROR)
    import scapy.all as s
    r = random.Random(SEED)
    seeds = [make_seed(r, s) for _ in range(3000)]
    return [spoil(r, r.choice(seeds)) for _ in range(n)]


def write_pcap(path, frames):
    with open(path, "wb") as f:
        f.write(struct.pack("=IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
        for b in frames:
            f.write(struct.pack("=IIII", 0, 0, len(b), len(b)) + b)


def read_pcap(path):
    with open(path, "rb") as f:
        data = f.read()
    at = 24
    while at < len(data):
        n = struct.unpack_from("=I", data, at + 8)[0]
        yield data[at + 16:at + 16 + n]
        at += 16 + n


# --- against each other ---


def compare(name, path, count):
    rules, _ = make_list(name)
    wrong, n, kinds = 0, 0, collections.Counter()
    for frame, line in zip(read_pcap(path), sys.stdin):
        got, n = json.loads(line), n + 1
        want = reference.judge(rules, frame)
        has = (got["decided"], got["verdict"],
               got.get("rule") if got["decided"] == "rule" else got.get("reason"))
        kinds[want[2] if want[0] != "rule" else "rule"] += 1
        if has != want:
            wrong += 1
            if wrong <= 10:
                print("%d %s: ax %s, reference %s" % (n, frame.hex(), has, want))
    print("%d packets, %d differ; by %s" % (n, wrong, dict(kinds)))
    return wrong or n != int(count)


def is_plain(frame):
    try:
        p = reference.parse(frame)
    except reference.Odd:
        return False
    # more than one tag is no IP to the kernel, nor is a tag of priority 0 or of nobody
    return bool(p.ip) and not p.notes and len(frame) <= 1514 and frame[12:14] in (b"\x08\0", b"\x86\xdd")


def expect(name, path):
    rules, _ = make_list(name)
    counts = collections.Counter(reference.judge(rules, f)[2] for f in read_pcap(path))
    json.dump(counts, sys.stdout)


def packet_socket(pid, iface):
    """Of the network namespace of a process."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open("/proc/self/ns/net") as own, open("/proc/%s/ns/net" % pid) as other:
        if libc.setns(other.fileno(), 0):
            raise OSError(ctypes.get_errno(), "setns")
        s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        s.bind((iface, 0))
        libc.setns(own.fileno(), 0)
    return s


def arrived(iface):
    with open("/proc/net/dev") as f:
        return next(int(line.split(":")[1].split()[1]) for line in f if line.strip().startswith(iface + ":"))


def send(pid, iface, here, path):
    s = packet_socket(pid, iface)
    start, sent, end = arrived(here), 0, time.monotonic() + 120
    for frame in read_pcap(path):
        s.send(frame)
        sent += 1
        while sent % 64 == 0 and arrived(here) - start < sent - 64 and time.monotonic() < end:
            time.sleep(0.0005)  # a ring has room for 256
    while arrived(here) - start < sent and time.monotonic() < end:
        time.sleep(0.01)
    print(sent)


def main():
    what, args = sys.argv[1], sys.argv[2:]
    if what == "lists":
        write_lists(*args)
    elif what == "packets":
        write_pcap(args[0], make_packets(int(args[1])))
    elif what == "compare":
        sys.exit(1 if compare(*args) else 0)
    elif what == "plain":
        first = itertools.islice(read_pcap(args[0]), int(args[2]))
        write_pcap(args[1], [f for f in first if is_plain(f)])
    elif what == "expect":
        expect(*args)
    elif what == "send":
        send(*args)


main()
