# SPDX-License-Identifier: Apache-2.0
"""load_weights.py FILE: loads a file of weights by name, says how long that took and what the GPU's bytes hash
to, and holds them until its input ends."""
import hashlib
import json
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "store"))
import shell  # noqa: E402

shell.context()
began = time.perf_counter()
parts = shell.vcuda.load_parts(sys.argv[1])
took = time.perf_counter() - began
digest = hashlib.sha256()
for name in sorted(parts):
    digest.update(shell.download(parts[name]))
print(json.dumps({"seconds": took, "digest": digest.hexdigest()}), flush=True)
sys.stdin.read()
