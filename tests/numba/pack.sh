#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Packs Numba 0.61.2 for a machine with a GPU and without a network: 50 MiB for CPython 3.12, to be
# carried there and given to tests/gpu/numba.sh.  The same packages as install.sh's, without NVRTC,
# which that machine has.
#
#	tests/numba/pack.sh CACHE FILE.tar.xz
set -euo pipefail

cache=$(realpath "${1:?usage: pack.sh CACHE FILE.tar.xz}")
file=$(realpath "${2:?usage: pack.sh CACHE FILE.tar.xz}")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

python3 -m pip download -q --no-cache-dir --disable-pip-version-check --no-deps \
	--only-binary=:all: --python-version 3.12 --implementation cp \
	--platform manylinux_2_17_x86_64 --platform manylinux2014_x86_64 \
	--platform manylinux_2_12_x86_64 -d "$scratch/wheels" \
	numba==0.61.2 llvmlite==0.44.0 numpy==2.2.6 cffi==1.17.1 pycparser==2.22 psutil==6.1.1 \
	nvidia-cuda-nvcc-cu12==12.4.131
for wheel in "$scratch"/wheels/*.whl; do
	python3 -m zipfile -e "$wheel" "$scratch/pack/site"
done
own=$scratch/pack/site/nvidia/cuda_nvcc
mkdir -p "$scratch/pack/cuda/nvvm/lib64" "$scratch/pack/cuda/lib64"
mv "$own/nvvm/lib64/libnvvm.so" "$scratch/pack/cuda/nvvm/lib64/libnvvm.so.4.0.0"
ln -s libnvvm.so.4.0.0 "$scratch/pack/cuda/nvvm/lib64/libnvvm.so"
mv "$own/nvvm/libdevice" "$scratch/pack/cuda/nvvm/"
cp -L "$cache"/cuda-12.9/lib/lib*.{a,so.12} "$scratch/pack/cuda/lib64/"
ln -s libcudart.so.12 "$scratch/pack/cuda/lib64/libcudart.so"
rm -rf "$scratch/pack/site/nvidia"
tar -C "$scratch/pack" -cJf "$file" .
echo "numba: $(($(stat -c %s "$file") >> 20)) MiB in $file"
