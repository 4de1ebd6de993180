# SPDX-License-Identifier: GPL-2.0-or-later
"""Ends TCP connections in every way: tcpends.py ADDRESS PORT. Both ends are this process."""
import socket
import struct
import sys
import time

address, port = sys.argv[1], int(sys.argv[2])
family = socket.AF_INET6 if ":" in address else socket.AF_INET
listener = socket.socket(family)
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind((address, port))
listener.listen()


def receive(s, n):
    while n:
        n -= len(s.recv(n))


def pair(sent, answered):
    client = socket.create_connection((address, port))
    server, _ = listener.accept()
    client.sendall(b"c" * sent)
    receive(server, sent)
    server.sendall(b"s" * answered)
    receive(client, answered)
    return client, server


# the client closes first
client, server = pair(1000, 10)
client.shutdown(socket.SHUT_WR)
server.recv(1)
server.close()
client.recv(1)
client.close()

# the server closes first
client, server = pair(7, 3000)
server.shutdown(socket.SHUT_WR)
client.recv(1)
client.close()
server.recv(1)
server.close()

# the client resets
client, server = pair(5, 6)
client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
client.close()
time.sleep(0.05)
server.close()

# nobody listens
listener.close()
try:
    socket.create_connection((address, port))
except ConnectionRefusedError:
    pass
