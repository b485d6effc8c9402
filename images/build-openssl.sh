#!/usr/bin/env bash
# build-openssl.sh CACHE JOBS [TARGET FOLDER]: libssl.a and libcrypto.a for a target of zig's (musl where none
# is given) out of CACHE/sources/openssl, into CACHE/FOLDER (openssl-musl).  Only what TLS 1.3 with
# certificates needs; about a minute, once.
set -euo pipefail
cache=$(realpath "${1:?usage: build-openssl.sh CACHE JOBS}")
jobs=${2:?usage: build-openssl.sh CACHE JOBS}
target=${3:-x86_64-linux-musl}
zig="$cache/venv/bin/python -m ziglang"
out=$cache/${4:-openssl-musl}

exec 9>"$cache/.openssl.lock"
flock 9
# VERSION says which sources, this script which options.
stamp="$(cat "$cache/sources/openssl/VERSION") $(sha256sum <"$0")"
[ "$(cat "$out/STAMP" 2>/dev/null)" = "$stamp" ] && exit 0
part=$out.part
rm -rf "$part"
mkdir -p "$part/build"
cd "$part/build"
export SOURCE_DATE_EPOCH=0
CC="$zig cc -target $target -fPIC" AR="$zig ar" RANLIB="$zig ranlib" \
	../../sources/openssl/Configure linux-x86_64 no-shared no-tests no-dso no-engine no-async \
	no-dtls no-ssl3 no-tls1 no-tls1_1 no-tls1_2 no-comp no-ct no-cms no-ocsp no-ts no-srp no-srtp \
	no-idea no-seed no-camellia no-aria no-bf no-cast no-rc2 no-rc4 no-md4 no-mdc2 no-whirlpool \
	no-rmd160 no-sm2 no-sm3 no-sm4 no-siphash no-gost no-legacy no-module no-autoload-config \
	no-ui-console no-cmp no-nextprotoneg no-dgram no-dh no-dsa no-ec2m no-scrypt no-blake2 no-des no-ocb \
	no-siv no-rfc3779 no-chacha no-poly1305 no-deprecated \
	-Os -ffunction-sections -fdata-sections -fno-sanitize=undefined >log 2>&1 ||
	{ tail -20 log >&2; exit 1; }
make -s -j"$jobs" build_generated libcrypto.a libssl.a >log 2>&1 || { tail -20 log >&2; exit 1; }
mkdir ../include
cp -r ../../sources/openssl/include/openssl include/openssl -t ../include
cp libcrypto.a libssl.a ..
cd ..
rm -rf build
echo "$stamp" >STAMP
rm -rf "$out"
mv "$part" "$out"
