#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# old-libraries.sh CACHE JOBS: the libraries that the wheel's programs need, built against glibc 2.17, into
# CACHE/glibc-2.17: static ones out of Debian's sources, and OpenBLAS as the Python package registry has it
# (package scipy-openblas32, which serves manylinux_2_17). About four minutes of a core, once.
set -euo pipefail
cache=$(realpath "${1:?usage: old-libraries.sh CACHE JOBS}")
jobs=${2:?usage: old-libraries.sh CACHE JOBS}
here=$(cd "$(dirname "$0")" && pwd)
target=x86_64-linux-gnu.2.17
zig="$cache/venv/bin/python -m ziglang"
out=$cache/glibc-2.17
sources=$cache/sources
openblas=scipy-openblas32==0.3.31.188.0

"$here/../images/fetch-sources.sh" "$cache"
"$here/../images/build-openssl.sh" "$cache" "$jobs" $target openssl-glibc-2.17
exec 9>"$cache/.glibc-2.17.lock"
flock 9
stamp=$(cat "$0" "$sources"/*/VERSION "$cache/openssl-glibc-2.17/STAMP" | sha256sum)
[ "$(cat "$out/STAMP" 2>/dev/null)" = "$stamp" ] && exit 0
part=$out.part
rm -rf "$part"
mkdir -p "$part"/{include,lib,build,doc}
cc="$zig cc -target $target -O2 -g0 -fPIC -fno-sanitize=undefined"

archive() { # NAME FLAGS FILE…: lib/libNAME.a
	local name=$1 flags=$2 file
	shift 2
	mkdir -p "$part/build/$name"
	for file; do # shellcheck disable=SC2086
		echo "$cc $flags -c $file -o $part/build/$name/$(basename "$file" | tr . _).o"
	done | xargs -d '\n' -P "$jobs" -I{} sh -c '{}'
	$zig ar rcsD "$part/lib/lib$name.a" "$part/build/$name"/*.o
}

licence() { # NAME FILE
	cp "$2" "$part/doc/$1.LICENSE"
	cp "$sources/$1/VERSION" "$part/doc/$1.VERSION"
}

archive yaml "-DYAML_DECLARE_STATIC -DYAML_VERSION_STRING='\"0.2.5\"' -DYAML_VERSION_MAJOR=0 \
	-DYAML_VERSION_MINOR=2 -DYAML_VERSION_PATCH=5 -I$sources/libyaml/include" "$sources"/libyaml/src/*.c
archive cjson "" "$sources/cjson/cJSON.c"
# Its own function has another type than its header says, of the same call.
archive hiredis -Wno-incompatible-function-pointer-types "$sources"/hiredis/{alloc,async,hiredis,net,read,sds}.c
archive lz4 "" "$sources"/lz4/lib/lz4*.c
archive zstd "-DZSTD_DISABLE_ASM=1 -DZSTD_LEGACY_SUPPORT=0" "$sources"/libzstd/lib/{common,decompress,compress}/*.c
(
	mkdir "$part/build/microhttpd"
	cd "$part/build/microhttpd"
	CC="$cc" AR="$zig ar" RANLIB="$zig ranlib" "$sources/libmicrohttpd/configure" --host=x86_64-linux-gnu \
		--disable-shared --disable-https --disable-doc --disable-examples --disable-curl --disable-tools \
		--disable-postprocessor --disable-dauth --disable-bauth --with-pic >log 2>&1 &&
		make -j"$jobs" -C src/microhttpd libmicrohttpd.la >>log 2>&1
	cp src/microhttpd/.libs/libmicrohttpd.a "$part/lib/"
) || { tail -20 "$part/build/microhttpd/log" >&2; exit 1; }
# The usual terminals are built in, for machines without a database of them. configure reads its own VERSION.
(
	mkdir "$part/build/ncurses"
	cd "$part/build/ncurses"
	cp -r "$sources/ncurses" sources
	sed -nE 's/^NCURSES_(MAJOR|MINOR|PATCH) *= *([0-9]+).*/\2/p' sources/dist.mk | tr '\n' ' ' |
		awk '{printf "5:0:10\t%s.%s\t%s\n", $1, $2, $3}' >sources/VERSION
	CC="$cc" AR="$zig ar" RANLIB="$zig ranlib" sources/configure --host=x86_64-linux-gnu --build=x86_64-linux-gnu \
		--with-build-cc=cc --enable-widec --with-termlib=tinfo --without-shared --with-normal --without-debug \
		--without-ada --without-cxx --without-cxx-binding --without-manpages --without-progs --without-tests \
		--without-tack --without-gpm --disable-db-install --disable-home-terminfo \
		--with-default-terminfo-dir=/usr/share/terminfo \
		--with-terminfo-dirs=/etc/terminfo:/lib/terminfo:/usr/share/terminfo:/usr/lib/terminfo \
		--with-fallbacks=xterm-256color,xterm,screen-256color,screen,tmux-256color,linux,vt100 >log 2>&1 &&
		make -C include >>log 2>&1 && make -j"$jobs" -C ncurses >>log 2>&1
	cp lib/libncursesw.a lib/libtinfo.a "$part/lib/"
	cp include/{curses,unctrl,ncurses_dll}.h "$part/include/"
	cp include/curses.h "$part/include/ncurses.h"
) || { tail -20 "$part/build/ncurses/log" >&2; exit 1; }
cp "$cache"/openssl-glibc-2.17/*.a "$part/lib/"
cp -r "$cache/openssl-glibc-2.17/include/openssl" "$part/include/"
mkdir "$part/include/cjson" "$part/include/hiredis"
cp "$sources"/hiredis/{alloc,async,hiredis,read,sds}.h "$part/include/hiredis/"
cp "$sources/cjson/cJSON.h" "$part/include/cjson/"
cp "$sources"/libyaml/include/yaml.h "$sources"/lz4/lib/lz4.h "$sources"/libzstd/lib/{zstd,zstd_errors}.h \
	"$sources"/libmicrohttpd/src/include/microhttpd.h "$sources"/xxhash/xxhash.h "$part/include/"
licence libyaml "$sources/libyaml/License"
licence hiredis "$sources/hiredis/COPYING"
licence cjson "$sources/cjson/LICENSE"
licence lz4 "$sources/lz4/lib/LICENSE"
licence libzstd "$sources/libzstd/LICENSE"
licence xxhash "$sources/xxhash/LICENSE"
licence libmicrohttpd "$sources/libmicrohttpd/COPYING"
licence ncurses "$sources/ncurses/COPYING"
licence openssl "$sources/openssl/LICENSE.txt"

# Its names have a prefix, so that it does not meet NumPy's or SciPy's in a process.
"$cache/venv/bin/pip" install -q --disable-pip-version-check --no-deps --only-binary :all: \
	--platform manylinux2014_x86_64 --target "$part/build/openblas" $openblas
cp "$part"/build/openblas/scipy_openblas32/lib/lib*.so* "$part/lib/"
cp "$part"/build/openblas/scipy_openblas32/include/{cblas,openblas_config}.h "$part/include/"
cp "$part"/build/openblas/scipy_openblas32-*.dist-info/licenses/LICENSE.txt "$part/doc/openblas.LICENSE"
echo "${openblas#*==}" >"$part/doc/openblas.VERSION"
nm -D --defined-only "$part/lib/libscipy_openblas.so" |
	sed -nE 's/^.* T scipy_((cblas_|openblas_)[A-Za-z0-9_]+|[a-z0-9]+_)$/#define \1 scipy_\1/p' | sort -u \
	>"$part/include/openblas_prefix.h"
ln -s libscipy_openblas.so "$part/lib/libopenblas.so"
rm -rf "$part/build"
echo "$stamp" >"$part/STAMP"
rm -rf "$out"
mv "$part" "$out"
