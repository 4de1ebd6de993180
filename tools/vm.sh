#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Boots one of Debian's kernels in qemu, with ax and its libraries, busybox and tests/vm in an
# initramfs, and runs a script of tests/vm there:
#
#   tools/vm.sh [--kernel 6.1|6.12] [--timeout S] [--ax FILE] [--raw] [-- SCRIPT [ARG...]]
#   tools/vm.sh --pair 6.1,6.12 [--timeout S] [--ax FILE] [--raw] [-- SCRIPT [ARG...]]
#
# SCRIPT is by default all.sh, which runs every tests/vm/test_*.sh, or those that it is given. TAP lines come out with the
# kernel before the test's name; everything else goes to a log that is shown when something fails.
# With --pair there are two machines whose eth0 are joined by a wire; SCRIPT, by default cluster_pair.sh, is told 1 or 2
# behind its arguments, and what the machines say comes one after the other.
# With --raw, all that the script prints comes out as it is.
# Needs no root and no KVM. Kernels and busybox are downloaded once, into .output/vm.
set -euo pipefail
export LC_ALL=C
cd "$(dirname "$0")/.."

# What ax, and what its tests compare it with, need of a kernel whose drivers are modules.
modules=(veth tun dummy nf_tables nft_masq nft_nat nft_chain_nat nft_ct inet_diag tcp_diag
	udp_diag sch_ingress cls_bpf 8021q tls gcm ctr ghash-generic kvm-amd wireguard bridge)
# Programs of others for the same interface, of Debian's xdp-tools, and what loads more of them.
others=(xdp-filter xdp-loader bpftool)
# What a cluster needs: etcd, and the library that ax opens to reach it.
cluster=(etcd)
# What is spliced, and a module of it.
spliced=(nginx)
stream=/usr/lib/nginx/modules/ngx_stream_module.so
libraries=(libcurl.so.4)
# What two machines that are joined have besides.
joined=(redis-server redis-cli)
cache=.output/vm

die()
{
	echo "vm.sh: $*" >&2
	exit 1
}

# Two machines: each is run by a script like this, at its own end of the wire.
pair_vms=() pair_wires=''
end_pair()
{
	[ ${#pair_vms[@]} = 0 ] || kill "${pair_vms[@]}" 2>/dev/null || true
	[ ${#pair_vms[@]} = 0 ] || wait "${pair_vms[@]}" || true
	[ -z "$pair_wires" ] || rm -rf "$pair_wires"
}
run_pair()
{
	local kernels i failed=0

	IFS=, read -r -a kernels <<<"$1"
	[ ${#kernels[@]} = 2 ] || die "--pair wants two versions such as 6.1,6.12, not '$1'"
	shift
	pair_wires=$(mktemp -d)
	trap end_pair EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
	for i in 1 2; do
		tools/vm.sh --kernel "${kernels[i - 1]}" --wire "$pair_wires/$i" --timeout "$limit" --ax "$ax" ${raw:+--raw} \
			-- "$@" "$i" >"$pair_wires/out.$i" &
		pair_vms+=($!)
	done
	for i in 1 2; do
		wait "${pair_vms[i - 1]}" || failed=1
		cat "$pair_wires/out.$i"
	done
	pair_vms=()
	exit $failed
}

kernel=6.12 limit=120 ax=.output/gcc/ax raw='' pair='' wire=''
while [ $# -gt 0 ]; do
	case $1 in
	--kernel) kernel=${2:?} && shift 2 ;;
	--timeout) limit=${2:?} && shift 2 ;;
	--ax) ax=${2:?} && shift 2 ;;
	--raw) raw=1 && shift ;;
	--pair) pair=${2:?} && shift 2 ;;
	--wire) wire=${2:?} && shift 2 ;; # of --pair: a socket, whose name ends with 1 or 2
	--) shift && break ;;
	*) die "'$1' is not an option; usage: vm.sh [--kernel 6.1|6.12 | --pair 6.1,6.12] [--timeout S] [--ax FILE] [--raw] [-- SCRIPT [ARG...]]" ;;
	esac
