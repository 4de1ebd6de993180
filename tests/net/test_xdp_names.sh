#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# Rules by the names that packets carry, with programs that send them: queries of dig, hellos and
# requests of curl. In both directions, by config file, by command line and explained.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/xdp.sh"
need ip jq dig curl openssl "$PYTHON"

peer_host
known_neighbours
for at in 198.51.100.1 2001:db8:2::1; do
	bg "$T/named" "$PYTHON" "$SRC/named.py" "$at"
done
wait_for '[ "$(ss -Hltn "sport = :53" | grep -cE "198.51.100.1:53|2001:db8:2::1")" = 2 ]'

asks() { # NAME [DIG'S OPTIONS]: the address, if there is an answer
	peer dig +short +time=1 +tries=1 @198.51.100.1 "$@" 2>/dev/null | grep -v '^;'
}
ADDRESS=192.0.2.1

# --- DNS ---

cat >"$T/in.yaml" <<'END'
rules:
  - {name: allowed, dns-name: ok.example.org, action: pass}
  - {name: blocked, dns-name: [example.org, Ads.Example.net.], dport: 53, action: drop}
  - {name: counted, dns-name: example.com, action: pass}
END
like "a list with names" "$(xdp load xc0 --rules "$T/in.yaml" 2>&1)" "^xc0: 3 rules, "
is "another name is answered" "$(asks example.com) $(asks www.example.com)" "$ADDRESS $ADDRESS"
is "and counted" "$(count counted)" 2
is "a name and those under it are not" "$(asks example.org) $(asks a.b.EXAMPLE.org) $(asks ads.example.net.)" "  "
is "but for the exception" "$(asks ok.example.org) $(asks very.ok.example.org)" "$ADDRESS $ADDRESS"
is "nor are what only ends alike" "$(asks anexample.org) $(asks example.net)" "$ADDRESS $ADDRESS"
is "with all that dig can add" "$(asks example.org +dnssec +cookie +nsid +padding=128 +subnet=10.0.0.0/8)" ""
is "for another type" "$(asks example.org TXT +noedns)" ""
is "by IPv6" "$(peer dig +short +time=1 +tries=1 @2001:db8:2::1 www.example.org 2>/dev/null | grep -v '^;')" ""
is "another by IPv6" "$(peer dig +short +time=1 +tries=1 @2001:db8:2::1 www.example.com 2>/dev/null)" "$ADDRESS"
is "each query was counted once" "$(count blocked) $(count allowed)" "6 2"
is "by TCP it is not seen" "$(asks example.org +tcp)" "$ADDRESS"

like "what is printed is what was loaded" "$(xdp rule list xc0)" \
	"dport 53 dns-name ads.example.net,example.org action drop"
xdp rule list xc0 -o yaml >"$T/back.yaml"
like "as a file, too" "$(xdp apply xc0 --rules "$T/back.yaml" 2>&1)" "3 rules|nothing to change|already"
like "status names the field" "$(xdp status xc0)" "dns-name"
question=123401000001000000000000
like "explain: a query" "$(xdp explain xc0 \
	--packet "udp 198.51.100.2:5 > 198.51.100.1:53 data hex:${question}03616473076578616d706c65036e65740000010001")" \
	'verdict +drop.*rule +name blocked'
like "explain: one that is cut off" "$(xdp explain xc0 \
	--packet "udp 198.51.100.2:5 > 198.51.100.1:53 data hex:${question}03616473076578616d706c65036e657400000100")" \
	'verdict +pass.*rule +default'
ok "a rule comes" xdp rule add xc0 --at 1 name more dns-name example.com,example.net action drop
is "and holds" "$(asks www.example.com)$(asks example.net)" ""
ok "and goes" xdp rule del xc0 more
is "and does not hold" "$(asks www.example.com)" "$ADDRESS"
like "what is no name is refused" "$(xdp rule add xc0 dns-name '*.example.org' action drop 2>&1)" \
	'dns-name "\*.example.org" is not valid: use example.org, which stands for all names under it'

# what leaves: the answers
cat >"$T/out.yaml" <<'END'
direction: egress
rules:
  - {name: answers, dns-name: answers.test, sport: 53, action: drop}
  - {name: others, dns-name: ., action: pass}
END
like "a list for what leaves" "$(xdp load xc0 --rules "$T/out.yaml" 2>&1)" "^xc0:egress: 2 rules"
is "an answer does not leave" "$(asks www.answers.test)" ""
is "another does" "$(asks www.example.com)" "$ADDRESS"
is "both were counted" "$(count answers packets xc0:egress) $(count others packets xc0:egress)" "1 1"
ok "it is taken away" xdp unload xc0 --direction egress

# some names and nothing else: what cannot be seen is dropped, too
cat >"$T/only.yaml" <<'END'
default: drop
rules:
  - {name: some, dns-name: example.org, dport: 53, action: pass}
END
ok "a list that passes some names" xdp apply xc0 --rules "$T/only.yaml"
is "they are answered" "$(asks www.example.org)" "$ADDRESS"
is "no others are" "$(asks www.example.com)" ""
is "nor by TCP" "$(asks www.example.org +tcp)" ""

