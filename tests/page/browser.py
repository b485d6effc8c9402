# SPDX-License-Identifier: Apache-2.0
"""Chromium without a window, steered over a pipe (the DevTools protocol): no package of Python's is needed."""
import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


def find():
    """The path of a Chromium, or None; $CHROMIUM wins."""
    wanted = os.environ.get("CHROMIUM")
    return wanted or next((path for path in map(shutil.which, NAMES) if path), None)


class Browser:
    """One Chromium with one page; events() has what happened since it was asked last."""

    def __init__(self, path):
        self.profile = tempfile.mkdtemp(prefix="vcuda-page-")
        here_in, there_out = os.pipe()
        there_in, here_out = os.pipe()
        self.out, self.input, self.buffer, self.number, self.seen = here_out, here_in, b"", 0, []
        command = [path, "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--no-first-run",
                   "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage",
                   "--hide-scrollbars", "--user-data-dir=" + self.profile, "about:blank"]

        def descriptors():
            os.dup2(there_in, 103)
            os.dup2(there_out, 104)
            os.dup2(103, 3)
            os.dup2(104, 4)
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL, close_fds=False, preexec_fn=descriptors,
                                        start_new_session=True)
        os.close(there_in)
        os.close(there_out)
        self.session = None
        targets = self.call("Target.getTargets")["targetInfos"]
        page = next(target["targetId"] for target in targets if target["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log", "Accessibility"):
            self.call(domain + ".enable")

    def close(self):
        with contextlib.suppress(Exception):
            self.session = None
            self.call("Browser.close")
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(10)
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(10)
        os.close(self.out)
        os.close(self.input)
        shutil.rmtree(self.profile, ignore_errors=True)

    def message(self, seconds):
        end = time.monotonic() + seconds
        while b"\0" not in self.buffer:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.input], [], [], left)[0]:
                return None
            got = os.read(self.input, 1 << 20)
            if not got:
                raise AssertionError("the browser ended")
            self.buffer += got
        text, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, **arguments):
        self.number += 1
        request = {"id": self.number, "method": method, "params": arguments}
        if self.session:
            request["sessionId"] = self.session
        os.write(self.out, json.dumps(request).encode() + b"\0")
        while True:
            answer = self.message(30)
            if answer is None:
                raise AssertionError(f"the browser does not answer {method}")
            if answer.get("id") == self.number:
                assert "error" not in answer, (method, answer["error"])
                return answer["result"]
            self.seen.append(answer)

    def events(self):
        while True:
            more = self.message(0)
            if more is None:
                break
            self.seen.append(more)
        seen, self.seen = self.seen, []
        return seen

    def evaluate(self, expression):
        got = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in got, got["exceptionDetails"]
        return got["result"].get("value")

    def until(self, expression, seconds=10):
        end = time.monotonic() + seconds
        while not self.evaluate(expression):
            assert time.monotonic() < end, f"not within {seconds} s: {expression}"
            time.sleep(0.05)

    def look(self, width, height, scheme):
        """How large the window is, and which colours its user prefers."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                  mobile=width < 500)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def open(self, url):
        self.call("Page.navigate", url=url)
        self.until("document.readyState === 'complete' && Number(document.body.dataset.updates) > 0")

    def screenshot(self, path, most=1600):
        """From the top, MOST pixels high at most."""
        width, height = self.evaluate("[innerWidth, document.documentElement.scrollHeight]")
        clip = {"x": 0, "y": 0, "width": width, "height": min(height, most), "scale": 1}
        got = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
        with open(path, "wb") as file:
            file.write(base64.b64decode(got["data"]))
