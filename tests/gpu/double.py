"""Doubles a vector on the GPU, in the ways that a profiler can be told to look."""

import argparse
import contextlib

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--launches", type=int, required=True)
parser.add_argument("--nvtx", action="store_true")
parser.add_argument("--profiler-range", action="store_true")
parser.add_argument("--graph", action="store_true")
options = parser.parse_args()

source = torch.rand(1 << 26, device="cuda")
target = torch.empty_like(source)
torch.cuda.synchronize()


@contextlib.contextmanager
def marked():
    if options.nvtx:
        torch.cuda.nvtx.range_push("gate")
    if options.profiler_range:
        torch.cuda.cudart().cudaProfilerStart()
    yield
    torch.cuda.synchronize()
    if options.profiler_range:
        torch.cuda.cudart().cudaProfilerStop()
    if options.nvtx:
        torch.cuda.nvtx.range_pop()


if options.graph:
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        torch.mul(source, 2.0, out=target)
    with marked():
        for _ in range(options.launches):
            graph.replay()
else:
    with marked():
        for _ in range(options.launches):
            torch.mul(source, 2.0, out=target)

torch.cuda.synchronize()
assert torch.equal(target, source + source)
