#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Each command tells the version that stands in one place, and the commit that it was built from.
#
#	tests/command/version.sh BUILD
set -u
build=${1:?usage: version.sh BUILD}
root=$(cd "$(dirname "$0")/../.." && pwd)
version=$(sed -n 's/#define VCUDA_VERSION "\(.*\)"/\1/p' "$root/common/version.h")
protocol=$(sed -n 's/#define SESSION_VERSION \([0-9]*\)u/\1/p' "$root/protocol/wire/session.h")
commit=$(cat "$build/obj/commit")
failed=0
expect() { # COMMAND TEXT
	local said
	said=$("$build/bin/$1" --version)
	[ "$said" = "$2" ] || { echo "FAIL $1 --version says '$said', not '$2'"; failed=1; }
}
grep -qE '^[0-9]+\.[0-9]+\.[0-9]+$' <<<"$version" || { echo "FAIL version '$version'"; failed=1; }
case $commit in
unknown) ;; # sources without a repository
*) git -C "$root" cat-file -e "${commit%+}^{commit}" || { echo "FAIL commit '$commit'"; failed=1; } ;;
esac
expect vcuda "vcuda $version (commit $commit)"
expect vcuda-client "vcuda-client $version (commit $commit)"
expect gpu-agent "gpu-agent $version (commit $commit), session protocol $protocol"
[ $failed -eq 0 ] && echo "3 commands tell version and commit"
