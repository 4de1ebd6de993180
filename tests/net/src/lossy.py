# SPDX-License-Identifier: GPL-2.0-or-later
"""A way to etcd that loses news: lossy.py PORT ETCD_HOST ETCD_PORT FLAG [ADDRESS]

Passes on what comes, but while the file FLAG exists no message of a stream (HTTP's chunks) that tells of a
deletion; prints "lost" for each of these."""
import os, socket, sys, threading

port, host, etcd_port, flag = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4]
address = sys.argv[5] if len(sys.argv) > 5 else "0.0.0.0"


class Answers:
    """Of one connection, from etcd to the client."""

    def __init__(self, source, sink):
        self.source, self.sink, self.buffer = source, sink, b""

    def more(self):
        got = self.source.recv(65536)
        if not got:
            raise EOFError
        self.buffer += got

    def take(self, n):
        while len(self.buffer) < n:
            self.more()
        taken, self.buffer = self.buffer[:n], self.buffer[n:]
        return taken

    def take_to(self, end):
        while end not in self.buffer:
            self.more()
        return self.take(self.buffer.index(end) + len(end))

    def chunk(self):
        """False: it was the last one."""
        line = self.take_to(b"\r\n")
        size = int(line.split(b";")[0], 16)
        body = self.take(size + 2)
        if b'"DELETE"' in body and os.path.exists(flag):
            print("lost", flush=True)
        else:
            self.sink.sendall(line + body)
        return size > 0

    def answer(self):
        head = self.take_to(b"\r\n\r\n")
        fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:] if b": " in line)
        self.sink.sendall(head)
        if fields.get(b"transfer-encoding") == b"chunked":
            while self.chunk():
                pass
        else:
            self.sink.sendall(self.take(int(fields.get(b"content-length", 0))))

    def run(self):
        while True:
            self.answer()


def ask(source, sink):
    while True:
        got = source.recv(65536)
        if not got:
            raise EOFError
        sink.sendall(got)


def until_over(f, *both):
    try:
        f()
    except (OSError, EOFError, ValueError):
        pass
    for s in both:
        try:
            s.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


def serve(client):
    try:
        etcd = socket.create_connection((host, etcd_port))
    except OSError:
        client.close()
        return
    threading.Thread(target=until_over, args=(lambda: ask(client, etcd), client, etcd), daemon=True).start()
    until_over(Answers(etcd, client).run, client, etcd)


listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind((address, port))
listener.listen(64)
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
