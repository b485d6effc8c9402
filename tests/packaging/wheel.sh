#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The Python wheel: nothing in it needs a glibc newer than 2.17 or a library that it has not, the same bytes come
# twice, and in a fresh virtual environment an ordinary user, without a compiler and without the network, installs
# it and runs programs, with an agent of his own and with a software GPU that ends with the program.
#
#	tests/packaging/wheel.sh BUILD CACHE
set -uo pipefail
build=$(realpath "${1:?usage: wheel.sh BUILD CACHE}")
cache=$(realpath "${2:?usage: wheel.sh BUILD CACHE}")
root=$(cd "$(dirname "$0")/../.." && pwd)
scratch=$(mktemp -d)
agent=
trap '[ -z "$agent" ] || kill "$agent" 2>/dev/null; rm -rf "$scratch"' EXIT
passed=0 failed=0
verdict() { # 0|1 WHAT
	if [ "$1" -eq 0 ]; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "FAIL $2"
	fi
}

chmod 755 "$scratch"
mkdir "$scratch/user" "$scratch/unpacked"
cp "$build"/wheel/*.whl "$root"/tests/packaging/{train,upload}.py "$scratch/user/"
wheel=$(ls "$scratch"/user/*.whl)

##### What is in it #####

python3 -m zipfile -e "$wheel" "$scratch/unpacked"
[ -z "$(find "$scratch/unpacked" -name '*.py*' -not -path '*/vcuda/[a-z_]*.py')" ]
verdict $? "there is no Python in it but the module vcuda"
count=0
while read -r file; do
	head -c 4 "$file" | grep -q ELF || continue
	count=$((count + 1))
	worst=$(objdump -T "$file" 2>/dev/null | grep -o 'GLIBC_[0-9.]*' | sed 's/GLIBC_//' | sort -Vu | tail -n 1)
	[ "$(printf '%s\n2.17\n' "${worst:-0}" | sort -V | tail -n 1)" = 2.17 ]
	verdict $? "$(basename "$file") needs glibc $worst"
	others=$(objdump -p "$file" | awk '/NEEDED/ {print $2}' |
		grep -vE '^(libc|libm|libpthread|libdl|librt|libgcc_s|libz)\.so\.[0-9]$|^ld-linux-x86-64\.so\.2$' | while read -r name; do
		[ -e "$(dirname "$file")/${name#\$ORIGIN/}" ] || echo "$name"
	done)
	[ -z "$others" ]
	verdict $? "$(basename "$file") needs what is not there: $others"
