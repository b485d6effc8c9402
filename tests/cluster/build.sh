#!/usr/bin/env bash
# build.sh [kubernetes|coredns|kyverno|nvidia]...: what the real node runs, built from the Go module proxy
# into ~/.cache/vcuda/cluster/bin, and Debian's packages beside it.  What is there is left alone.
# Kubernetes takes 7 minutes of two quiet cores the first time, CoreDNS 3, Kyverno 9, NVIDIA's
# container runtime (for a node with a GPU) 1.
#
# Their go.mod files replace modules, which `go install` refuses: each becomes the go.mod of a
# throw-away main module that requires the original.
set -euo pipefail
kubernetes_minor=34.4
coredns_version=v1.15.0
kyverno_version=v1.19.1
nvidia_version=v1.20.1

bin=${XDG_CACHE_HOME:-$HOME/.cache}/vcuda/cluster/bin
mkdir -p "$bin"
export GOFLAGS=-mod=mod GOTOOLCHAIN=local CGO_ENABLED=0 GOBIN=$bin

packages() {
	local package missing=()
	for package in containerd runc containernetworking-plugins iptables nftables socat ethtool \
		conntrack busybox-static openssl etcd-server buildah mmdebstrap docker-registry skopeo; do
		dpkg-query -W -f='${Status}' $package 2>/dev/null | grep -q 'ok installed' || missing+=($package)
	done
	[ ${#missing[@]} = 0 ] && return
	[ "$(id -u)" = 0 ] || { echo "build.sh: only root can install: ${missing[*]}" >&2; exit 1; }
	apt-get update -qq
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

main_module() { # MODULE VERSION: makes it, in the folder that it prints
	local folder work
	folder=$(nice -n 15 go mod download -json "$1@$2" |
		python3 -c 'import json, sys; print(json.load(sys.stdin)["Dir"])')
	work=$(mktemp -d)
	sed 's#^module .*#module vcuda.test/build#' "$folder/go.mod" >"$work/go.mod"
	cat "$folder/go.sum" >"$work/go.sum"
	(cd "$work" && go mod edit -require "$1@$2")
	echo "$work"
}

kubernetes() {
	local work module part flags version=k8s.io/component-base/version
	work=$(main_module k8s.io/kubernetes v1.$kubernetes_minor)
	cd "$work"
	sed -n 's#^\t\(k8s.io/[a-z-]*\) => ./staging/.*#\1#p' go.mod | while read -r module; do
		go mod edit -replace "$module=$module@v0.$kubernetes_minor"
	done
	flags="-s -w -X $version.gitVersion=v1.$kubernetes_minor -X $version.gitMajor=1"
	flags+=" -X $version.gitMinor=${kubernetes_minor%%.*}"
	mkdir out
	# kubelet wants cgo for what it asks of users and disks.
	CGO_ENABLED=1 nice -n 15 go build -ldflags "$flags" -o out/ \
		k8s.io/kubernetes/cmd/{kube-apiserver,kube-controller-manager,kube-scheduler,kubelet,kubectl,kube-proxy}
	mv out/* "$bin/"
	rm -rf "$work"
}

coredns() { nice -n 15 go install -ldflags '-s -w' github.com/coredns/coredns@$coredns_version; }

kyverno() {
	local work module=github.com/kyverno/kyverno
	work=$(main_module $module $kyverno_version)
	cd "$work"
	nice -n 15 go build -ldflags '-s -w' -o kyverno $module/cmd/kyverno
	nice -n 15 go build -ldflags '-s -w' -o kyverno-init $module/cmd/kyverno-init
	mv kyverno-init kyverno "$bin/"
	rm -rf "$work"
}

nvidia() { # its libraries are opened when it runs, so lazily bound
	CGO_ENABLED=1 nice -n 15 go install -ldflags '-s -w -extldflags=-Wl,-z,lazy' \
		github.com/NVIDIA/nvidia-container-toolkit/cmd/{nvidia-ctk,nvidia-cdi-hook,nvidia-container-runtime}@$nvidia_version
}

declare -A made=([kubernetes]=kubelet [coredns]=coredns [kyverno]=kyverno [nvidia]=nvidia-container-runtime)
[ $# -gt 0 ] || set -- kubernetes coredns
packages
command -v go >/dev/null || { echo "build.sh: no Go (1.26 or newer): the node is built with it" >&2; exit 1; }
exec 9>"$bin/.lock"
flock 9
for part; do
	[ -n "${made[$part]:-}" ] || { echo "build.sh: no such part: $part" >&2; exit 2; }
	[ -x "$bin/${made[$part]}" ] && continue
	echo "build.sh: building $part" >&2
	("$part")
done
