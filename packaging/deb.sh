#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# deb.sh BUILD OUT: the Debian packages vcuda, vcuda-client, gpu-agent and vcuda-libs, out of what make has
# built, and SHA256SUMS of them. The same build gives the same packages. Needs dpkg-dev and go-md2man.
set -euo pipefail
build=$(realpath "${1:?usage: deb.sh BUILD OUT}")
out=${2:?usage: deb.sh BUILD OUT}
here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$here")
version=$(sed -n 's/#define VCUDA_VERSION "\(.*\)"/\1/p' "$root/common/version.h")
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -C "$root" log -1 --format=%ct)}
umask 022
mkdir -p "$out"
out=$(realpath "$out")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$here/manual.py" "$build/bin" "$work/texts"
"$root/tools/install.sh" "$build" "$work/all"
find "$work/all" -type f -exec sh -c 'file=$1; head -c4 "$file" | grep -q ELF && strip --strip-unneeded \
	--remove-section=.comment --remove-section=.note "$file"' _ {} \; 2>/dev/null || true

put() { # PACKAGE FOLDER FILE...
	local folder=$work/$1/$2
	shift 2
	mkdir -p "$folder"
	cp -a "$@" "$folder/"
}

page() { # PACKAGE NAME SECTION
	put "$1" "usr/share/man/man$3" "$work/texts/man/$2.$3.gz"
}

