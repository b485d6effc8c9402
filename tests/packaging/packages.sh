#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What `make deb` made: lintian finds nothing, the units are as closed as systemd can judge without running them,
# the pages have no fault of layout, completion is understood by bash and zsh, and packing again gives the same bytes.
#
#	tests/packaging/packages.sh BUILD
set -euo pipefail
build=${1:?usage: packages.sh BUILD}
root=$(cd "$(dirname "$0")/../.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
passed=0 failed=0
check() { # WHAT COMMAND…: passes where the command succeeds and says nothing
	local what=$1 said
	shift
	if said=$("$@" 2>&1) && [ -z "$said" ]; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		printf 'FAIL %s\n%s\n' "$what" "$(head -n 20 <<<"$said")"
	fi
}

clean() { # lintian's own remark about root is none of ours
	lintian --allow-root --fail-on error,warning "$@" 2>&1 | grep -v '^running with root privileges'
	[ "${PIPESTATUS[0]}" = 0 ]
}

exposed() { # UNIT: at most 2.0
	systemd-analyze security --offline=yes --threshold=20 "$1" >"$scratch/said" 2>&1 || tail -n 3 "$scratch/said"
}

same() {
	"$root/packaging/deb.sh" "$build" "$scratch/again" >/dev/null 2>&1 && diff "$build/deb/SHA256SUMS" "$scratch/again/SHA256SUMS"
}

completes() { # WORDS…: what bash offers behind them
	bash --norc -c "source '$scratch/vcuda.bash'; COMP_WORDS=($*); COMP_CWORD=\$((\${#COMP_WORDS[@]} - 1))
		_vcuda \"\${COMP_WORDS[0]}\" 2>/dev/null; echo \"\${COMPREPLY[*]}\""
}

offers() { # WANTED WORDS…
	local wanted=$1
	shift
	grep -qw -e "$wanted" <<<"$(completes "$@")" || echo "behind '$*' there is no $wanted: $(completes "$@")"
}

# What `VERB --help` of vcuda names, pages and completion have: each verb and each flag.
verbs() {
	"$build/bin/vcuda" --help | sed -nE 's/^  vcuda ([a-z]+)( .*|)$/\1/p' | sort -u
}

flags() { # VERB
	"$build/bin/vcuda" "$1" --help | grep -oE -e '(^|[^A-Za-z0-9-])--?[A-Za-z][A-Za-z0-9-]*' | sed -E 's/^[^-]//' | sort -u
}

helps() { # VERB: its help is its own, begins with its form and ends well
	"$build/bin/vcuda" "$1" --help >"$scratch/said" || echo "status $?"
	grep -qE "^vcuda $1( |$)" "$scratch/said" || head -n 3 "$scratch/said"
}

documented() { # PAGE FLAG…
	local page flag
	page=$(man -l "$scratch/man/$1.gz" | tr -s ' \n' ' ')
	shift
	for flag; do grep -qF -e "$flag" <<<"$page" || echo "the page has no $flag"; done
}

options() { # COMMAND: its options with their values, as --help has them
	"$build/bin/$1" --help | sed -nE 's/^  (-[^ ]+( [^ ]+)*).*/\1/p'
}

# Each library that a program or library of a package names is in the package, in vcuda-libs, or in a package
# that it depends on.
satisfied() { # PACKAGE
	local file name owner depends
	depends=$(dpkg-deb --field "$build/deb/$1"_*.deb Depends)
	mkdir -p "$scratch/unpacked"
	dpkg-deb -x "$build/deb/$1"_*.deb "$scratch/unpacked/$1"
	find "$scratch/unpacked/$1" -type f -print0 | while IFS= read -rd '' file; do
		head -c 4 "$file" | grep -q ELF || continue
		objdump -p "$file" | awk '/NEEDED/ {print $2}' | while read -r name; do
			[ -e "$scratch/unpacked/$1/usr/lib/vcuda/${name##*/}" ] && continue
			if [ -e "$scratch/unpacked/vcuda-libs/usr/lib/vcuda/$name" ]; then
				owner=vcuda-libs
			else # libopenblas0 is any of several
				owner=$(dpkg -S "*/$name" 2>/dev/null | sed -n 's/:amd64: .*\/lib\/.*//p' | sed 's/-pthread$//' | sort -u)
			fi
			[ -n "$owner" ] && grep -qxF "$owner" <<<"$(tr ',' '\n' <<<"$depends" | awk '{print $1}')" ||
				echo "$(basename "$file") needs $name of ${owner:-nobody}, and $1 depends on: $depends"
		done
	done
}

check "lintian" clean "$build"/deb/*.deb
for unit in gpu-agent vcuda-client; do
	check "systemd-analyze security $unit" exposed "$root/packaging/systemd/$unit.service"
done
check "the same packages again" same
"$root/packaging/manual.py" "$build/bin" "$scratch"
for page in "$scratch"/man/*.gz; do
	check "man $(basename "$page")" sh -c "man --warnings -l '$page' 2>&1 >/dev/null"
done
for command in vcuda-client gpu-agent; do
	mapfile -t flags < <(options $command)
	[ "${#flags[@]}" -gt 20 ] || check "$command --help has options" echo "${#flags[@]}"
	check "$command.8 has its options" documented $command.8 "${flags[@]}"
done
mapfile -t verbs < <(verbs)
[ "${#verbs[@]}" -ge 10 ] || check "vcuda --help has verbs" echo "${verbs[*]}"
for verb in "${verbs[@]}"; do
	check "vcuda $verb --help" helps "$verb"
	check "bash: vcuda $verb" offers "$verb" vcuda '""'
	check "zsh: vcuda $verb" sh -c "grep -qE '^[[:space:]]+$verb\\) _arguments' '$scratch/_vcuda' || echo none"
	for flag in $(flags "$verb"); do
		check "vcuda.1: vcuda $verb $flag" documented vcuda.1 "$flag"
		check "bash: vcuda $verb $flag" offers "$flag" vcuda "$verb" -
	done
done
for package in vcuda-libs vcuda vcuda-client gpu-agent; do
	check "$package: what its files need" satisfied $package
done
for package in vcuda-client gpu-agent; do # of a header alone no dependency tells
	check "$package: its SBOM and copyright name xxhash" sh -c "'$root/packaging/spdx.py' /nonexistent '$build/deb/$package'_*.deb |
		grep '\"pkg:deb/debian/xxhash@[0-9]' >/dev/null && grep -q '^Files: xxhash' '$scratch/unpacked/$package/usr/share/doc/$package/copyright' || echo no"
done
check "bash reads its completion" bash -n "$scratch/vcuda.bash"
check "zsh reads its completion" zsh -n "$scratch/_vcuda"
check "bash: vcuda weights " offers push vcuda weights '""'
check "bash: gpu-agent --" offers --check-config gpu-agent --
check "bash: vcuda-client " offers drain vcuda-client '""'
PKG_CONFIG_PATH=$scratch/pc
mkdir "$PKG_CONFIG_PATH"
dpkg-deb --fsys-tarfile "$build"/deb/vcuda-libs_*.deb | tar -xOf - ./usr/share/pkgconfig/vcuda.pc >"$PKG_CONFIG_PATH/vcuda.pc"
export PKG_CONFIG_PATH
check "pkg-config names what is preloaded" sh -c "pkg-config --variable=preload vcuda | grep -q '^/usr/lib/vcuda/libutilities.so:/usr/lib/vcuda/libvcuda.so:' || echo no"
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
