# SPDX-License-Identifier: GPL-2.0-or-later
# What programs see of TCP connections, of members of a sockhash and of redirected ones, is on this
# kernel what was kept of it (tests/splice). An emulated machine is slow.
release=$(uname -r | cut -d. -f1,2)
exec suite --slow 2 --compare "/tests/$release.tsv" "/tests/earlier/$release.tsv"