done
if [ -n "$pair" ]; then
	[ $# -gt 0 ] || set -- cluster_pair.sh
	run_pair "$pair" "$@"
fi
[ $# -gt 0 ] || set -- all.sh
[[ $kernel =~ ^[0-9]+\.[0-9]+$ ]] || die "--kernel wants a version such as 6.1, not '$kernel'"
[ -e "tests/vm/$1" ] || die "there is no script tests/vm/$1"
# The suite of socket behaviours, and the test of what splicing leaves to TCP, stand where ax was built.
suite=${ax%/*}/tests/splice/suite
guards=${ax%/*}/tests/prog/test_splice_guards
for program in "$ax" "$suite" "$guards"; do
	[ -x "$program" ] || die "$program does not exist; build it with: make vm-build"
done
if [ -n "$wire" ]; then
	modules+=(virtio_pci virtio_net)
else
	joined=()
fi
[ "$(dpkg --print-architecture)" = amd64 ] || die "the VM is only made for amd64"
for tool in qemu-system-x86_64 cpio modprobe depmod xz "${others[@]}" "${cluster[@]}" "${spliced[@]}" "${joined[@]}"; do
	PATH=$PATH:/usr/sbin:/sbin command -v "$tool" >/dev/null ||
		die "$tool is missing; as root: tools/deps.sh vm"
done
PATH=$PATH:/usr/sbin:/sbin
mkdir -p "$cache"

# Debian's releases whose kernels these are. A system that is younger knows the older one's archive only
# by this: lists of its own, from where the system's come.
archive=()
use_archive_of()
{
	local release=$1 dir=$PWD/$cache/apt-$1 uri

	uri=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | head -n 1)
	[ -n "$uri" ] || return 0
	mkdir -p "$dir"/{lists,archives}/partial
	echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $uri $release main" >"$dir/sources.list"
	archive=(-o "Dir::Etc::SourceList=$dir/sources.list" -o Dir::Etc::SourceParts=/dev/null
		-o "Dir::State::Lists=$dir/lists" -o "Dir::Cache=$dir" -o APT::Sandbox::User=)
	apt-get "${archive[@]}" -q update >&2 || true
}

# Unpacks the newest package of that name into $cache/NAME, unless it is there.
# The lists may be missing or too old to download from: then they are renewed, once; and a kernel that
# they do not have is looked for in the release that it is of.
unpack()
{
	local prefix=$2 pattern=$3 dir=$cache/$1 tmp pkg try name

	[ ! -d "$dir" ] || return 0
	archive=()
	tmp=$(mktemp -d "$cache/tmp.XXXXXX")
	for try in 1 2 3; do
		pkg=$(apt-cache "${archive[@]}" pkgnames "$prefix" | grep -xE "$pattern" | sort -V | tail -n 1) || pkg=
		if [ -n "$pkg" ] && (cd "$tmp" && apt-get -q "${archive[@]}" -o APT::Sandbox::User= download "$pkg" \
			>apt.log 2>&1); then
			break
		fi
		case $try in
		1) [ "$(id -u)" != 0 ] || apt-get -q -o DPkg::Lock::Timeout=120 update >&2 || true ;;
		2) use_archive_of bookworm ;;
		*)
			cat "$tmp/apt.log" >&2 2>/dev/null || true
			rm -rf "$tmp"
			die "could not download ${pkg:-a package named $prefix...} from Debian; is apt-get update possible?"
			;;
		esac
	done
	mkdir "$tmp/root"
	dpkg -x "$tmp"/*.deb "$tmp/root"
	for name in bin lib; do # packages of Debian 13 have all below /usr
		[ -e "$tmp/root/$name" ] || ln -s "usr/$name" "$tmp/root/$name"
	done
	[ ! -d "$tmp/root/lib/modules" ] || depmod -b "$tmp/root" "$(ls "$tmp/root/lib/modules")"
	mv "$tmp/root" "$dir"
	rm -rf "$tmp"
}

fetch()
{
	local lock

	exec {lock}>"$cache/lock"
	flock "$lock"
	unpack busybox busybox-static 'busybox-static'
	unpack "linux-$kernel" "linux-image-$kernel." \
		"linux-image-${kernel//./\\.}\.[0-9].*[0-9a-z]-cloud-amd64"
	exec {lock}>&-
}

# Single quotes around each argument, for the shell inside.
quote()
{
	local a

	for a in "$@"; do
		printf " '%s'" "${a//\'/\'\\\'\'}"
	done
}

# Modules in the order in which they must be loaded: 00-name.ko, 01-name.ko, ...
pack_modules()
{
	local to=$1 base=$cache/linux-$kernel release word path file n=0
	declare -A packed=()

	release=$(ls "$base/lib/modules")
	while read -r word path _; do
		if [ "$word" != insmod ] || [ -n "${packed[$path]:-}" ]; then
			continue
		fi
		packed[$path]=1
		file=$(printf '%02d-%s' "$n" "${path##*/}")
		case $path in
		*.xz) xz -dc "$path" >"$to/${file%.xz}" ;;
		*) cp "$path" "$to/$file" ;;
		esac
		n=$((n + 1))
	done < <(modprobe -C /dev/null -d "$base" -S "$release" --show-depends -a "${modules[@]}")
	[ "$n" -ge ${#modules[@]} ] || die "kernel $kernel lacks some of the modules ${modules[*]}"
}

# The libraries that a program loads, or another one.
pack_needed()
{
	local root=$1 of=$2 file

	while read -r file; do
		mkdir -p "$root${file%/*}"
		cp -Ln "$file" "$root$file"
	done < <(ldd "$of" 2>/dev/null | grep -o '/[^ ]*')
}

# A program with its libraries, if it is not a static one.
pack_program()
{
	cp "$2" "$1/bin/"
	pack_needed "$1" "$2"
}

# Libraries that ax opens when it needs them.
pack_libraries()
{
	local root=$1 name file

	for name in "${libraries[@]}"; do
		file=$(ldconfig -p | sed -n "s/^\t$name .*x86-64.* => //p" | head -n 1)
		[ -n "$file" ] || die "the library $name is missing; as root: tools/deps.sh build vm"
		mkdir -p "$root${file%/*}"
		cp -Ln "$file" "$root$file"
		pack_needed "$root" "$file"
	done
}

# Programs of others, with the BPF objects that they load.
pack_others()
{
	local root=$1 program file objects

	for program in "${others[@]}"; do
		pack_program "$root" "$(command -v "$program")"
	done
	objects=$(dpkg -L xdp-tools libxdp1 | grep '/bpf/xdp[^/]*\.o$') ||
		die "the package xdp-tools has no BPF objects; as root: tools/deps.sh vm"
	for file in $objects; do
		mkdir -p "$root${file%/*}"
		cp "$file" "$root$file"
	done
}

pack()
{
	local root=$1 image=$2 program

	shift 2
	mkdir -p "$root"/{bin,modules,tests}
	cp "$cache/busybox/bin/busybox" "$root/bin/busybox"
	pack_program "$root" "$ax"
	pack_program "$root" "$suite"
	pack_program "$root" "$guards"
	for program in "$cache"/bin/*; do
		[ ! -x "$program" ] || pack_program "$root" "$program"
	done
	pack_others "$root"
	for program in "${cluster[@]}" "${spliced[@]}" "${joined[@]}"; do
		pack_program "$root" "$(command -v "$program")"
	done
	pack_libraries "$root"
	[ -e "$stream" ] || die "$stream does not exist; as root: tools/deps.sh test vm"
	mkdir -p "$root${stream%/*}"
	cp "$stream" "$root$stream"
	cp tests/vm/*.sh tests/splice/expected/*.tsv "$root/tests/"
	cp -r tests/splice/earlier "$root/tests/"
	cp "$cache"/bin/*.bpf.o "$root/tests/"
	install -m 0755 tests/vm/init "$root/init"
	pack_modules "$root/modules"
	printf '%s\n' "exec sh /tests/$1$(quote "${@:2}")" >"$root/run.sh"
	(cd "$root" && find . | cpio --quiet -o -H newc -R 0:0) >"$image"
}

# Passes TAP through, or all, and keeps everything; what the script's exit status was is in $exit_status after.
filter()
{
	local line

	# (the last line may lack its end)
	while IFS= read -r line || [ -n "$line" ]; do
		line=${line%$'\r'}
		printf '%s\n' "$line" >>"$log"
		if [[ $line =~ ^'# exit '([0-9]+)$ ]]; then
			exit_status=${BASH_REMATCH[1]}
		elif [ -n "$raw" ]; then
			printf '%s\n' "$line"
		elif [[ $line =~ ^((not )?ok)( [0-9]+)?( - )(.*)$ ]]; then
			printf '%s%s - %s: %s\n' "${BASH_REMATCH[1]}" "${BASH_REMATCH[3]}" "$kernel" \
				"${BASH_REMATCH[5]}"
			[ -z "${BASH_REMATCH[2]}" ] || failed=1
		elif [[ $line =~ ^1\.\.[0-9]+ || $line =~ ^'# test_'[a-z_]+'.sh: '[0-9]+' s'$ ]]; then
			printf '%s\n' "$line"
		fi
	done
}

fetch
tmp=$(mktemp -d)
vm=
trap '[ -z "$vm" ] || kill "$vm" 2>/dev/null || true; rm -rf "$tmp"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
log=$tmp/log console=$tmp/console exit_status='' failed=0
: >"$log"
pack "$tmp/root" "$tmp/initramfs" "$@"

# Two serial lines: the kernel's messages on the first, the script's output on the second.
# (One thread for both processors: with two, a jump label that one changes while the other runs it ended
# in an oops of type int3 once. And no_timer_check: on a machine that does much else the kernel's look
# for a timer that ticks finds none in time, and it panics at boot. What hardens a kernel, or accounts for its own
# memory, takes a fifth of an emulated processor and is not what is tested.)
light='init_on_alloc=0 hardened_usercopy=off randomize_kstack_offset=off cgroup.memory=nokmem audit=0 kfence.sample_interval=0'
qemu=(qemu-system-x86_64 -accel "tcg,thread=single" -cpu "qemu64,+svm,+npt,+rdrand,+ssse3,+sse4.1,+sse4.2" -smp 2 -m 1024 -nodefaults -no-user-config
	-display none -no-reboot -net none
	-kernel "$(echo "$cache/linux-$kernel"/boot/vmlinuz-*)" -initrd "$tmp/initramfs"
	-append "console=ttyS0 quiet loglevel=5 panic=-1 nowatchdog no_timer_check mitigations=off random.trust_cpu=on $light"
	-serial "file:$console" -serial stdio)
# (datagrams are lost until the other machine is there)
[ -z "$wire" ] || qemu+=(-netdev "dgram,id=wire,local.type=unix,local.path=$wire,remote.type=unix,remote.path=${wire%?}$((3 - ${wire: -1}))"
	-device "virtio-net-pci,netdev=wire,romfile=,mac=52:54:00:00:00:0${wire: -1}")
exec {out}< <(exec timeout -k 5 "$limit" "${qemu[@]}" </dev/null 2>>"$console")
vm=$!
filter <&"$out"
vm=

if [ -z "$exit_status" ]; then
	echo "not ok - $kernel: the VM ended by itself, crashed, or was still running after $limit s"
	failed=1
	exit_status=1
fi
if [ "$failed" = 1 ] || [ "$exit_status" != 0 ]; then
	[ -n "$raw" ] || sed 's/^/# /' "$log"
	echo "# --- the kernel's messages:"
	tail -n 100 "$console" | tr -d '\r' | sed 's/^/# /'
fi
[ "$failed" = 0 ] || exit 1
exit "$exit_status"
