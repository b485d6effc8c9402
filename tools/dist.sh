#!/usr/bin/env bash
# dist.sh BUILD FOLDER CACHE: everything that a machine without our packages needs, under one
# folder: bin/, lib/ (fronts, software GPU), lib/deps/ (libraries that Debian gave us), programs/
# and bench/ (tests and benchmarks, built), native/ (NVIDIA's runtimes, for the native arm of a
# comparison; never preloaded).
set -euo pipefail
build=${1:?usage: dist.sh BUILD FOLDER CACHE}
folder=${2:?usage: dist.sh BUILD FOLDER CACHE}
cache=${3:?usage: dist.sh BUILD FOLDER CACHE}

rm -rf "$folder"
mkdir -p "$folder/bin" "$folder/lib/deps" "$folder/native" "$folder/bench" "$folder/programs"
cp "$build"/bin/* "$folder/bin/"
cp -a "$build"/lib/*.so* "$build"/lib/preload.list "$build"/lib/python "$folder/lib/"
for binary in "$folder"/bin/* "$folder"/lib/libvcuda-softgpu*.so; do
	ldd "$binary" 2>/dev/null | awk '$2 == "=>" && $3 ~ /^\// {print $3}'
done | sort -u | while read -r library; do
	case ${library##*/} in
	# glibc's own come from the machine that runs it.
	libc.so.*|libm.so.*|libpthread.so.*|libdl.so.*|librt.so.*|ld-linux*|libresolv.so.*) ;;
	lib*vcuda*) ;;
	*) cp -L "$library" "$folder/lib/deps/" ;;
	esac
done
# Their own dependencies find each other through the loader's search of the one that asks.
for library in "$folder"/lib/deps/*; do
	patchelf --set-rpath '$ORIGIN' "$library" 2>/dev/null || true
done
cp -L "$cache"/cuda-12.9/lib/libcudart.so.12 "$cache"/cuda-13.0/lib/libcudart.so.13 \
	"$folder/native/"
[ -d "$build/programs" ] && cp -r "$build"/programs/. "$folder/programs/"
[ -d "$build/cublas" ] && mkdir -p "$folder/cublas" && cp -r "$build"/cublas/. "$folder/cublas/"
[ -d "$build/cublaslt" ] && mkdir -p "$folder/cublaslt" && cp -r "$build"/cublaslt/. "$folder/cublaslt/"
[ -d "$build/cudnn" ] && mkdir -p "$folder/cudnn" && cp -r "$build"/cudnn/. "$folder/cudnn/"
[ -d "$build/cufft" ] && mkdir -p "$folder/cufft" && cp -r "$build"/cufft/. "$folder/cufft/"
[ -d "$build/cusolver" ] && mkdir -p "$folder/cusolver" && cp -r "$build"/cusolver/. "$folder/cusolver/"
[ -d "$build/cusparselt" ] && mkdir -p "$folder/cusparselt" && cp -r "$build"/cusparselt/. "$folder/cusparselt/"
[ -d "$build/nccl" ] && mkdir -p "$folder/nccl" && cp -r "$build"/nccl/. "$folder/nccl/"
[ -d "$build/cusparse" ] && mkdir -p "$folder/cusparse" && cp -r "$build"/cusparse/. "$folder/cusparse/"
[ -d "$build/curand" ] && mkdir -p "$folder/curand" && cp -r "$build"/curand/. "$folder/curand/"
mkdir -p "$folder/stack" && cp "$build"/stack/app "$build"/stack/uploads "$build"/stack/libprying-nvidia.so "$folder/stack/"
[ -d "$build/differential" ] && mkdir -p "$folder/differential" && \
	cp "$build/differential/trace" "$folder/differential/"
[ -d "$build/bench" ] && cp -r "$build"/bench/. "$folder/bench/"
strip --strip-debug "$folder"/bin/* "$folder"/lib/*.so "$folder"/{cublas,cublaslt,cudnn,cufft,curand,cusolver,cusparse,cusparselt,nccl,programs}/*/* \
	2>/dev/null || true
du -sh "$folder" | awk '{print "dist: " $2 ", " $1}'
