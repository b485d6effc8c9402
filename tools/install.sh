#!/usr/bin/env bash
# install.sh BUILD FOLDER: the commands into FOLDER/bin, what is preloaded and the software GPU into
# FOLDER/lib/vcuda (never into FOLDER/lib: our libcuda.so.1 must not shadow NVIDIA's).
set -euo pipefail
build=${1:?usage: install.sh BUILD FOLDER}
folder=${2:?usage: install.sh BUILD FOLDER}

mkdir -p "$folder/bin" "$folder/lib/vcuda"
install -m 755 "$build"/bin/* "$folder/bin/"
cp -a "$build"/lib/*.so* "$build"/lib/preload.list "$folder/lib/vcuda/"
cp -r "$build/lib/python" "$build/lib/driver" "$folder/lib/vcuda/"
