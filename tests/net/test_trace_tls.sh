#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# ax trace tls: what programs send and get by OpenSSL and GnuTLS is shown as it was before it was
# encrypted, of the process that was named, and to its owner alone.
. "$(dirname "$0")/lib.sh"
need jq openssl gnutls-cli curl gcc

trace() {
	"$AX" --instance "$INST" trace tls "$@" 2>&1
}
# all DIRECTION [FILE]: what went that way, put together
all() {
	jq -rj "select(.direction == \"$1\") | .hex" "${2:-$T/json}" | $PYTHON -c \
		'import sys; sys.stdout.buffer.write(bytes.fromhex(sys.stdin.read()))'
}
totals() {
	jq -c 'select(.emitted) | [.emitted == .received, .dropped]' "$1"
}

mkdir "$T/www"
cd "$T/www" || exit 1
openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 2 -subj /CN=localhost \
	>/dev/null 2>&1
$PYTHON -c 'print("".join("%07d\n" % i for i in range(5000)), end="")' >page.txt
cat >server.py <<'END'
import http.server, ssl
server = http.server.HTTPServer(("127.0.0.1", 4433), http.server.SimpleHTTPRequestHandler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain("cert.pem", "key.pem")
server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
END
bg "$T/server.out" "$PYTHON" server.py
server=$BG
wait_for "curl -sk https://127.0.0.1:4433/cert.pem >/dev/null"

# --- both ends, by OpenSSL ---

bg "$T/watcher.out" "$AX" --instance "$INST" trace tls -p "$server" --bytes 1000000 --format hex -o json \
	-O "$T/server.json"
watcher=$BG
wait_for "grep -q attached $T/watcher.out"
trace --bytes 1000000 --format hex -o json -O "$T/json" -c "curl -sk -o $T/got https://127.0.0.1:4433/page.txt"
end "$watcher" INT
all sent >"$T/request"
like "what curl asks for" "$(head -n 1 "$T/request")" '^GET /page.txt HTTP/1.1'
all received | sed '1,/^\r$/d' >"$T/answer"
ok "what it gets is the file, byte for byte" cmp "$T/answer" page.txt
ok "the server reads what curl sends" cmp "$T/request" <(all received "$T/server.json")
ok "and sends what curl gets" cmp <(all received) <(all sent "$T/server.json")
is "of the server alone" "$(jq -r 'select(.event) | .pid' "$T/server.json" | sort -u)" "$server"
is "all is accounted for" "$(totals "$T/json") $(totals "$T/server.json")" "[true,0] [true,0]"
is "one connection, which ends" "$(jq -r 'select(.event) | .connection' "$T/json" | sort -u) $(jq -r '.event // empty' "$T/json" | tail -n 1)" "1 tls-end"
is "only its owner can read what was written" "$(stat -c %a "$T/json")" 600
: >"$T/open"
chmod 644 "$T/open"
exec 9<"$T/open"
trace -O "$T/open" -c "curl -sk -o $T/got https://127.0.0.1:4433/cert.pem"
like "also if the file was there" "$(stat -c %a "$T/open") $(cat "$T/open")" '^600 .*GET /cert.pem'
is "who has had it open reads nothing" "$(cat <&9)" ""
exec 9<&-
chown 65534 "$T/open"
like "a file of another user" "$(trace -O "$T/open" -c true)" 'belongs to another user'

# --- GnuTLS ---

trace --format hex -o json -O "$T/json" -c "sh -c 'printf \"GET /page.txt HTTP/1.0\r\n\r\n\" |
	gnutls-cli --insecure -p 4433 127.0.0.1 >$T/got'"
is "what gnutls-cli sends" "$(all sent | tr -d '\r')" "GET /page.txt HTTP/1.0"
all received | sed '1,/^\r$/d' >"$T/answer"
ok "and what it gets" cmp "$T/answer" page.txt
is "the library" "$(jq -r 'select(.direction)["library"]' "$T/json" | sort -u)" gnutls

# --- how it is shown ---

out=$(trace --bytes 30 -c "curl -sk -o $T/got https://127.0.0.1:4433/page.txt")
like "text in lines" "$out" $' curl +- +openssl #1 +-> [0-9]+ bytes\n    GET /page.txt HTTP/1.1\n    Host: '
like "what is left out is said" "$out" $'\n    \\([0-9]+ more bytes\\)\n'
printf 'bad\e[31m\n' >bad.txt
out=$(trace -c "curl -sk -o $T/got https://127.0.0.1:4433/bad.txt")
unlike "nothing reaches the terminal that could harm it" "$out" $'\e'
out=$(trace --format none -c "curl -sk -o $T/got https://127.0.0.1:4433/bad.txt")
unlike "without the data" "$out" 'GET'
out=$(trace --format hex -c "curl -sk -o $T/got https://127.0.0.1:4433/bad.txt")
like "in hexadecimal" "$out" '    00000000  47 45 54 20 2f 62 61 64  .* \|GET /bad'

# --- whose ---

fails "nobody is named" "$AX" trace tls -d 100ms
like "and why" "$(trace -d 100ms)" 'expected -p or -c'
out=$(trace -c "$PYTHON -c '
import os, subprocess
subprocess.run([\"curl\", \"-sk\", \"-o\", \"/dev/null\", \"https://127.0.0.1:4433/bad.txt\"], user=65534)'")
unlike "another user's process that is started is not shown" "$out" 'GET'
like "and that is said" "$out" '[0-9]+ calls by other users. processes are not shown \(--any-user\)'
out=$(trace --any-user -c "$PYTHON -c '
import os, subprocess
subprocess.run([\"curl\", \"-sk\", \"-o\", \"/dev/null\", \"https://127.0.0.1:4433/bad.txt\"], user=65534)'")
like "unless it is asked for" "$out" 'GET /bad.txt'
like "a file that has no such functions" "$(trace --library libm.so.6 -d 100ms -p $$)" 'has none of the functions'
fails "too much" "$AX" trace tls --bytes 2000000 -p $$

# --- a reader that cannot keep up, and one that is killed ---

cat >flood.c <<'END'
#include <stdlib.h>
#include <string.h>
int SSL_write(void *connection, const void *data, int n);
__attribute__((noinline, noclone)) int SSL_write(void *connection, const void *data, int n)
{
	__asm__ volatile("" : : "r"(connection), "r"(data) : "memory");
	return n;
}
int main(int argc, char **argv)
{
	static char data[3000];

	memset(data, 'x', sizeof(data));
	for (int i = 0; i < atoi(argv[argc - 1]); i++)
		SSL_write(&argc, data, sizeof(data));
	return 0;
}
END
gcc -O1 -o flood flood.c
printf 'kill -STOP $PPID; ./flood 5000; kill -CONT $PPID\n' >flood.sh
trace --library ./flood --format none -o json -O "$T/json" -c "sh flood.sh"
is "what there was no room for is counted" "$(jq -c 'select(.emitted) |
	[.emitted, .received + .dropped, .dropped > 0]' "$T/json")" "[5000,5000,true]"
is "what was received is there" "$(jq -r 'select(.event == "tls") | .length' "$T/json" | sort | uniq -c | tr -s ' ')" \
	" $(jq 'select(.emitted) | .received' "$T/json") 3000"
bg "$T/killed.out" "$AX" --instance "$INST" trace tls --library ./flood -p $$
wait_for "grep -q attached $T/killed.out"
kill -KILL "$BG"
wait "$BG" 2>/dev/null
# 300 connections at once, of which every third ends and is followed by another one: a connection is
# known by its address, which the next one may get
cat >many.py <<'END'
import ssl
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain("cert.pem", "key.pem")
anybody = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
anybody.check_hostname, anybody.verify_mode = False, ssl.CERT_NONE
def connect():
    a, b = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [anybody.wrap_bio(a, b), context.wrap_bio(b, a, server_side=True)]
    left = list(ends)
    while left:
        for end in list(left):
            try:
                end.do_handshake()
                left.remove(end)
            except ssl.SSLWantReadError:
                pass
    return ends[0]
open_now = {n: connect() for n in range(300)}
for n, c in open_now.items():
    c.write(b"c%d" % n)
for n in range(0, 300, 3):
    del open_now[n], c
    c = open_now[1000 + n] = connect()
for n, c in open_now.items():
    c.write(b"c%d" % n)
    c.write(b"c%d" % n)
END
trace --format text -o json -O "$T/json" -c "$PYTHON many.py"
jq -r 'select(.event == "tls" and .direction == "sent") | "\(.data) \(.connection)"' "$T/json" | sort | uniq -c >"$T/many"
is "of many connections each has a number of its own" "$(wc -l <"$T/many") $(awk '{ print $2 }' "$T/many" | sort -u | wc -l) \
$(awk '{ print $3 }' "$T/many" | sort -u | wc -l)" "400 400 400"
is "which it keeps" "$(awk '{ print $1 }' "$T/many" | sort | uniq -c | tr -s ' \n' ' ')" " 100 1 100 2 200 3 "
like "a program goes on when it was killed" "$(./flood 1000 && echo fine)" '^fine'
cd / || exit 1
done_testing
