# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# Sourced after lib.sh by scripts that need certificates: authorities and what they sign, in this folder.

need openssl

# authority NAME [DAYS]
authority() {
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$1.key" -out "$1.pem" \
		-days "${2:-2}" -subj "/CN=$1" 2>/dev/null
	mkdir "$1.d" && : >"$1.d/index" && echo 01 >"$1.d/serial"
}
# certificate NAME AUTHORITY SUBJECT NAMES [START END]: for servers and clients
certificate() {
	openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$1.key" -out "$1.csr" \
		-subj "$3" 2>/dev/null
	cat >"$1.cnf" <<-EOF
		[ca]
		default_ca = it
		[it]
		database = $2.d/index
		serial = $2.d/serial
		new_certs_dir = $2.d
		certificate = $2.pem
		private_key = $2.key
		default_md = sha256
		unique_subject = no
		policy = any
		x509_extensions = ext
		default_days = 2
		[any]
		commonName = optional
		organizationName = optional
		[ext]
		subjectAltName = $4
		extendedKeyUsage = serverAuth, clientAuth
	EOF
	openssl ca -batch -notext -config "$1.cnf" -in "$1.csr" -out "$1.pem" \
		${5:+-startdate "$5" -enddate "$6"} 2>"$1.log" || diag "$(cat "$1.log")"
}
