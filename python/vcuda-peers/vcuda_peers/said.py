# SPDX-License-Identifier: Apache-2.0
"""What others said, before it goes to a terminal, a log or Ray."""
import re


def shown(text, most=300):
    """TEXT as MOST characters of a line at most, of which none does anything to a terminal."""
    return re.sub("[^ -~]", "?", str(text)[:most])
