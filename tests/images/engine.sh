#!/usr/bin/env bash
# engine.sh run COMMAND... | up | down: a docker engine of our own, for the tests of the images on a
# machine that has none.  Debian's packages, unpacked and not installed: no service starts, and nothing
# stays outside two folders, ~/.cache/vcuda/docker and /tmp/vcuda-docker ($VCUDA_DOCKER), which `down`
# removes.  Containers have no network of their own: use --network none, host or container:NAME.
#
# run: up, COMMAND with DOCKER_HOST set, down.  Needs root and Debian 12.
set -euo pipefail
state=${VCUDA_DOCKER:-/tmp/vcuda-docker}
package=${XDG_CACHE_HOME:-$HOME/.cache}/vcuda/docker
groups=engine${state//\//-}
# What this engine makes whatever it is told: a key, sockets of plugins, folders for programs.
elsewhere="/etc/docker /run/docker /opt/containerd"
export DOCKER_HOST=unix://$state/docker.sock

fail() { echo "engine.sh: $*" >&2; exit 1; }

fetch() {
	local name missing=()
	[ -x "$package/usr/sbin/dockerd" ] && return
	apt-get update -qq
	for name in libdevmapper1.02.1 libseccomp2; do
		dpkg-query -W -f='${Status}' $name 2>/dev/null | grep -q 'ok installed' || missing+=($name)
	done
	[ ${#missing[@]} = 0 ] || DEBIAN_FRONTEND=noninteractive \
		apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
	rm -rf "$package.part"
	mkdir -p "$package.part"
	(cd "$package.part" &&
		apt-get download -qq -o APT::Sandbox::User=root docker.io tini containerd runc &&
		for name in *.deb; do dpkg -x "$name" . && rm "$name"; done)
	rm -rf "$package"
	mv "$package.part" "$package"
}

# The engine's pid, if it is ours and runs: a stranger with the number of one that died is not.
engine() {
	local pid
	pid=$(cat "$state/docker.pid" 2>/dev/null) || return 1
	tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline" | grep -qF -- "--pidfile $state/docker.pid" && echo "$pid"
}

up() {
	local place
	[ "$(id -u)" = 0 ] || fail "only root can run an engine"
	engine >/dev/null && return
	fetch
	mkdir -p "$state"
	for place in $elsewhere; do [ -e "$place" ] || echo "$place"; done >"$state/made"
	echo '{}' >"$state/config.json" # not the machine's, should it have one
	# Scores below the machine's own cannot be had without CAP_SYS_RESOURCE (tests/cluster/README.md).
	PATH=$package/usr/sbin:$package/usr/bin:$PATH setsid dockerd --config-file "$state/config.json" \
		--data-root "$state/data" --exec-root "$state/exec" --pidfile "$state/docker.pid" \
		-H "$DOCKER_HOST" --bridge none --iptables=false --ip6tables=false --ip-forward=false \
		--ip-masq=false --oom-score-adjust 0 --cgroup-parent "/$groups" --log-level warn \
		>"$state/log" 2>&1 </dev/null &
	for _ in $(seq 150); do
		PATH=$PATH:$package/usr/bin timeout 5 docker version >/dev/null 2>&1 && return
		kill -0 $! 2>/dev/null || break
		sleep 0.2
	done
	tail -n 5 "$state/log" >&2
	down
	fail "the engine did not come up"
}

down() {
	local pid place
	if pid=$(engine); then
		PATH=$PATH:$package/usr/bin docker ps -q 2>/dev/null |
			PATH=$PATH:$package/usr/bin xargs -r docker kill >/dev/null 2>&1 || true
		kill "$pid"
		for _ in $(seq 100); do engine >/dev/null || break; sleep 0.1; done
		engine >/dev/null && kill -KILL "$pid"
	fi
	awk -v folder="$state/" 'index($2, folder) == 1 {print $2}' /proc/mounts | sort -r |
		while read -r place; do umount -l "$place"; done
	find /sys/fs/cgroup -depth -type d -path "*/$groups*" -exec rmdir {} + 2>/dev/null || true
	[ ! -e "$state/made" ] || xargs -r rm -rf <"$state/made"
	rm -rf "$state"
}

case ${1:-} in
up) up; echo "export DOCKER_HOST=$DOCKER_HOST PATH=\$PATH:$package/usr/bin" ;;
down) down ;;
run)
	[ $# -gt 1 ] || fail "run what?"
	trap down EXIT
	up
	PATH=$PATH:$package/usr/bin "${@:2}" ;;
*) echo "usage: engine.sh run COMMAND... | up | down" >&2; exit 2 ;;
esac
