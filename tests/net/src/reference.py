# SPDX-License-Identifier: GPL-2.0-or-later
# What a list of rules does with a packet: written from the RFCs and from ax-xdp(8), and from nothing
# of ax itself, so that the two may be held against each other.
import ipaddress
import struct
from dataclasses import dataclass, field
from typing import Optional

TAGS = (0x8100, 0x88A8, 0x9100)  # 802.1Q, 802.1ad, and what came before that
MAX_TAGS = 8
MAX_HEADERS = 8
TCP, UDP, ICMP, ICMP6, IGMP, IPIP, IP6IP = 6, 17, 1, 58, 2, 4, 41
FRAGMENT = 44
AH = 51
# RFC 8200: those with a next header and a length in units of 8 bytes. (Those of mobility, HIP and Shim6
# have no other behind them.)
OPTIONS = (0, 43, 60)
MAPPED = bytes(10) + b"\xff\xff"


class Odd(Exception):
    """A packet that no rule can judge; why."""


@dataclass
class Packet:
    length: int
    smac: bytes = b""
    vlan: Optional[int] = None
    arp: bool = False
    ip: int = 0  # 4, 6, or 0: something else
    src: int = 0
    dst: int = 0
    proto: Optional[int] = None
    ttl: Optional[int] = None
    tos: int = 0
    fragment: str = "none"
    sport: Optional[int] = None
    dport: Optional[int] = None
    flags: Optional[int] = None
    icmp: Optional[tuple] = None
    notes: set = field(default_factory=set)  # odd, but for the rules to judge
    l4: bytes = b""  # from the transport header on, as far as IP's length goes


def u16(b, at):
    return struct.unpack_from("!H", b, at)[0]


def number(b):
    return int.from_bytes(b, "big")


# --- what a packet is ---


def parse(frame):
    """The frame as a Packet; raises Odd."""
    p = Packet(len(frame))
    if len(frame) < 14:
        raise Odd("runt")
    p.smac = frame[6:12]
    at, tags, kind = 14, 0, u16(frame, 12)
    while kind in TAGS:
        if tags == MAX_TAGS:
            raise Odd("too-many-tags")
        if len(frame) < at + 4:
            raise Odd("runt")
        if tags == 0:
            p.vlan = u16(frame, at) & 0xFFF
        kind, at, tags = u16(frame, at + 2), at + 4, tags + 1
    if kind == 0x0800:
        parse4(p, frame[at:])
    elif kind == 0x86DD:
        parse6(p, frame[at:])
    p.arp = kind == 0x0806
    return p


def parse4(p, b):
    if len(b) < 20:
        raise Odd("runt")
    if b[0] >> 4 != 4:
        raise Odd("bad-version")
    header, total = (b[0] & 15) * 4, u16(b, 2)
    if header < 20 or header > len(b):
        raise Odd("bad-header")
    if total < header or total > len(b):
        raise Odd("bad-length")
    p.ip, p.src, p.dst = 4, number(b[12:16]), number(b[16:20])
    p.proto, p.ttl, p.tos = b[9], b[8], b[1]
    if header > 20:
        p.notes.add("ip-options")
    offset, more = (u16(b, 6) & 0x1FFF) * 8, b[6] & 0x20
    transport(p, b[header:total], offset, more)


def parse6(p, b):
    if len(b) < 40:
        raise Odd("runt")
    if b[0] >> 4 != 6:
        raise Odd("bad-version")
    if 40 + u16(b, 4) > len(b):
        raise Odd("bad-length")
    p.ip, p.src, p.dst, p.ttl = 6, number(b[8:24]), number(b[24:40]), b[7]
    p.tos = u16(b, 0) >> 4 & 0xFF
    if MAPPED in (b[8:20], b[24:36]):
        raise Odd("mapped-address")
    p.proto, at, offset, more = chain(b[6], b[40:])
    if at > u16(b, 4):
        raise Odd("bad-length")
    transport(p, b[40 + at:40 + u16(b, 4)], offset, more)


def chain(kind, b):
    """Behind IPv6's extension headers: the protocol, where it begins, and where the fragment is."""
    at, offset, more, n = 0, 0, 0, 0
    while kind in OPTIONS or kind in (FRAGMENT, AH):
        if n > MAX_HEADERS or at + 8 > len(b):
            raise Odd("too-many-headers")
        n += 1
        size = 8 if kind == FRAGMENT else (b[at + 1] + 2) * 4 if kind == AH else (b[at + 1] + 1) * 8
        if kind == FRAGMENT:
            offset, more = u16(b, at + 2) & 0xFFF8, b[at + 3] & 1
        kind, at = b[at], at + size
        if offset:  # what follows is the middle of something
            break
    return kind, at, offset, more


def transport(p, b, offset, more):
    p.fragment = "later" if offset else "first" if more else "none"
    if p.proto in (IPIP, IP6IP):
        p.notes.add("tunnel")
    if offset:
        if p.proto == TCP and offset < 20:  # RFC 1858, 3128
            raise Odd("short-fragment")
        p.notes.add("later-fragment")
        return
    short = Odd("short-fragment" if more else "short-l4")
    p.l4 = b
    if p.proto == TCP:
        transport_tcp(p, b, more, short)
    elif p.proto == UDP:
        if len(b) < 8:
            raise short
        if u16(b, 4) < 8 or (u16(b, 4) > len(b) and not more):
            raise Odd("bad-udp")
        p.sport, p.dport = u16(b, 0), u16(b, 2)
    elif p.proto == (ICMP if p.ip == 4 else ICMP6):
        if len(b) < 8:
            raise Odd("short-l4")
        p.icmp = (b[0], b[1])


