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

check "lintian" clean "$build"/deb/*.deb
for unit in gpu-agent vcuda-client; do
	check "systemd-analyze security $unit" exposed "$root/packaging/systemd/$unit.service"
done
check "the same packages again" same
"$root/packaging/manual.py" "$build/bin" "$scratch"
for page in "$scratch"/man/*.gz; do
	check "man $(basename "$page")" sh -c "man --warnings -l '$page' 2>&1 >/dev/null"
done
for flag in --agent --token-file --socket-mode --idle-exit; do
	check "vcuda-client.8 has $flag" sh -c "man -l '$scratch/man/vcuda-client.8.gz' | grep -q -e '$flag'"
done
check "bash reads its completion" bash -n "$scratch/vcuda.bash"
check "zsh reads its completion" zsh -n "$scratch/_vcuda"
check "bash: vcuda " offers doctor vcuda '""'
check "bash: vcuda run --" offers --software vcuda run --
check "bash: gpu-agent --" offers --check-config gpu-agent --
check "bash: vcuda-client " offers drain vcuda-client '""'
PKG_CONFIG_PATH=$scratch/pc
mkdir "$PKG_CONFIG_PATH"
dpkg-deb --fsys-tarfile "$build"/deb/vcuda-libs_*.deb | tar -xOf - ./usr/share/pkgconfig/vcuda.pc >"$PKG_CONFIG_PATH/vcuda.pc"
export PKG_CONFIG_PATH
check "pkg-config names what is preloaded" sh -c "pkg-config --variable=preload vcuda | grep -q '^/usr/lib/vcuda/libutilities.so:/usr/lib/vcuda/libvcuda.so:' || echo no"
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
