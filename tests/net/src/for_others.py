# SPDX-License-Identifier: GPL-2.0-or-later
# Datagrams that would get to others than whom the hooks are asked about, and ports that were given back.
#   wait FAMILY ADDR [PORT]       prints its port, and what comes
#   tell ADDR PORT [INTERFACE]    one datagram, with leave to broadcast
#   ask ADDR PORT                 the same by a socket that has connected
#   give_back N                   so many sockets bind to port 0 and disconnect; prints the ports, and stays
#   option HOW HOP ADDR PORT      to ADDR by way of HOP: by setsockopt() before, with the datagram, behind connect()
#   seen INTERFACE                prints the payload's end of what comes by it
# ends with "sent" or the error's name
import ctypes, errno, resource, socket, struct, sys, time

what, args = sys.argv[1], sys.argv[2:]
AF = {"4": socket.AF_INET, "6": socket.AF_INET6}
IP_OPTIONS, IP_RETOPTS = 4, 7


def family(addr):
    return AF["6" if ":" in addr else "4"]


def wait(f, addr, port="0"):
    s = socket.socket(AF[f], socket.SOCK_DGRAM)
    s.bind((addr, int(port)))
    print("port", s.getsockname()[1], flush=True)
    while True:
        print(s.recv(100).decode(), flush=True)


def caster(addr, interface=None):
    s = socket.socket(family(addr), socket.SOCK_DGRAM)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
    if interface:
        number = socket.if_nametoindex(interface)
        s.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, struct.pack("8xi", number))
        if family(addr) == socket.AF_INET6:
            s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, number)
    return s


def tell(addr, port, interface=None):
    caster(addr, interface).sendto(addr.encode(), (addr, int(port)))


def ask(addr, port):
    s = caster(addr)
    s.connect((addr, int(port)))
    s.send(b"connected " + addr.encode())


def give_back(n):
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(int(n))]
    for s in sockets:
        s.bind(("0.0.0.0", 0))
    print("ports", *[s.getsockname()[1] for s in sockets], flush=True)
    for s in sockets:
        if ctypes.CDLL(None).connect(s.fileno(), struct.pack("H14x", socket.AF_UNSPEC), 16):
            raise OSError(errno.EINVAL, "connect to AF_UNSPEC")
    print("given back", flush=True)
    time.sleep(1000)


# One stop on the way: of IPv4 a loose source route, of IPv6 a segment routing header.
def route(hop, addr):
    if family(addr) == socket.AF_INET:
        return socket.IPPROTO_IP, IP_OPTIONS, bytes([0x83, 7, 4]) + socket.inet_aton(hop) + b"\0"
    return socket.IPPROTO_IPV6, socket.IPV6_RTHDR, struct.pack("BBBBBBH", 0, 4, 4, 1, 1, 0, 0) + \
        socket.inet_pton(socket.AF_INET6, addr) + socket.inet_pton(socket.AF_INET6, hop)


def option(how, hop, addr, port):
    s = socket.socket(family(addr), socket.SOCK_DGRAM)
    level, name, value = route(hop, addr)
    if how == "beside":
        s.sendmsg([b"detour beside"], [(level, IP_RETOPTS, value)], 0, (addr, int(port)))
    elif how == "before":
        s.setsockopt(level, name, value)
        s.sendto(b"detour before", (addr, int(port)))
    else:
        s.connect((addr, int(port)))
        s.setsockopt(level, name, value)
        s.send(b"detour behind")


def seen(interface):
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    s.bind((interface, 0))
    print("looks", flush=True)
    while True:
        print(repr(s.recv(2000)[-24:]), flush=True)


try:
    {"wait": wait, "tell": tell, "ask": ask, "give_back": give_back, "option": option, "seen": seen}[what](*args)
    print("sent")
except OSError as e:
    print(errno.errorcode.get(e.errno, str(e)))
