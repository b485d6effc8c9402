# SPDX-License-Identifier: Apache-2.0
"""TLS by the certificate that the chart's own Job makes and renews, and pods that prove their namespace by the token
that the cluster signs for their ServiceAccount."""
import base64
import json
import re

from cluster import (SPACE, SYSTEM, Skip, agent, annotations, apply, eventually, execute, get, helm, kubectl, pod, proofs,
                     put_app, ready, revision, start, upgrade)

RIGHT = "sums are right"
KEEPER, SECRET, OTHERS = "vcuda-keeper", "vcuda-tls", "others"
found = {}


def metric(name):
    page = kubectl("get", "--raw", f"/api/v1/namespaces/{SYSTEM}/pods/{agent()[0]}:9999/proxy/metrics")
    return float(re.search(rf"^vcuda_agent_{name} (\S+)$", page, re.M).group(1))


def certificate():
    return get("secret", SECRET, SYSTEM)["data"]["tls.crt"]


def event_of(name, where):
    return " ".join(e["message"] for e in get("events", space=where)["items"] if e["involvedObject"]["name"] == name)


def test_the_charts_job_makes_the_certificate_and_fetches_the_clusters_keys():
    found["revision"] = revision()
    assert metric("insecure") == 1
    upgrade(proofs(), "daemonset")
    assert "Succeeded" in helm("test", "vcuda", "--timeout", "60s")
    assert metric("insecure") == 0
    text = base64.b64decode(certificate()).decode()
    assert text.startswith("-----BEGIN CERTIFICATE"), text[:60]


def test_a_pod_without_a_secret_computes_as_its_namespace():
    apply(pod("proved", wanted=annotations()))
    ready("proved", 90)
    assert RIGHT in execute("proved", "vectorAdd")[1]
    log = kubectl("-n", SYSTEM, "logs", agent()[0])
    opened = [line for line in log.split("\n") if "session.open" in line]
    assert opened and f" tenant={SPACE} " in opened[-1], opened[-1:]
    _, out = execute("proved", "sh", "-c", "find / -xdev -name token 2>/dev/null | xargs -r cat", check=False)
    assert "vcuda-agent" not in "".join(base64.urlsafe_b64decode(part + "==").decode(errors="replace")
                                        for part in re.findall(r"\.(eyJ[\w-]+)\.", out)), "the program can read the sidecar's token"


def test_nobody_comes_in_in_the_clear_or_without_a_proof():
    address = agent()[1]
    for words, needle in (((f"native://{address}:9998",), "TLS"), ((f"tls://{address}:9998",), "")):
        status, out = execute("proved", "/lib/vcuda/vcuda-client", "probe", "--agent", *words, check=False)
        assert status and needle in out, (words, out)


def test_a_namespace_without_the_authority_is_told_which_it_lacks():
    apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": OTHERS}})
    eventually(lambda: kubectl("-n", OTHERS, "get", "sa", "default"), 30, "the namespace's account")
    apply(pod("lacks", wanted=annotations(), space=OTHERS))
    eventually(lambda: "vcuda-ca" in event_of("lacks", OTHERS), 60, "an event that names the ConfigMap")
    kubectl("delete", "namespace", OTHERS, "--wait=false")


def test_a_renewed_certificate_ends_no_session():
    put_app("proved")
    going = start("proved", "/tmp/app", "bystander", "4096")
    assert "started" in going.stdout.readline()
    before, ends = certificate(), metric("certificate_expires_seconds")
    # As if it were in its last days: the authority stays.
    kubectl("-n", SYSTEM, "patch", "secret", SECRET, "-p", json.dumps({"data": {"tls.crt": None, "tls.key": None}}))
    kubectl("-n", SYSTEM, "create", "job", "renew", f"--from=cronjob/{KEEPER}")
    kubectl("-n", SYSTEM, "wait", "--for=condition=Complete", "job/renew", "--timeout=60s", seconds=70)
    assert certificate() != before
    eventually(lambda: metric("certificate_expires_seconds") > ends, 120, "the agent shows the new one")
    assert RIGHT in execute("proved", "vectorAdd")[1]
    going.stdin.close()
    assert going.wait(30) == 0, going.stdout.read()


def test_the_release_is_in_the_clear_again():
    if "revision" not in found:
        raise Skip("nothing was changed")
    kubectl("-n", SPACE, "delete", "pod", "proved", "--wait=false", "--ignore-not-found")
    helm("rollback", "vcuda", str(found["revision"]))
    kubectl("-n", SYSTEM, "rollout", "status", "daemonset", "--timeout=60s")
    eventually(lambda: metric("insecure") == 1, 60, "it serves in the clear")
