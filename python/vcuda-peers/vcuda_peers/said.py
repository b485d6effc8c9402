# SPDX-License-Identifier: Apache-2.0
"""What others said, before it goes to a terminal, a log or Ray."""
import re


def shown(text, most=300):
    """TEXT as MOST characters of a line at most, of which none does anything to a terminal."""
    return re.sub("[^ -~]", "?", str(text)[:most])


def last_line(text, otherwise=""):
    """Of what a program wrote: its sentence, where it ended by one."""
    return shown((text.strip().splitlines() or [otherwise])[-1])


def mib(count):
    return f"{count / 2**20:.1f} MiB"
