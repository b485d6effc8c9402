# SPDX-License-Identifier: Apache-2.0
"""A terminal for a program under test: what a VT100 of that size would show."""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time

SEQUENCE = re.compile(rb"\x1b\[([?0-9;]*)([A-Za-z])|\x1b[()][A-Z0-9]|\x1b[=>78MDEc]|\x1b#\d")


class Terminal:
    def __init__(self, command, lines=30, columns=120, env=None):
        self.lines, self.columns, self.status = lines, columns, None
        self.clear()
        self.pid, self.fd = pty.fork()
        if not self.pid:
            os.execve(command[0], command, dict(env or os.environ, TERM="vt100", LC_ALL="C"))
        self.size(lines, columns)

    def clear(self):
        self.cells = [[" "] * self.columns for _ in range(self.lines)]
        self.y = self.x = 0
        self.rest = b""

    def size(self, lines, columns):
        self.lines, self.columns = lines, columns
        self.clear()
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def screen(self):
        return ["".join(line).rstrip() for line in self.cells]

    def press(self, keys):
        os.write(self.fd, keys.encode())

    def read(self, seconds):
        if not select.select([self.fd], [], [], seconds)[0]:
            return
        try:
            got = os.read(self.fd, 65536)
        except OSError:  # the other end is closed
            time.sleep(seconds)
            return
        self.feed(self.rest + got)

    def until(self, what, seconds=10):
        """The first true value of what(screen)."""
        end = time.monotonic() + seconds
        while True:
            got = what(self.screen())
            if got:
                return got
            assert time.monotonic() < end, "not shown:\n" + "\n".join(self.screen())
            self.read(0.05)

    def wait(self, seconds=10):
        """Its exit status."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                os.close(self.fd)
                return os.waitstatus_to_exitcode(status)
            self.read(0.05)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.fd)
        raise AssertionError("it does not end:\n" + "\n".join(self.screen()))

    def feed(self, data):
        at = 0
        while at < len(data):
            byte = data[at:at + 1]
            if byte == b"\x1b":
                got = SEQUENCE.match(data, at)
                if not got:
                    if len(data) - at < 16:
                        break  # the rest comes with the next read
                    raise AssertionError(f"an unknown sequence: {data[at:at + 16]!r}")
                if got.group(2):
                    self.control(got.group(2), [int(n) if n else 0 for n in got.group(1).lstrip(b"?").split(b";")])
                elif got.group() == b"\x1bM":
                    self.y = max(0, self.y - 1)
                at = got.end()
                continue
            at += 1
            if byte == b"\r":
                self.x = 0
            elif byte == b"\n":
                self.y = min(self.lines - 1, self.y + 1)
            elif byte == b"\b":
                self.x = max(0, self.x - 1)
            elif byte == b"\t":
                self.x = min(self.columns - 1, self.x // 8 * 8 + 8)
            elif byte >= b" ":
                if self.x == self.columns:
                    self.x, self.y = 0, min(self.lines - 1, self.y + 1)
                self.cells[self.y][self.x] = byte.decode("ascii", "replace")
                self.x += 1
        self.rest = data[at:]

    def control(self, kind, numbers):
        first = numbers[0]
        if kind == b"H":
            self.y = min(self.lines, max(1, first)) - 1
            self.x = min(self.columns, max(1, numbers[1] if len(numbers) > 1 else 1)) - 1
        elif kind == b"J":
            self.control(b"K", [0])
            for y in range(0 if first == 2 else self.y + 1, self.lines):
                self.cells[y] = [" "] * self.columns
        elif kind == b"K":
            begin, end = (self.x, self.columns) if first == 0 else (0, self.x + 1)
            for x in range(begin, min(end, self.columns)):
                self.cells[self.y][x] = " "
        elif kind in b"ABCD":
            step = max(1, first)
            self.y += {b"A": -step, b"B": step}.get(kind, 0)
            self.x += {b"C": step, b"D": -step}.get(kind, 0)
            self.y, self.x = min(self.lines - 1, max(0, self.y)), min(self.columns - 1, max(0, self.x))
        else:
            assert kind in b"mrhlc", (kind, numbers)  # colours, scrolling region and modes show nothing
