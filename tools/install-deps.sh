#!/usr/bin/env bash
# Installs everything that the build and the tests need: Debian packages (only as root and only
# what is missing) and pinned registry packages into CACHE.  Nothing of NVIDIA's is committed;
# docs/TOOLCHAIN.md says why these versions.  Running it again is a no-op.
set -euo pipefail

cache=${1:?usage: install-deps.sh CACHE}
packages="gcc g++ make pkg-config strace python3 python3-venv git clang-19 lld-19 clang-format-19
	libclang-rt-19-dev libmicrohttpd-dev libcjson-dev libyaml-dev libzstd-dev libxxhash-dev libssl-dev libncurses-dev
	libcmocka-dev spin liblz4-dev libopenblas-dev libfftw3-dev patchelf curl libhiredis-dev redis-server
	libngtcp2-dev libngtcp2-crypto-gnutls-dev libgnutls28-dev"

say() { printf 'deps: %s\n' "$*"; }

missing=$(for p in $packages; do
	dpkg-query -W -f='${Status}' "$p" 2>/dev/null | grep -q 'ok installed' || echo "$p"
done)
if [ -n "$missing" ]; then
	if [ "$(id -u)" != 0 ]; then
		echo "install-deps.sh: these Debian packages are missing and only root can install" \
			"them: $(echo $missing)" >&2
		exit 1
	fi
	say "apt-get install" $missing
	apt-get update -qq
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing \
		>/dev/null
fi

stamp=$cache/.complete
headers=$(dirname "$0")/fetch_headers.py
want=$(cat "$0" "$headers" | sha256sum | cut -d' ' -f1)
[ "$(cat "$stamp" 2>/dev/null)" = "$want" ] && { touch "$stamp"; exit 0; }

mkdir -p "$cache"
exec 9>"$cache/.lock"
flock 9
[ "$(cat "$stamp" 2>/dev/null)" = "$want" ] && { touch "$stamp"; exit 0; }

say "registry packages into $cache"
[ -x "$cache/venv/bin/pip" ] || python3 -m venv "$cache/venv"
pip() { "$cache/venv/bin/pip" install -q --disable-pip-version-check "$@"; }
pip ziglang==0.14.1

fetch() { # FOLDER PACKAGE...: the packages' files, without what they depend on
	local folder=$1
	shift
	[ -d "$folder" ] && return
	rm -rf "$folder.part"
	pip --no-deps --target "$folder.part" "$@"
	mv "$folder.part" "$folder"
}

# CUDA 13.0: a complete toolkit; only the link that -lcudart looks for is missing.
fetch "$cache/pip-13.0" nvidia-cuda-nvcc==13.0.88 nvidia-cuda-crt==13.0.88 nvidia-nvvm==13.0.88 \
	nvidia-cuda-runtime==13.0.96 nvidia-cuda-cccl==13.0.85
ln -sfn pip-13.0/nvidia/cu13 "$cache/cuda-13.0"
ln -sf libcudart.so.13 "$cache/cuda-13.0/lib/libcudart.so"

# CUDA 12.9: headers, ptxas and libdevice, put together for clang (no nvcc is in the registry).
fetch "$cache/pip-12.9" nvidia-cuda-runtime-cu12==12.9.79 nvidia-cuda-nvcc-cu12==12.9.86 \
	nvidia-cuda-cccl-cu12==12.9.27 nvidia-curand-cu12==10.3.10.19
cuda12=$cache/cuda-12.9
rm -rf "$cuda12"
mkdir -p "$cuda12/bin" "$cuda12/include" "$cuda12/lib" "$cuda12/nvvm"
for part in cuda_runtime cuda_nvcc cuda_cccl curand; do
	cp -asf "$cache/pip-12.9/nvidia/$part/include/." "$cuda12/include/"
done
ln -sf "$cache"/pip-12.9/nvidia/cuda_runtime/lib/* "$cuda12/lib/"
ln -sf libcudart.so.12 "$cuda12/lib/libcudart.so"
ln -sfn "$cache/pip-12.9/nvidia/cuda_nvcc/nvvm/libdevice" "$cuda12/nvvm/libdevice"
ln -sf "$cache/pip-12.9/nvidia/cuda_nvcc/bin/ptxas" "$cuda12/bin/ptxas"
echo 'CUDA Version 12.9.0' >"$cuda12/version.txt"
echo '{"cuda": {"name": "CUDA SDK", "version": "12.9.0"}}' >"$cuda12/version.json"
# clang 19 calls fatbinary the way CUDA 12 did; 13.0's wants --image3.
cat >"$cuda12/bin/fatbinary" <<WRAP
#!/usr/bin/env bash
args=()
for a in "\$@"; do
	case \$a in
	--image=profile=sm_*,file=*)
		a=\${a#--image=profile=sm_}
		a="--image3=kind=elf,sm=\${a%%,*},file=\${a#*,file=}" ;;
	--image=profile=compute_*,file=*)
		a=\${a#--image=profile=compute_}
		a="--image3=kind=ptx,sm=\${a%%,*},file=\${a#*,file=}" ;;
	esac
	args+=("\$a")
done
exec "$cache/cuda-13.0/bin/fatbinary" "\${args[@]}"
WRAP
chmod +x "$cuda12/bin/fatbinary"

# CUDA 13.5: headers only, for the parity test of the newest names.
fetch "$cache/pip-13.5" nvidia-cuda-runtime==13.5.37
ln -sfn pip-13.5/nvidia/cu13 "$cache/cuda-13.5"

# NVML: the header of the newest series, which declares every function of the older ones too, and
# pynvml, for the tests.
fetch "$cache/pip-nvml" nvidia-nvml-dev==13.5.37
ln -sfn pip-nvml/nvidia/cu13 "$cache/nvml"
pip --no-deps nvidia-ml-py==13.610.43

# The libraries' headers and names, for the parity test: parts of large wheels.
say "headers of the libraries and of NVML"
"$cache/venv/bin/python" "$headers" "$cache"

echo "$want" >"$stamp"
say "done"
