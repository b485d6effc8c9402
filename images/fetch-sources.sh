#!/usr/bin/env bash
# fetch-sources.sh CACHE: the sources of libyaml and cJSON as Debian has them, patches applied, into
# CACHE/sources.  The client's programs run in images of other people, so they bring both along,
# built for the C library that they need; Debian's own archives are for Debian's.
set -euo pipefail
cache=${1:?usage: fetch-sources.sh CACHE}
want="libyaml cjson"

mkdir -p "$cache"
exec 9>"$cache/.sources.lock"
flock 9
[ -e "$cache/sources/.complete" ] && exit 0
command -v dpkg-source >/dev/null || { [ "$(id -u)" = 0 ] && apt-get update -qq &&
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends dpkg-dev \
		>/dev/null; }
part=$cache/sources.part
rm -rf "$part"
mkdir -p "$part/lists/partial"
key=/usr/share/keyrings/debian-archive-keyring.gpg
for suite in "debian bookworm" "debian-security bookworm-security"; do
	echo "deb-src [signed-by=$key] http://deb.debian.org/${suite% *} ${suite#* } main"
done >"$part/sources.list"
apt() {
	apt-get -qq -o Dir::Etc::sourcelist="$part/sources.list" -o Dir::Etc::sourceparts=- \
		-o Dir::State::lists="$part/lists" -o Dir::Cache="$part" \
		-o APT::Sandbox::User=root "$@" >"$part/apt.log" 2>&1 </dev/null ||
		{ cat "$part/apt.log" >&2; exit 1; }
}
cd "$part"
apt update
for package in $want; do
	apt source "$package"
	mv "$package"-*/ "$package"
	dpkg-parsechangelog -l"$package/debian/changelog" -SVersion >"$package/VERSION"
done
rm -rf lists ./*.tar.* ./*.dsc ./*.bin sources.list apt.log
touch .complete
rm -rf "$cache/sources"
mv "$part" "$cache/sources"
