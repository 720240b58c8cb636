"""Doubles a vector with PyTorch."""

import argparse

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--launches", type=int, required=True)
options = parser.parse_args()
source = torch.rand(1 << 26, device="cuda")
target = torch.empty_like(source)
for _ in range(options.launches):
    torch.mul(source, 2.0, out=target)
torch.cuda.synchronize()
assert torch.equal(target, source + source)
