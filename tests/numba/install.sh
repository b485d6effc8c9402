#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs Numba 0.61.2 into CACHE/numba-0.61.2, a virtual environment of CPython 3.11, with a
# folder `cuda` in the layout in which Numba looks for libnvvm, libdevice, libcudart and NVRTC.
# libnvvm and libdevice are CUDA 12.4's: with 12.9's, Numba 0.61 does not compile all of its tests
# (llvm.copysign in libdevice) and expects another PTX of some.  240 MB to fetch; running it again is a
# no-op.
#
#	tests/numba/install.sh CACHE
set -euo pipefail

cache=$(realpath "${1:?usage: install.sh CACHE}")
folder=$cache/numba-0.61.2

[ -e "$folder/.complete" ] && exit 0
python=
for candidate in /usr/bin/python3.11 python3.11 python3; do
	"$candidate" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' 2>/dev/null &&
		python=$candidate && break
done
[ -n "$python" ] || {
	echo "install.sh: no CPython 3.11" >&2
	exit 1
}

echo "numba: packages of 0.61.2 into $folder"
[ -x "$folder/bin/pip" ] || "$python" -m venv "$folder"
"$folder/bin/pip" install -q --no-cache-dir --disable-pip-version-check --no-deps \
	numba==0.61.2 llvmlite==0.44.0 numpy==2.2.6 cffi==1.17.1 pycparser==2.22 psutil==6.1.1 \
	nvidia-cuda-nvrtc-cu12==12.9.86 nvidia-cuda-nvcc-cu12==12.4.131

own=$folder/lib/python3.11/site-packages/nvidia
cuda=$folder/cuda
rm -rf "$cuda"
mkdir -p "$cuda/nvvm/lib64" "$cuda/lib64"
ln -s "$own/cuda_nvcc/nvvm/lib64/libnvvm.so" "$cuda/nvvm/lib64/libnvvm.so.4.0.0"
ln -s libnvvm.so.4.0.0 "$cuda/nvvm/lib64/libnvvm.so"
ln -s "$own/cuda_nvcc/nvvm/libdevice" "$cuda/nvvm/libdevice"
ln -s "$cache/cuda-12.9/include" "$cuda/include"
ln -s "$cache"/cuda-12.9/lib/lib* "$own"/cuda_nvrtc/lib/*.so* "$cuda/lib64/"
ln -s libnvrtc.so.12 "$cuda/lib64/libnvrtc.so"
touch "$folder/.complete"
