#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a program on an agent with that driver and two GPUs.

    on_node.py DRIVER PROGRAM ...
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "stack"))
sys.dont_write_bytecode = True

from stack import clean, stack  # noqa: E402

driver, program, *words = sys.argv[1:]
try:
    with stack(driver=os.path.abspath(driver), agent_env={"VCUDA_SOFTGPU_DEVICES": "2"}) as s:
        app = s.app(*words, program=program)
        app.right(30)
        print(app.text().strip())
finally:
    clean()
