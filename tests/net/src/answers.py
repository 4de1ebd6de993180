# SPDX-License-Identifier: GPL-2.0-or-later
# Datagrams that answer, and such as only look like it.
#
#   answers.py ask FAMILY ADDR PORT WORD...    from port 7001, with another socket at port 7000;
#                                       prints what comes there, and at which; ends by "end"
#   answers.py serve FAMILY PORT FILE   answers "WORD" by what the word is:
#       once     "answer"
#       big      an answer of 20,000 bytes
#       attack   to the asker's port 7000: by sendto, by a socket that is connected there, with RAW in
#                the environment by a raw one; and by another port of its own to the port that asked.
#                Prints the errors' names.
#       later    when FILE is there
#   answers.py flood FAMILY ADDR PORT N   one question from each of N ports
import errno, os, socket, struct, sys, time

families = {"4": socket.AF_INET, "6": socket.AF_INET6}


def udp(family, port):
    s = socket.socket(families[family], socket.SOCK_DGRAM)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if family == "6":
        s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    s.bind(("", port))
    return s


def say(*words):
    print(*words, flush=True)


def ask(family, addr, port, *words):
    import select
    secret, own = udp(family, 7000), udp(family, 7001)
    for word in words:
        own.sendto(word.encode(), (addr, int(port)))
    while True:
        for s in select.select([secret, own], [], [])[0]:
            data = s.recv(65536).decode()
            if s is own and data == "end":
                return
            say("secret" if s is secret else "own", data if len(data) < 100 else len(data))


def tried(how, f):
    try:
        f()
        say(how, "sent")
    except OSError as e:
        say(how, errno.errorcode[e.errno])


def raw(family, port, to):
    if family == "6" or "RAW" not in os.environ:
        return
    text = b"raw"
    s = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_UDP)
    s.sendto(struct.pack("!HHHH", port, to[1], 8 + len(text), 0) + text, (to[0], 0))


def attack(s, family, port, who):
    secret = (who[0], 7000) + tuple(who[2:])
    again = udp(family, port)
    other = udp(family, port + 1)
    tried("sendto", lambda: s.sendto(b"sendto", secret))
    tried("connected", lambda: (again.connect(secret), again.send(b"connected")))
    tried("other", lambda: other.sendto(b"other", who))
    raw(family, port, secret)
    again.close()


def serve(family, port, file):
    s = udp(family, int(port))
    say("ready")
    while True:
        data, who = s.recvfrom(65536)
        word = data.decode()
        if word == "attack":
            attack(s, family, int(port), who)
        elif word == "big":
            s.sendto(b"b" * 20000, who)
        else:
            while word == "later" and not os.path.exists(file):
                time.sleep(0.05)
            tried("answer", lambda: s.sendto(b"end" if word == "end" else b"answer", who))


def flood(family, addr, port, n):
    for p in range(int(n)):
        s = udp(family, 10000 + p)
        s.sendto(b"once", (addr, int(port)))
        s.close()
    say("flooded")


{"ask": ask, "serve": serve, "flood": flood}[sys.argv[1]](*sys.argv[2:])
