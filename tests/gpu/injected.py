"""What it costs a program that its kernels are recorded: repeated runs with and without, in turn.

usage: injected.py INJECTION CUPTI RUNS PROGRAM...; exits with 1 where the fastest runs are 5 % apart.

What else the machine does makes runs slower and never faster, so the fastest ones are compared.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time

injection, cupti, runs, *program = sys.argv[1:]
folder = tempfile.mkdtemp()
recorded = {
    **os.environ,
    "CUDA_INJECTION64_PATH": injection,
    "SPARSEK_GATE_CUPTI": cupti,
    "SPARSEK_GATE_KERNEL_RECORDS": os.path.join(folder, "process"),
}
bare_s, recorded_s = [], []
for turn in range(int(runs) + 1):
    # Either goes first as often, so that what warms up or drifts meets both.
    pair = [(os.environ, bare_s), (recorded, recorded_s)]
    for environment, times in pair if turn % 2 else pair[::-1]:
        start = time.perf_counter()
        subprocess.run(program, env=environment, check=True, stdout=subprocess.DEVNULL)
        if turn:
            times.append(time.perf_counter() - start)
assert os.listdir(folder), "nothing was recorded"
bare, with_records = min(bare_s), min(recorded_s)
cost = with_records / bare - 1
spread = statistics.pstdev(bare_s) / bare
print(
    f"fastest {bare:.3f} s, recorded {with_records:.3f} s: {100 * cost:+.1f} %"
    f" (medians {statistics.median(bare_s):.3f} and {statistics.median(recorded_s):.3f} s,"
    f" runs vary by {100 * spread:.1f} %)"
)
sys.exit(not cost < 0.05)
