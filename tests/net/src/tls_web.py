# SPDX-License-Identifier: GPL-2.0-or-later
# A web server of TLS for tests: tls_web.py CERTIFICATE KEY PORT... Whoever does not go on keeps nobody
# else waiting.
import socket
import ssl
import sys
import threading

context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[1], sys.argv[2])


def one(conn):
    try:
        with context.wrap_socket(conn, server_side=True) as tls:
            tls.recv(65536)
            tls.sendall(b"HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nok\n")
    except OSError:
        pass


def serve(port):
    server = socket.create_server(("", port), backlog=50)
    while True:
        conn, _ = server.accept()
        threading.Thread(target=one, args=(conn,), daemon=True).start()


threads = [threading.Thread(target=serve, args=(int(p),)) for p in sys.argv[3:]]
for t in threads:
    t.start()