# --- TLS ---

openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=example \
	-keyout "$T/key.pem" -out "$T/cert.pem" 2>/dev/null
bg "$T/tls" "$PYTHON" "$SRC/tls_web.py" "$T/cert.pem" "$T/key.pem" 443 8443
wait_for '[ "$(ss -Hltn "sport = :443 or sport = :8443" | wc -l)" -ge 2 ]'
tls() { # NAME [PORT]: of whom a connection is answered
	peer curl -gksS -m 2 -o /dev/null -w '%{http_code}' --resolve "$1:${2:-443}:198.51.100.1" \
		"https://$1:${2:-443}/" 2>/dev/null
}
cat >"$T/tls.yaml" <<'END'
rules:
  - {name: allowed, tls-sni: ok.example.org, action: pass}
  - {name: blocked, tls-sni: [example.org, ads.example.net], dport: 443, action: drop}
  - {name: seen, tls-sni: ., action: pass}
END
ok "a list with names of TLS" xdp apply xc0 --rules "$T/tls.yaml"
is "another server is talked to" "$(tls example.com) $(tls www.example.com)" "200 200"
is "and seen" "$(count seen)" 2
is "a name and those under it are not" "$(tls example.org) $(tls WWW.example.org) $(tls ads.example.net)" "000 000 000"
is "but for the exception" "$(tls a.ok.example.org)" 200
is "and at another port" "$(tls example.org 8443)" 200
ok "what was dropped is counted" test "$(count blocked)" -ge 3
is "who says no name is not seen" "$(peer sh -c 'echo Q | timeout 5 openssl s_client -noservername \
	-connect 198.51.100.1:443 2>/dev/null | grep -c "BEGIN CERTIFICATE"'; count seen)" "1"$'\n'"3"
is "nor is DNS concerned" "$(asks example.org)" "$ADDRESS"

cat >"$T/tls-out.yaml" <<'END'
direction: egress
rules:
  - {name: blocked, tls-sni: example.org, action: drop}
END
ok "what this host says leaves" xdp unload xc0
ok "a list for it" xdp load xc0 --rules "$T/tls-out.yaml"
bg "$T/tls2" nsenter -t "$PEER_PID" -n "$PYTHON" "$SRC/tls_web.py" "$T/cert.pem" "$T/key.pem" 443
wait_for 'peer ss -Hltn "sport = :443" | grep -q .'
own() {
	curl -gksS -m 2 -o /dev/null -w '%{http_code}' --resolve "$1:443:198.51.100.2" "https://$1/" 2>/dev/null
}
is "a hello does not leave, another does" "$(own www.example.org) $(own www.example.com)" "000 200"
ok "it is counted" test "$(count blocked packets xc0:egress)" -ge 1
ok "it goes" xdp unload xc0 --direction egress

# --- HTTP ---

bg "$T/http" "$PYTHON" -m http.server -d "$T" --bind 198.51.100.1 80
wait_for 'ss -Hltn "sport = :80" | grep -q .'
http() { # NAME [CURL'S OPTIONS]: of whom a request is answered
	peer curl -gsS -m 2 -o /dev/null -w '%{http_code}' --resolve "$1:80:198.51.100.1" "${@:2}" \
		"http://$1/cert.pem" 2>/dev/null
}
cat >"$T/http.yaml" <<'END'
rules:
  - {name: allowed, http-host: ok.example.org, action: pass}
  - {name: blocked, http-host: [example.org, ads.example.net], dns-name: example.org, action: drop}
  - {name: seen, http-host: ., action: pass}
END
ok "a list with names of HTTP" xdp load xc0 --rules "$T/http.yaml"
is "another host is asked" "$(http example.com) $(http www.example.com)" "200 200"
is "and seen" "$(count seen)" 2
is "a name and those under it are not" "$(http example.org) $(http WWW.example.org) $(http ads.example.net)" "000 000 000"
is "but for the exception" "$(http a.ok.example.org)" 200
is "with much else in the request" "$(http example.com -H "Cookie: $(printf '%0900d' 0)" -H 'Host: a.example.org:80')" 000
is "through a proxy" "$(peer curl -gsS -m 2 -o /dev/null -w '%{http_code}' -x http://198.51.100.1:80 \
	http://www.example.org/ 2>/dev/null)" 000
is "by the same rule, in another protocol" "$(asks www.example.org)" ""
like "a rule of all keys" "$(xdp rule list xc0)" "dns-name example.org http-host ads.example.net,example.org action drop"
ok "it goes" xdp unload xc0

# --- many names ---

awk 'BEGIN {
	print "rules:"
	for (i = 0; i < 5000; i++)
		printf "- {dns-name: [n%d.example.org, n%d.example.net], dport: 53, action: drop}\n", i, i
}' >"$T/many.yaml"
like "5000 rules with two names each" "$(xdp load xc0 --rules "$T/many.yaml" 2>&1)" "5000 rules"
is "the last" "$(asks a.n4999.example.org)$(asks n4999.example.net)" ""
is "one that is in none" "$(asks n5000.example.org) $(asks example.org)" "$ADDRESS $ADDRESS"

xdp_done