stage() {
	local library
	put vcuda usr/bin "$work/all/bin/vcuda"
	put vcuda usr/bin "$work/all/bin/vcuda-top"
	put vcuda usr/lib/vcuda/demo "$build/examples/vectorAdd"
	strip --strip-unneeded "$work/vcuda/usr/lib/vcuda/demo/vectorAdd"
	page vcuda vcuda 1
	ln -s vcuda.1.gz "$work/vcuda/usr/share/man/man1/vcuda-top.1.gz"
	put vcuda usr/share/zsh/vendor-completions "$work/texts/_vcuda"
	for command in vcuda vcuda-client gpu-agent; do
		put $command usr/share/bash-completion/completions "$work/texts/vcuda.bash"
		mv "$work/$command/usr/share/bash-completion/completions/vcuda.bash" \
			"$work/$command/usr/share/bash-completion/completions/$command"
	done
	put vcuda-client usr/bin "$work/all/bin/vcuda-client"
	page vcuda-client vcuda-client 8
	page vcuda-client vcuda-client.yaml 5
	put vcuda-client lib/systemd/system "$here/systemd/vcuda-client.service"
	put vcuda-client etc/vcuda "$here/debian/client.yaml"
	put gpu-agent usr/bin "$work/all/bin/gpu-agent"
	page gpu-agent gpu-agent 8
	page gpu-agent gpu-agent.yaml 5
	put gpu-agent lib/systemd/system "$here/systemd/gpu-agent.service"
	put gpu-agent etc/vcuda "$here/debian/agent.yaml"
	for library in "$work"/all/lib/vcuda/*; do
		case ${library##*/} in
		driver) put vcuda-libs usr/lib/vcuda/driver "$library"/*.so ;;
		python) put vcuda-libs usr/lib/vcuda/python/vcuda "$library"/vcuda/*.py ;;
		libvcuda-softgpu*) put gpu-agent usr/lib/vcuda "$library" ;;
		*) put vcuda-libs usr/lib/vcuda "$library" ;;
		esac
	done
	mkdir -p "$work/vcuda-libs/usr/share/pkgconfig"
	sed -e "s|@PREFIX@|/usr|; s|@VERSION@|$version|" \
		-e "s|@PRELOAD@|$(sed 's|^|/usr/lib/vcuda/|' "$build/lib/preload.list" | paste -sd:)|" \
		"$here/vcuda.pc.in" >"$work/vcuda-libs/usr/share/pkgconfig/vcuda.pc"
}

# What each package is: its description's first line and the rest, and what it needs beside its libraries.
about() {
	case $1 in
	vcuda) needs="vcuda-libs (= $version), vcuda-client (= $version)" suggests="gpu-agent, python3"
		short="CUDA programs on the GPUs of other machines"
		long="The command vcuda: runs a program of CUDA, which was never changed, on a GPU in
another machine, and says what is right and what is wrong there." ;;
	vcuda-client) needs= suggests=
		short="sidecar that joins CUDA programs to a GPU agent"
		long="One for a machine or a pod: programs with the libraries of vcuda-libs reach it by
shared memory, and it has a connection to the agent for each of them." ;;
	gpu-agent) needs= suggests=
		short="serves this machine's GPUs to programs on others"
		long="Executes CUDA calls for clients, a process for each, apart from each other. The software
GPU, with which all of it runs on a machine without a GPU, is a part of it." ;;
	vcuda-libs) needs=libc6 suggests=
		short="libraries that stand for CUDA's in a program"
		long="What vcuda preloads: the driver's and the runtime's names, NVML, and those of CUDA's
libraries. They forward calls and compute nothing." ;;
	esac
}

libraries_of() { # FOLDER: the packages of the libraries that its binaries need
	local binaries
	mkdir -p "$work/shlibs/debian"
	printf 'Source: vcuda\n\nPackage: vcuda\nArchitecture: amd64\n' >"$work/shlibs/debian/control"
	mapfile -t binaries < <(find "$1/usr/bin" "$1/usr/lib/vcuda" -type f ! -name '*.py' 2>/dev/null)
	# What is preloaded is of no package yet.
	(cd "$work/shlibs" && dpkg-shlibdeps -O --warnings=0 --ignore-missing-info -l"$work/all/lib/vcuda" "${binaries[@]}" 2> >(grep -v "can.t extract name" >&2)) |
		sed -n 's/^shlibs:Depends=//p'
}

pack() { # PACKAGE
	local name=$1 folder=$work/$1 needs suggests short long depends script
	about "$name"
	mkdir -p "$folder/DEBIAN" "$folder/usr/share/doc/$name"
	cp "$here/debian/copyright" "$folder/usr/share/doc/$name/"
	printf '%s (%s) stable; urgency=medium\n\n  * https://github.com/vcuda/vcuda/blob/main/CHANGELOG.md\n\n -- the vcuda authors <vcuda@example.org>  %s\n' \
		"$name" "$version" "$(date -u -R -d "@$SOURCE_DATE_EPOCH")" |
		gzip -9n >"$folder/usr/share/doc/$name/changelog.gz"
	if [ -f "$here/debian/$name.lintian-overrides" ]; then
		put "$name" usr/share/lintian/overrides "$here/debian/$name.lintian-overrides"
		mv "$folder/usr/share/lintian/overrides/$name.lintian-overrides" "$folder/usr/share/lintian/overrides/$name"
	fi
	chmod -R u=rwX,go=rX "$folder"
	find "$folder/usr/lib" -type f -name '*.so*' -exec chmod 644 {} + 2>/dev/null || true
	depends=
	# The fronts are linked with each other by file names and need the C library alone.
	[ "$name" = vcuda-libs ] || depends=$(libraries_of "$folder")
	depends=${depends:+$depends${needs:+, }}$needs
	[ ! -d "$folder/etc" ] || (cd "$folder" && find etc -type f -printf '/%p\n' | sort >DEBIAN/conffiles)
	for script in postinst prerm postrm; do
		[ ! -f "$here/debian/$name.$script" ] ||
			install -m 755 "$here/debian/$name.$script" "$folder/DEBIAN/$script"
	done
	{
		printf 'Package: %s\nVersion: %s\nArchitecture: amd64\nMaintainer: the vcuda authors <vcuda@example.org>\n' "$name" "$version"
		printf 'Section: admin\nPriority: optional\nHomepage: https://github.com/vcuda/vcuda\n'
		printf 'Installed-Size: %s\n' "$(du -sk --apparent-size --exclude=DEBIAN "$folder" | cut -f1)"
		[ -z "$depends" ] || printf 'Depends: %s\n' "$depends"
		[ -z "$suggests" ] || printf 'Suggests: %s\n' "$suggests"
		printf 'Description: %s\n%s\n' "$short" "$(fold -sw 76 <<<"${long//$'\n'/ }" | sed 's/ *$//; s/^/ /')"
	} >"$folder/DEBIAN/control"
	(cd "$folder" && find . -type f ! -path './DEBIAN/*' -printf '%P\n' | LC_ALL=C sort | xargs -d '\n' md5sum >DEBIAN/md5sums)
	find "$folder" -newermt "@$SOURCE_DATE_EPOCH" -print0 | xargs -0r touch -hd "@$SOURCE_DATE_EPOCH"
	dpkg-deb --root-owner-group -Zxz --build "$folder" "$out/${name}_${version}_amd64.deb" >/dev/null
	echo "${name}_${version}_amd64.deb: $(du -h "$out/${name}_${version}_amd64.deb" | cut -f1)"
}

stage
rm -f "$out"/*.deb "$out/SHA256SUMS"
for name in vcuda vcuda-client gpu-agent vcuda-libs; do
	pack $name
done
(cd "$out" && sha256sum ./*.deb >SHA256SUMS)
