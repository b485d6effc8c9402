#!/usr/bin/env bash
# fetch-sources.sh CACHE: the sources of libyaml, cJSON, OpenSSL and others as Debian has them, patches applied,
# into CACHE/sources.  The client's programs run in images of other people, so they bring these along,
# built for the C library that they need; Debian's own archives are for Debian's.
set -euo pipefail
cache=${1:?usage: fetch-sources.sh CACHE}
want="libyaml cjson hiredis openssl libmicrohttpd libzstd lz4 ncurses xxhash"

mkdir -p "$cache"
exec 9>"$cache/.sources.lock"
flock 9
missing=
for package in $want; do [ -e "$cache/sources/$package/VERSION" ] || missing+=" $package"; done
[ -n "$missing" ] || exit 0
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
		-o APT::Sandbox::User=root "$@" >"$part/apt.log" 2>&1 </dev/null
}
cd "$part"
apt update || { cat apt.log >&2; exit 1; }
mkdir -p "$cache/sources"
for package in $missing; do
	# A mirror may list a security update before it has it.
	apt source "$package" || apt source "$package/bookworm" || { cat apt.log >&2; exit 1; }
	rm -rf "$package" "${cache:?}/sources/$package"
	mv "$package"-*/ "$package"
	dpkg-parsechangelog -l"$package/debian/changelog" -SVersion >"$package/VERSION"
	mv "$package" "$cache/sources/$package"
done
touch "$cache/sources/.complete"
rm -rf "$part"
