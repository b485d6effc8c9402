#!/usr/bin/env bash
# tools.sh [yaml|helm|kubeconform|unittest|schemas|kyverno]...
# Builds what the tests of deploy/ run, out of the Go module proxy, into ~/.cache/vcuda/go-bin.  What
# is there is left alone.  Without arguments: all but kyverno, which takes minutes.
#
# A module whose go.mod replaces others cannot be `go install`ed: its go.mod then becomes that of a
# throw-away main module which requires it.
set -euo pipefail

helm_version=v3.22.0
kubeconform_version=v0.8.0
unittest_version=v1.1.2
kyverno_version=v1.19.1
operator=github.com/prometheus-operator/prometheus-operator
operator_version=v0.85.0
kubernetes_minor=34
kubernetes_version=v1.$kubernetes_minor.4

cache=${XDG_CACHE_HOME:-$HOME/.cache}/vcuda
tools=$cache/go-bin
mkdir -p "$tools"
if ! command -v go >/dev/null; then
	echo "tools.sh: no Go; the tests of deploy/ build helm and others with it (1.26 or newer)" >&2
	exit 1
fi
export GOBIN=$tools GOFLAGS=-mod=mod CGO_ENABLED=0
build() { nice -n 15 go "$@"; }

module_folder() { # MODULE@VERSION: where it lies, fetched if need be
	build mod download -json "$1" | python3 -c 'import json, sys; print(json.load(sys.stdin)["Dir"])'
}

from_module() { # MODULE VERSION PACKAGE NAME
	local folder work
	folder=$(module_folder "$1@$2")
	work=$(mktemp -d)
	sed 's#^module .*#module vcuda.test/build#' "$folder/go.mod" >"$work/go.mod"
	cp "$folder/go.sum" "$work/go.sum"
	chmod u+w "$work/go.sum"
	(cd "$work" && build mod edit -require "$1@$2" &&
		build build -ldflags '-s -w' -o "$tools/$4.part" "$3")
	mv "$tools/$4.part" "$tools/$4"
	rm -rf "$work"
}

# helm takes the version of Kubernetes that it renders for from the linker's flags; without them it
# believes in 1.20.
helm() {
	local package=helm.sh/helm/v3/pkg flags='-s -w' place
	for place in chartutil lint/rules; do
		flags+=" -X $package/$place.k8sVersionMajor=1"
		flags+=" -X $package/$place.k8sVersionMinor=$kubernetes_minor"
	done
	build install -ldflags "$flags" "helm.sh/helm/v3/cmd/helm@$helm_version"
}
kubeconform() {
	build install -ldflags '-s -w' \
		"github.com/yannh/kubeconform/cmd/kubeconform@$kubeconform_version"
}
unittest() {
	local module=github.com/helm-unittest/helm-unittest
	from_module $module $unittest_version $module/cmd/helm-unittest helm-unittest
}
kyverno() {
	local module=github.com/kyverno/kyverno
	from_module $module $kyverno_version $module/cmd/cli/kubectl-kyverno kyverno-cli
}
# What kubeconform checks against: its own way is to download them.
schemas() {
	local kubernetes kyverno prometheus
	kubernetes=$(module_folder "k8s.io/kubernetes@$kubernetes_version")
	kyverno=$(module_folder "github.com/kyverno/kyverno@$kyverno_version")
	prometheus=$(module_folder "$operator@$operator_version")
	rm -rf "$tools/schemas" "$tools/schemas.part"
	"$cache/venv/bin/python" "$(dirname "$0")/schemas.py" "$tools/schemas.part" \
		"$kubernetes/api/openapi-spec/swagger.json" "$kyverno/config/crds" \
		"$prometheus/example/prometheus-operator-crd"
	mv "$tools/schemas.part" "$tools/schemas"
}

# What the tests, which are Python, read YAML with.
yaml() { "$cache/venv/bin/pip" install -q --disable-pip-version-check PyYAML==6.0.3; }

declare -A made=([helm]=helm [kubeconform]=kubeconform [unittest]=helm-unittest
	[kyverno]=kyverno-cli [schemas]=schemas [yaml]=../venv/lib/python3*/site-packages/yaml)
[ $# -gt 0 ] || set -- yaml helm kubeconform unittest schemas
for what; do
	if [ -z "${made[$what]:-}" ]; then
		echo "tools.sh: no such tool: $what" >&2
		exit 2
	fi
	exec 9>"$tools/.lock-$what"
	flock 9
	compgen -G "$tools/${made[$what]}" >/dev/null && continue
	echo "tools.sh: building $what" >&2
	"$what"
done