done < <(find "$scratch/unpacked" -type f)
[ $count -gt 40 ]
verdict $? "there are $count binaries in it"
"$root/packaging/wheel.py" "$build" "$cache/glibc-2.17" "$scratch/again" >/dev/null && cmp -s "$wheel" "$scratch"/again/*.whl
verdict $? "the same wheel again"

##### For an ordinary user #####

user() { # COMMAND…: as nobody where we are root, in a world of few variables
	local as=(env -i HOME="$scratch/user" PATH=/usr/bin:/bin TMPDIR="$scratch/user")
	[ "$(id -u)" != 0 ] || as=(setpriv --reuid=65534 --regid=65534 --clear-groups "${as[@]}")
	(cd "$scratch/user" && timeout 120 "${as[@]}" "$@")
}
[ "$(id -u)" != 0 ] || chown -R 65534:65534 "$scratch/user"
bin=$scratch/user/venv/bin
user /usr/bin/python3 -m venv venv
user "$bin/pip" install -q --no-index --disable-pip-version-check "$wheel"
verdict $? "pip installs it"
said=$(user "$bin/vcuda" --version)
grep -q '^vcuda [0-9]' <<<"$said"
verdict $? "vcuda --version says: $said"
said=$(user "$bin/python" -c 'import vcuda; print(len(vcuda.DTYPES))' 2>&1)
[ "$said" = 12 ]
verdict $? "import vcuda: $said"
said=$(user "$bin/vcuda" run --software -- "$bin/python" train.py 2>&1)
[ "$said" = "the line is 3.000 x + 0.500" ]
verdict $? "vcuda run --software: $said"

# An agent of his own, in a process of its own, as on another machine.
user sh -c 'umask 077; head -c 24 /dev/urandom | base64 >token'
user "$bin/gpu-agent" --driver software --address 127.0.0.1 --ports 0,0,0 --token-file token --set upload_cache_bytes=64MiB \
	--ready-file "$scratch/user/ready.json" >"$scratch/agent.log" 2>&1 &
agent=$!
for _ in $(seq 200); do [ -s "$scratch/user/ready.json" ] && break; sleep 0.1; done
port=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["ports"]["recv"])' "$scratch/user/ready.json")
said=$(user "$bin/vcuda" run --agent "127.0.0.1:$port" --token-file token -- "$bin/python" train.py 2>&1)
[ "$said" = "the line is 3.000 x + 0.500" ]
verdict $? "vcuda run --agent: $said"
control=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["ports"]["control"])' "$scratch/user/ready.json")
# Uploads by content: the second process's bytes need not travel.
kept() { # NAME: the agent's figure
	python3 - "$control" "$1" <<-'PYTHON'
	import re, sys, urllib.request
	page = urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[1]}/metrics", timeout=10).read().decode()
	print(re.search(rf"^vcuda_agent_upload_cache_{sys.argv[2]} (\d+)$", page, re.M)[1])
	PYTHON
}
for _ in 1 2; do
	said=$(user env VCUDA_UPLOAD_CACHE=1 "$bin/vcuda" run --agent "127.0.0.1:$port" --token-file token -- "$bin/python" upload.py 2>&1)
	[ "$said" = "the same bytes" ]
	verdict $? "vcuda run with VCUDA_UPLOAD_CACHE=1: $said"
	for _ in $(seq 100); do [ "$(kept bytes)" -lt $((16 << 20)) ] || break; sleep 0.1; done # the last may still be hashed
done
hits=$(kept hit_bytes_total)
[ "$hits" -gt $((15 << 20)) ]
verdict $? "of 16 MiB that were brought before, $hits bytes did not travel"
said=$(user "$bin/vcuda" top --once --agent "127.0.0.1:$control" 2>&1)
grep -q "sessions" <<<"$said"
verdict $? "vcuda top --once: $said"
# On a screen, for a terminal that no database of this world describes.
said=$(user env TERM=xterm-256color TERMINFO=/nonexistent timeout 20 script -qec "$bin/vcuda top --agent 127.0.0.1:$control" /dev/null \
	< <(sleep 3; printf q; sleep 2) 2>&1)
grep -q $'\e\[?1049h.*sessions' <<<"$(tr -d '\r\n' <<<"$said")"
verdict $? "vcuda top on a screen: $said"
said=$(user "$bin/vcuda" run --agent "127.0.0.1:$port" -- "$bin/python" train.py 2>&1)
[ $? -ne 0 ]
verdict $? "vcuda run --agent without a token: $said"
# All that the build has, but cuFFT.
names=$(cd "$build/lib" && printf '%s\n' libvcuda-softgpu-*.so | sed 's/.*-//; s/\.so$//' | grep -vx cufft)
[ "$(wc -l <<<"$names")" -ge 7 ]
verdict $? "the software GPU's libraries: $names"
for name in $names; do
	said=$(user "$bin/python" -c "import ctypes; ctypes.CDLL('$scratch/user/venv/lib/vcuda/libvcuda-softgpu-$name.so')" 2>&1)
	verdict $? "the software GPU's $name loads: $said"
done
if [ -x "$cache/torch-2.11.0/bin/python" ]; then
	said=$(VIRTUAL_ENV='' timeout 300 "$bin/vcuda" run --software -- "$cache/torch-2.11.0/bin/python" -c "
import torch
torch.manual_seed(1)
a, b = torch.randn(2, 64, 64)
model = torch.nn.Linear(64, 64)
here = model(a)
there = model.cuda()(a.cuda())
print('right' if torch.allclose(there.cpu(), here, atol=1e-4) and torch.allclose((a.cuda() @ b.cuda()).cpu(), a @ b, atol=1e-3) else 'wrong')" 2>&1)
	[ "$said" = right ]
	verdict $? "PyTorch's own wheel: $said"
else
	echo "skipped: PyTorch (make test-torch fetches it)"
fi
user "$bin/pip" uninstall -q -y vcuda && [ -z "$(find "$scratch/user/venv" -name '*vcuda*')" ]
verdict $? "nothing is left when it is uninstalled: $(find "$scratch/user/venv" -name '*vcuda*' | head -n 3)"
[ $failed -eq 0 ] || tail -n 5 "$scratch/agent.log"
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
