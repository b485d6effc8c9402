#!/usr/bin/env bash
# fetch-cublas.sh CACHE: the headers of cuBLAS and cuBLASLt and the names that cuBLAS's library
# exports, for both majors, into CACHE/cublas-{12,13}: what tests/parity compares protocol/api/cublas.api
# and cublaslt.api with.  Nothing that is built needs them.  Downloads 1 GB and keeps half a megabyte.
set -euo pipefail
cache=${1:?usage: fetch-cublas.sh CACHE}

fetch() { # MAJOR PACKAGE
	local folder=$cache/cublas-$1 work
	[ -e "$folder/names" ] && [ -e "$folder/cublasLt.h" ] && return
	work=$(mktemp -d)
	"$cache/venv/bin/pip" download -q --no-deps --disable-pip-version-check -d "$work" "$2"
	unzip -q -j "$work"/*.whl '*/cublas_api.h' '*/cublasLt.h' "*/libcublas.so.$1" -d "$work"
	mkdir -p "$folder"
	cp "$work/cublas_api.h" "$work/cublasLt.h" "$folder/"
	nm -D --defined-only "$work/libcublas.so.$1" |
		awk '$2 == "T" {sub(/@.*/, "", $3); print $3}' >"$folder/names"
	rm -rf "$work"
}
fetch 12 nvidia-cublas-cu12==12.9.1.4
fetch 13 nvidia-cublas==13.1.0.3
