"""Floors: programs that only move the bytes of a problem (floors.cu), measured beside the
kernels."""

import ctypes
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from binding import Check
from contest import Contestant
from families import floors_library

VECTOR_BYTES = 16
# Bytes that a thread block of the stream moves. The fastest right contestant is the floor.
BLOCK_BYTES = (12 * 1024, 24 * 1024, 96 * 1024, 192 * 1024)
UNROLLED = 8
QUERIES = 64  # of a thread block of the copies


@dataclass(frozen=True)
class Traffic:
    """What a stream reads and writes."""

    source: torch.Tensor
    read_bytes: int  # from the start of `source`
    out: torch.Tensor  # all of it is written


class Floors:
    """The library of floors.cu."""

    def __init__(self, folder: Path) -> None:
        self.library = ctypes.CDLL(str(floors_library(folder)))
        stream = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int]
        self.library.stream_launch.argtypes = [*stream, ctypes.c_int]
        self.library.stream_check.argtypes = stream
        copies = [ctypes.c_void_p] * 4 + [ctypes.c_int] * 2
        self.library.copies_launch.argtypes = copies
        self.library.copies_check.argtypes = copies
        for function in ("stream_check", "copies_check"):
            getattr(self.library, function).restype = ctypes.c_uint64

    def streams(self, sets: Sequence[Traffic]) -> list[Contestant]:
        """A stream for each size of a part, with plain and with dependent launches."""
        return [
            self.stream(sets, block_bytes, dependent)
            for block_bytes in BLOCK_BYTES
            for dependent in (False, True)
        ]

    def stream(self, sets: Sequence[Traffic], block_bytes: int, dependent: bool) -> Contestant:
        moved = sets[0].read_bytes + sets[0].out.nbytes
        blocks = math.ceil(moved / block_bytes)
        arguments = [
            (
                *(one.source.data_ptr(), one.read_bytes // VECTOR_BYTES),
                *(one.out.data_ptr(), one.out.nbytes // VECTOR_BYTES, blocks),
            )
            for one in sets
        ]

        def poison(number: int) -> None:
            sets[number].out.fill_(torch.nan)

        def launch(number: int) -> None:
            self.library.allow_dependent(int(dependent))
            self.library.stream_launch(*arguments[number], UNROLLED)

        def check(number: int, _: torch.Tensor | None) -> Check:
            wrong = self.library.stream_check(*arguments[number])
            return exact(sets[number].out.nbytes // VECTOR_BYTES, wrong)

        name = f"stream, {block_bytes // 1024} KB a thread block"
        return Contestant(
            name, False, poison, launch, check, 0, moved, dependent=dependent, floor=True
        )

    def copies(
        self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, heads: int, sequence: int
    ) -> list[Contestant]:
        """The copies of Q, K and V into shared memory alone."""
        blocks = heads * (sequence // QUERIES)
        out = torch.empty(blocks, 3, device="cuda", dtype=torch.int32)
        pointers = [each.data_ptr() for each in (q, k, v, out)]

        def poison(_: int) -> None:
            out.fill_(-1)

        def check(_: int, __: torch.Tensor | None) -> Check:
            return exact(out.numel(), self.library.copies_check(*pointers, heads, sequence))

        def contestant(dependent: bool) -> Contestant:
            def launch(_: int) -> None:
                self.library.allow_dependent(int(dependent))
                self.library.copies_launch(*pointers, heads, sequence)

            moved = q.nbytes + k.nbytes + v.nbytes
            return Contestant(
                "copies of Q, K and V",
                *(False, poison, launch, check, 0, moved),
                dependent=dependent,
                floor=True,
            )

        return [contestant(False), contestant(True)]


def exact(checked: int, wrong: int) -> Check:
    """A comparison of bits."""
    return Check(checked, wrong, math.inf if wrong else 0.0, math.inf if wrong else 0.0)
