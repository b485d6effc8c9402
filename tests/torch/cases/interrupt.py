# Ctrl-C: KeyboardInterrupt in a program that waits for the device again and again, and a device
# that can be used after it.
import os
import signal
import subprocess
import sys
import time

from check import check

CODE = """
import sys, torch
x = torch.rand(256, 256, dtype=torch.float64).cuda()
print("ready", flush=True)
try:
    while True:
        y = torch.mm(x, x)
        torch.cuda.synchronize()
except KeyboardInterrupt:
    total = torch.mm(x, x).cpu().sum().item()
    print("interrupted", total > 0, flush=True)
    sys.exit(7)
"""
program = subprocess.Popen([sys.executable, "-c", CODE], stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, text=True)
check(program.stdout.readline() == "ready\n", "it started")
time.sleep(0.3)
program.send_signal(signal.SIGINT)
out, err = program.communicate(timeout=30)
check(program.returncode == 7 and "interrupted True" in out, f"{program.returncode}: {out}{err[-300:]}")

# Not caught: Python ends by the signal, without a crash report of ours.
program = subprocess.Popen([sys.executable, "-c", CODE.replace("except KeyboardInterrupt", "except ValueError")],
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
check(program.stdout.readline() == "ready\n", "it started")
time.sleep(0.3)
program.send_signal(signal.SIGINT)
out, err = program.communicate(timeout=30)
check(program.returncode == -signal.SIGINT, f"status {program.returncode}")
check(err.rstrip().endswith("KeyboardInterrupt"), err[-300:])
