#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A fresh Debian 12 that boots in a container (systemd-nspawn): the packages are installed, the unit starts as an
# ordinary user in its closed world, and a program that was never changed runs through it. As root, with
# mmdebstrap and systemd-container; Debian's packages are fetched.
#
#	tests/packaging/boot.sh BUILD CACHE
set -euo pipefail
build=${1:?usage: boot.sh BUILD CACHE}
cache=${2:?usage: boot.sh BUILD CACHE}
base=$cache/packaging/base.tar
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
if [ ! -s "$base" ]; then
	mkdir -p "$cache/packaging"
	mmdebstrap --quiet --variant=minbase --include=systemd,systemd-sysv,ca-certificates bookworm "$cache/packaging/part.tar"
	mv "$cache/packaging/part.tar" "$base"
fi
mkdir "$scratch/root"
tar -C "$scratch/root" -xf "$base"
cp "$build"/deb/*.deb "$scratch/root/root/"
cp /etc/resolv.conf "$scratch/root/etc/"
mkdir -p "$scratch/root/etc/systemd/system/multi-user.target.wants"
cat >"$scratch/root/etc/systemd/system/proof.service" <<'UNIT'
[Unit]
After=multi-user.target
[Service]
Type=oneshot
TimeoutStartSec=500
StandardOutput=file:/root/proof.txt
StandardError=file:/root/proof.txt
ExecStart=/bin/bash /root/proof.sh
ExecStopPost=/bin/systemctl --force --force poweroff
UNIT
ln -s ../proof.service "$scratch/root/etc/systemd/system/multi-user.target.wants/"
cat >"$scratch/root/root/proof.sh" <<'PROOF'
# The commands of docs/PACKAGES.md; the driver is the software one here.
set -x
apt-get update -qq && apt-get install -y -qq --no-install-recommends /root/*.deb >/dev/null 2>&1 && echo ok-installed
sed -i 's/^driver:.*/driver: software\nlog: debug/' /etc/vcuda/agent.yaml
systemctl start gpu-agent && for _ in $(seq 100); do
	journalctl -u gpu-agent | grep -q event=agent.ready && echo ok-ready && break
	sleep 0.2
done
journalctl -u gpu-agent | grep -q 'event=worker.sandbox text="hidden, capabilities, landlock, seccomp"' && echo ok-sandbox
pid=$(systemctl show -p MainPID --value gpu-agent)
[ "$(awk '/^Uid:/ {print $2}' "/proc/$pid/status")" -gt 0 ] && echo ok-no-root
vcuda run --software -- /usr/lib/vcuda/demo/vectorAdd | grep -q 'sums are right' && echo ok-software
vcuda run --agent 127.0.0.1 --token-file /var/lib/vcuda/token -- /usr/lib/vcuda/demo/vectorAdd |
	grep -q 'sums are right' && echo ok-agent
! vcuda run --agent 127.0.0.1 -- /usr/lib/vcuda/demo/vectorAdd && journalctl -u gpu-agent | grep -q 'event=hello.refused reason=token' &&
	echo ok-no-token-is-refused
install -m 644 /var/lib/vcuda/token /etc/vcuda/token # a credential would do it without copying
printf 'agent: 127.0.0.1:9998\ntoken_file: /etc/vcuda/token\nsocket_mode: 0666\n' >/etc/vcuda/client.yaml
systemctl start vcuda-client && sleep 1
setpriv --reuid=65534 --regid=65534 --clear-groups vcuda run -- /usr/lib/vcuda/demo/vectorAdd | grep -q 'sums are right' &&
	echo ok-service-for-any-user
journalctl --no-pager -u gpu-agent | grep -i sandbox
systemctl status --no-pager gpu-agent vcuda-client
systemctl stop vcuda-client gpu-agent && echo ok-stopped
apt-get purge -y -qq gpu-agent vcuda vcuda-client vcuda-libs >/dev/null 2>&1 && echo ok-purged
[ ! -e /etc/vcuda/agent.yaml ] && [ ! -e /usr/lib/vcuda ] && [ ! -e /var/lib/private/vcuda ] && echo ok-nothing-left
PROOF
timeout 600 systemd-nspawn --quiet -D "$scratch/root" --register=no --keep-unit --resolv-conf=off \
	--system-call-filter="seccomp landlock_create_ruleset landlock_add_rule landlock_restrict_self" --boot \
	>"$scratch/console" 2>&1 </dev/null || true
proof=$scratch/root/root/proof.txt
failed=0
for row in installed ready sandbox no-root software agent no-token-is-refused service-for-any-user stopped purged nothing-left; do
	if grep -qx "ok-$row" "$proof" 2>/dev/null; then
		echo "pass  $row"
	else
		echo "FAIL  $row"
		failed=$((failed + 1))
	fi
done
[ $failed -eq 0 ] || { tail -n 60 "$proof" 2>/dev/null || tail -n 30 "$scratch/console"; } >&2
echo "$((11 - failed)) passed, $failed failed"
[ $failed -eq 0 ]
