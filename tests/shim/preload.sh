#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What is preloaded is in every process of a container: it must load on old systems, and do nothing
# in a process that makes no CUDA call.
#
#	tests/shim/preload.sh [LIBRARY_DIR]

set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
lib=${1-$root/build/lib}
lib=$(cd "$lib" && pwd)
newest=2.17
passed=0 failed=0

verdict() { # verdict 0|1 TEXT
	if [ "$1" -eq 0 ]; then
		passed=$((passed + 1))
		echo "ok      $2"
	else
		failed=$((failed + 1))
		echo "FAILED  $2"
	fi
}

# The preloaded libraries and everything of ours that they need.
libraries=()
while read -r f; do
	[ -e "$lib/$f" ] && libraries+=("$lib/$f")
done <"$lib/preload.list"
verdict $((${#libraries[@]} < 2)) "there are preloaded libraries: ${#libraries[@]}"

for f in "${libraries[@]}"; do
	worst=$(objdump -T "$f" | grep -o 'GLIBC_[0-9.]*' | sed 's/GLIBC_//' | sort -Vu | tail -n 1)
	last=$(printf '%s\n%s\n' "${worst:-0}" $newest | sort -V | tail -n 1)
	[ "$last" = $newest ]
	verdict $? "$(basename "$f") needs glibc ${worst:-(any)}, at most $newest"
	others=$(objdump -p "$f" | awk '/NEEDED/ {print $2}' |
		grep -vE '^(libc|libpthread|libdl|libm)\.so\.[0-9]$|^ld-linux|^[$]ORIGIN/libvcuda' | tr '\n' ' ')
	[ -z "$others" ]
	verdict $? "$(basename "$f") links libc only${others:+, and $others}"
done

preload=$(IFS=:; echo "${libraries[*]}")

# A process looks at itself: descriptors, threads, files of ours in /dev/shm, what was printed.
look='ls /proc/self/fd | wc -l; grep Threads /proc/self/status'
before=$(ls /dev/shm | sort)
with=$(LD_PRELOAD=$preload VCUDA_DEBUG=1 VCUDA_STATS=1 sh -c "$look" 2>&1)
without=$(sh -c "$look" 2>&1)
[ "$with" = "$without" ]
verdict $? "a shell has the same descriptors, threads and output: $(echo $with)"
[ "$before" = "$(ls /dev/shm | sort)" ]
verdict $? "no file in /dev/shm"
LD_PRELOAD=$preload sh -c 'exit 7'
[ $? -eq 7 ]
verdict $? "the exit status is the program's"
said=$(LD_BIND_NOW=1 LD_PRELOAD=$preload sh -c 'exit 7' 2>&1)
[ $? -eq 7 ]
verdict $? "no function is missing where all are looked for at the start${said:+: $said}"
missing=
for f in "$lib"/lib*.so.*; do
	said=$(LD_BIND_NOW=1 LD_PRELOAD=$f sh -c 'exit 7' 2>&1)
	[ $? -eq 7 ] || missing+=" $(basename "$f"): $said"
done
[ -z "$missing" ]
verdict $? "none is missing in a library that is loaded alone either$missing"

# With VCUDA_TEST_BARS=1, on a machine that has nothing else to do. Best of 200 each, in turn, and up to
# five times that where it is too much.
sample() { # sample LD_PRELOAD: ns that `sh -c true` takes
	local start
	start=$(date +%s%N)
	LD_PRELOAD=$1 sh -c true
	echo $(($(date +%s%N) - start))
}
plain=999999999 loaded=999999999
for _ in 1 2 3 4 5; do
	for _ in $(seq 200); do
		took=$(sample "") && [ "$took" -lt $plain ] && plain=$took
		took=$(sample "$preload") && [ "$took" -lt $loaded ] && loaded=$took
	done
	[ -n "${VCUDA_TEST_BARS:-}" ] && [ $((loaded - plain)) -ge 1000000 ] || break
done
added=$((loaded - plain))
[ $added -lt 1000000 ] || [ -z "${VCUDA_TEST_BARS:-}" ]
verdict $? "sh -c true: $((plain / 1000)) us without, $((loaded / 1000)) us with (+$((added / 1000)), at most 1000 on an idle machine)"

# With no GPU configured every front says so, at once and silently.
cat >"${TMPDIR:-/tmp}/preload-$$.py" <<'PY'
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
first = cuda.cuInit(0)
count = ctypes.c_int(-1)
print(first, cuda.cuInit(0), cuda.cuDeviceGetCount(ctypes.byref(count)), cuda.cuMemAlloc_v2(None, 1))
PY
said=$(env -u REMOTE_GPU_ADDRESS VCUDA_SOCKET="${TMPDIR:-/tmp}/no-such-socket-$$" LD_PRELOAD=$preload \
	timeout 20 python3 "${TMPDIR:-/tmp}/preload-$$.py" 2>&1)
[ "$said" = "100 100 3 3" ]
verdict $? "no sidecar: NO_DEVICE, then NOT_INITIALIZED ($said)"
said=$(env -u REMOTE_GPU_ADDRESS VCUDA_DEBUG=1 VCUDA_SOCKET=/tmp/no-such-socket-$$ LD_PRELOAD=$preload \
	python3 -c 'import ctypes; ctypes.CDLL("libcuda.so.1").cuInit(0)' 2>&1)
[ "$(echo "$said" | grep -c 'no GPU configured')" = 1 ]
verdict $? "VCUDA_DEBUG says why, in one line: $said"
rm -f "${TMPDIR:-/tmp}/preload-$$.py"

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
