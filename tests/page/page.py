#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The agent's status page in a real browser, in front of a real agent.

    tests/page/page.py [--build FOLDER] [NAME ...]

Screenshots in both colour schemes, wide and narrow, with 0, 1 and 40 sessions go to BUILD/page.  Exit status 77
where there is no Chromium (Debian: apt-get install chromium).
"""
import argparse
import itertools
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "stack")]
import browser as chromium  # noqa: E402
import stack  # noqa: E402
from stack import MIB, wait_for  # noqa: E402

SIZES = {"wide": (1280, 900), "edge": (1200, 900), "tablet": (820, 1000), "narrow": (390, 844)}
SCHEMES = ("light", "dark")
NASTY = "<script>document.title='owned'</script>"
CONTRAST = """(() => {
  const luminance = (rgb) => { const [r, g, b] = rgb.map((c) => { c /= 255;
    return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const parse = (text) => (text.match(/[\\d.]+/g) || []).map(Number);
  const ground = (e) => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor);
    if (c.length && (c.length < 4 || c[3] > 0)) return c.slice(0, 3); } return [255, 255, 255]; };
  const found = [];
  for (const e of document.querySelectorAll('body *')) {
    if (![...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim()) || !e.offsetParent) continue;
    if (['NOSCRIPT', 'SCRIPT', 'OPTION'].includes(e.tagName)) continue;
    const [a, b] = [luminance(parse(getComputedStyle(e).color).slice(0, 3)), luminance(ground(e))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) found.push([e.tagName, e.className, e.textContent.slice(0, 30), ratio]);
  }
  return found; })()"""
CUT = """[...document.querySelectorAll('h1, h2, h3, p, li, td, th, label, input, select, footer a')].filter((e) =>
  e.offsetParent && !e.classList.contains('hidden') && (e.getBoundingClientRect().right > innerWidth + 1 ||
  e.getBoundingClientRect().left < -1 || e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).display !== 'inline'))
  .concat([...document.querySelectorAll('table')].filter((t) => t.getBoundingClientRect().right >
  t.parentElement.getBoundingClientRect().right + 1)).map((e) => [e.tagName, e.className, e.textContent.slice(0, 40), e.scrollWidth, e.clientWidth])"""


def url(agent):
    return f"http://127.0.0.1:{agent.ports['control']}/"


def quiet(page, agent):
    """Nothing went wrong since the last look, and nobody but the agent was asked."""
    for event in page.events():
        method, params = event.get("method"), event.get("params", {})
        assert method != "Runtime.exceptionThrown", params
        assert method != "Runtime.consoleAPICalled", params
        assert method != "Log.entryAdded", params["entry"]
        if method == "Network.requestWillBeSent":
            asked = params["request"]["url"]
            assert asked.startswith((url(agent), "data:,")), asked


def shoot(page, folder, name, schemes=SCHEMES, sizes=SIZES):
    for scheme, size in itertools.product(schemes, sizes):
        page.look(*SIZES[size], scheme)
        where = f"{name}, {scheme}, {size}"
        wide = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        assert wide[0] <= wide[1], f"{where}: the page is {wide[0]} wide in a window of {wide[1]}"
        assert page.evaluate(CUT) == [], f"{where}: cut off: {page.evaluate(CUT)}"
        assert page.evaluate(CONTRAST) == [], f"{where}: hard to read: {page.evaluate(CONTRAST)}"
        page.screenshot(os.path.join(folder, f"{name}-{scheme}-{size}.png"))
    page.look(*SIZES["wide"], "light")


def accessible(page):
    """What a screen reader finds has a name; headings, labels and the table are in order."""
    page.look(*SIZES["wide"], "light")
    for node in page.call("Accessibility.getFullAXTree")["nodes"]:
        role = node.get("role", {}).get("value")
        if not node.get("ignored") and role in ("button", "searchbox", "textbox", "combobox", "image", "img", "link", "table"):
            assert node.get("name", {}).get("value", "").strip(), node
    assert page.evaluate("document.documentElement.lang") == "en"
    levels = page.evaluate("[...document.querySelectorAll('h1, h2, h3')].map((h) => Number(h.tagName[1]))")
    assert levels[0] == 1 and levels.count(1) == 1, levels
    assert all(b - a <= 1 for a, b in zip(levels, levels[1:])), levels
    assert page.evaluate("[...document.querySelectorAll('th')].every((h) => h.scope === 'col')")


def column(page, label):
    return page.evaluate(f"[...document.querySelectorAll('td[data-label=\"{label}\"]')].map((c) => c.textContent)")


def test_with_no_and_one_session_and_when_the_agent_is_gone(page, folder):
    with stack.stack() as s:
        page.look(*SIZES["wide"], "light")
        page.open(url(s.agent))
        assert page.evaluate("document.querySelector('#state').textContent") == "Ready"
        assert "No program uses a GPU" in page.evaluate("document.querySelector('#none').textContent")
        assert "No token is asked for" in page.evaluate("document.querySelector('#conditions').textContent")
        shoot(page, folder, "0-sessions", sizes=("wide", "narrow"))
        accessible(page)
        app = s.app("hold", 48 * MIB)
        app.line("^holding", 20)
        page.until("document.querySelectorAll('tbody tr').length === 1", 6)
        page.until("document.querySelector('td[data-label=Memory]').textContent === '48.0 MiB'", 6)
        assert column(page, "Program") == [f"app ({app.pid})"]
        assert page.evaluate("document.querySelector('.memory .used').getBoundingClientRect().width") > 0
        shoot(page, folder, "1-session", sizes=("wide", "narrow"))
        accessible(page)
        app.close_stdin()
        app.right()
        page.until("document.querySelectorAll('tbody tr').length === 0", 8)
        quiet(page, s.agent)
        stack.kill(s.agent.pid)
        page.until("document.querySelector('#state').textContent === 'The agent does not answer'", 10)
        shoot(page, folder, "agent-gone", sizes=("narrow",))
        page.call("Page.navigate", url="about:blank")
        page.events()


def made_up(count):
    """Sessions with everything that can stand in a row, among them what a hostile client says."""
    for i in range(count):
        yield {"session": i + 1, "id": f"{i * 2654435761 % 2**32:08x}" + "0" * 24, "tenant": f"team-{i % 5}",
               "state": ("running", "running", "joining", "waiting")[i % 4], "pid": 4000 + i, "uid": 1000,
               "pod": NASTY if i == 7 else f"science/a-rather-long-name-of-a-deployment-7d9c5b-{i:05d}",
               "program": ("python3", "train_with_a_very_long_program_name_of_63_characters_0123456789")[i == 3],
               "started": 1763800000 + 60 * i, "memory": [{"gpu": 0, "leased_bytes": 2 << 30, "used_bytes": i << 27}],
               "bytes_received": i << 30, "bytes_sent": i << 20, "launches": i * 1234567,
               "last_error": "CUDA_ERROR_ILLEGAL_ADDRESS (700) in vcudaSync" if i % 9 == 4 else ""}


def test_with_forty_sessions_of_any_kind(page, folder):
    with stack.folder() as path:
        agent = stack.Agent(path)
        gpu = json.loads(agent.http("/v1/gpus"))
        gpu["gpus"][0].update(utilization_percent=63, power_watts=412.7, temperature_celsius=61)
        gpu["gpus"] = [dict(gpu["gpus"][0], index=i, name="NVIDIA H200", memory_total_bytes=150 << 30,
                            memory_used_bytes=(20 + 20 * i) << 30, memory_leased_bytes=(40 + 20 * i) << 30,
                            memory_context_bytes=4 << 30, memory_reserved_bytes=1 << 28, memory_foreign_bytes=3 << 30,
                            memory_free_bytes=(100 - 20 * i) << 30) for i in range(4)]
        state = json.loads(agent.http("/v1/agent"))
        state.update(ready=False, sessions=40, conditions=[
            {"name": "VcudaLedgerBug", "severity": "critical", "text": "The accounts do not add up; the log says where."},
            {"name": "Sandbox", "severity": "warning", "text": "Of the workers' sandbox only this holds: hidden, seccomp."}])
        answers = {"/v1/agent": state, "/v1/gpus": gpu, "/v1/sessions": {"sessions": list(made_up(40))}}
        # The answers stand in for the agent's; page and policy are its own.
        page.call("Page.addScriptToEvaluateOnNewDocument", source="window.fetch = async (path) => new Response("
                  f"JSON.stringify({json.dumps(answers)}[path]));")
        page.look(*SIZES["wide"], "light")
        page.open(url(agent))
        assert page.evaluate("document.querySelectorAll('tbody tr').length") == 40
        assert page.evaluate("document.title") != "owned" and NASTY in column(page, "Pod")
        shoot(page, folder, "40-sessions")
        accessible(page)
        assert page.evaluate("[...document.querySelectorAll('tbody tr')].every((r) => r.clientHeight < 130)"), "tall rows"
        launches = "[...document.querySelectorAll('th button')].find((b) => b.textContent === 'Launches')"
        for wanted in (True, False):
            page.evaluate(f"{launches}.click()")
            numbers = [int(text.replace(",", "")) for text in column(page, "Launches")]
            assert numbers == sorted(numbers, reverse=wanted), numbers
            sort = page.evaluate(f"{launches}.parentElement.getAttribute('aria-sort')")
            assert sort == ("descending" if wanted else "ascending"), sort
        page.evaluate("(() => { const s = document.querySelector('#sort'); s.value = 'pod up';"
                      " s.dispatchEvent(new Event('change')); })()")
        assert column(page, "Pod") == sorted(column(page, "Pod"))
        page.evaluate("(() => { const f = document.querySelector('#filter'); f.value = 'TEAM-3';"
                      " f.dispatchEvent(new Event('input')); })()")
        assert set(column(page, "Tenant")) == {"team-3"} and len(column(page, "Tenant")) == 8
        assert page.evaluate("document.querySelector('#count').textContent") == "8 of 40"
        quiet(page, agent)
        agent.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--build", default=stack.BUILD, help="$BUILD says which programs are tested")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    path = chromium.find()
    if not path:
        print("skip  page: there is no Chromium here (Debian: apt-get install chromium)")
        return 77
    stack.become_subreaper()
    folder = os.path.join(options.build, "page")
    os.makedirs(folder, exist_ok=True)
    tests = [(name, test) for name, test in sorted(globals().items())
             if name.startswith("test_") and (not options.names or name[5:] in options.names)]
    failed = 0
    for name, test in tests:
        page = chromium.Browser(path)
        try:
            test(page, folder)
            print("pass  page:", name[5:].replace("_", " "), flush=True)
        except AssertionError as error:
            failed += 1
            print("fail  page:", name[5:].replace("_", " "), "\n   ", error, flush=True)
        finally:
            page.close()
            stack.clean()
    return failed or (not tests)


if __name__ == "__main__":
    sys.exit(main())
