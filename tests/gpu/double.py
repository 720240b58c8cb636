"""Doubles a vector on the GPU, in the ways in which a profiler can be limited to a part of it."""

import argparse
import ctypes
import pathlib
import sys

parser = argparse.ArgumentParser()
parser.add_argument("--launches", type=int, required=True)
parser.add_argument("--profiler-range", action="store_true")
parser.add_argument("--graph", action="store_true")
options = parser.parse_args()
library = ctypes.CDLL(pathlib.Path(__file__).parent.resolve() / "libdouble.so")
sys.exit(library.double_vectors(options.launches, options.profiler_range, options.graph))