def transport_tcp(p, b, more, short):
    if len(b) < 20:
        raise short
    header = (b[12] >> 4) * 4
    if header < 20 or header > len(b):
        raise Odd("short-fragment" if more else "bad-tcp")
    p.sport, p.dport, p.flags = u16(b, 0), u16(b, 2), b[13]


# --- what rules say ---


def network(text):
    n = ipaddress.ip_network(text)
    return n.version, int(n.network_address), int(n.netmask)


def in_networks(networks, version, address):
    return any(v == version and address & mask == base for v, base, mask in networks)


def in_ranges(ranges, value):
    return value is not None and any(lo <= value <= hi for lo, hi in ranges)


# By the keys of a rule.
CONDITIONS = {
    "src": lambda v, p: in_networks(v, p.ip, p.src),
    "dst": lambda v, p: in_networks(v, p.ip, p.dst),
    "proto": lambda v, p: in_ranges(v, p.proto),
    "sport": lambda v, p: in_ranges(v, p.sport),
    "dport": lambda v, p: in_ranges(v, p.dport),
    "flags": lambda v, p: p.flags is not None and p.flags & v[0] == v[1],
    "icmp": lambda v, p: p.ip == 4 and p.icmp in v,
    "icmp6": lambda v, p: p.ip == 6 and p.icmp in v,
    "vlan": lambda v, p: p.vlan is None if v == "none" else in_ranges(v, p.vlan),
    "fragment": lambda v, p: p.fragment == v,
    "length": lambda v, p: in_ranges(v, min(p.length, 65535)),
    "ttl": lambda v, p: in_ranges(v, p.ttl),
    "dscp": lambda v, p: p.ttl is not None and in_ranges(v, p.tos >> 2),
    "ecn": lambda v, p: p.ttl is not None and p.tos & 3 == v,
    "mac": lambda v, p: p.smac == v,
    "interface-group": lambda v, p: v,
}


@dataclass
class Rule:
    name: str
    action: str
    when: dict


@dataclass
class List:
    default: str
    rules: list
    classes: dict = field(default_factory=dict)  # of oddities: pass or drop, else what ODD is

    def first(self, p):
        for r in self.rules:
            if all(CONDITIONS[key](value, p) for key, value in r.when.items()):
                return r
        return None


def let_through(rules, p):
    """Why it passes although nothing but the default would drop it."""
    if p.arp:
        return "arp"
    if p.ip == 4 and p.proto == IGMP and p.fragment == "none":
        return "mld"
    if not p.icmp or p.fragment != "none":  # RFC 6980
        return None
    kind = p.icmp[0]
    if p.ip == 6 and 133 <= kind <= 137:
        # RFC 4861: nobody takes what a router has forwarded
        return "neighbour" if p.ttl == 255 else None
    if p.ip == 6 and kind in (130, 131, 132, 143):
        return "mld"
    if kind in ((3, 11, 12) if p.ip == 4 else (1, 2, 3, 4)) and flow_passes(rules, p):
        return "icmp-error"
    return None


def quoted(p):
    """The flow that an ICMP error is about, as a packet of it would come in; None: it says none."""
    b = p.l4[8:]
    q = Packet(p.length, p.smac, p.vlan)
    try:
        if p.ip == 4:
            header = (b[0] & 15) * 4
            if b[0] >> 4 != 4 or header < 20 or len(b) < header:
                return None
            q.ip, q.dst, q.src, q.proto = 4, number(b[12:16]), number(b[16:20]), b[9]
            offset, rest = (u16(b, 6) & 0x1FFF) * 8, b[header:]
        else:
            if b[0] >> 4 != 6 or len(b) < 40:
                return None
            q.ip, q.dst, q.src = 6, number(b[8:24]), number(b[24:40])
            q.proto, at, offset, _ = chain(b[6], b[40:])
            rest = b[40 + at:]
    except (IndexError, Odd):
        return None
    q.fragment = "later" if offset else "none"
    if not offset and q.proto in (TCP, UDP):
        if len(rest) < 8:  # RFC 792 promises as much
            return None
        q.dport, q.sport = u16(rest, 0), u16(rest, 2)
    return q


def flow_passes(rules, p):
    q = quoted(p)
    if not q:
        return False
    r = rules.first(q)
    return (r.action if r else rules.default) == "pass"


def judge(rules, frame):
    """(who decided, verdict, the rule's name or the reason)"""
    try:
        p = parse(frame)
    except Odd as why:
        return "policy", rules.classes.get(str(why), "drop"), str(why)
    for verdict in ("drop", "pass"):
        for note in ("later-fragment", "tunnel", "ip-options"):
            if note in p.notes and rules.classes.get(note) == verdict:
                return "policy", verdict, note
    r = rules.first(p)
    if (r.action if r else rules.default) == "drop" and not (r and r.when):
        why = let_through(rules, p)
        if why:
            return "let-through", "pass", why
    return ("rule", r.action, r.name) if r else ("rule", rules.default, "default")
