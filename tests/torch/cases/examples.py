# Every example runs, small: on the GPU; on the software GPU those that need torch only, on the CPU
# of the program.
import os
import subprocess
import sys

from check import check, driver

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "examples",
                      "pytorch")
if driver() == "nvidia":
    names = sorted(name for name in os.listdir(FOLDER) if name.endswith(".py") and name != "common.py")
    check(len(names) == 8, f"examples: {names}")
    options = ["--small", "--device", "cuda"]
else:
    names, options = ["polynomial_fit.py", "unet_diffusion.py"], ["--small", "--device", "cpu"]
env = dict(os.environ, HF_HUB_OFFLINE="1")
running = [(name, subprocess.Popen([sys.executable, os.path.join(FOLDER, name), *options], env=env,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
           for name in names]
for name, program in running:
    out, _ = program.communicate(timeout=80)
    check(program.returncode == 0 and "took" in out, f"{name}: {program.returncode}: {out[-500:]}")
    check("weights: random" in out or name == "polynomial_fit.py", f"{name} says what weights: {out}")
    check("nan" not in out, f"{name}: {out}")
