"""The block-sparse product in Triton, to compare with: bsr_gemm_triton.

Its configuration is fixed, so that every process runs the same code. ci/peers times the same kernel
beside the CUDA variants.
"""

import sys
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

BLOCK_ROWS = 128  # of a block of A
BLOCK_COLUMNS = 32
SIGMA = 0.02  # of the values


@triton.jit
def bsr_gemm_triton(
    values,
    columns,
    b,
    c,
    tiles,
    block_rows,
    BLOCKS: tl.constexpr,  # in a block-row
    BLOCK_N: tl.constexpr,
    PARTS: tl.constexpr,  # number of parts in which a tile of C is stored
    FLATTEN: tl.constexpr,  # one loop over tiles and blocks, so that loads run ahead of a tile
    # 0: a plain launch. Else a dependent one, which may start before the kernel before has ended,
    # and lets the kernel after start 1: at once, 2: at its end.
    DEPENDENT: tl.constexpr,
):
    """Computes tile after tile of C, with tensor descriptors (bulk tensor copies). All block-rows
    of a panel of B come one after another, so that the panel stays in L2."""
    if DEPENDENT == 1:
        tl.extra.cuda.gdc_launch_dependents()
    if DEPENDENT > 0:
        tl.extra.cuda.gdc_wait()
    for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0), flatten=FLATTEN):
        block_row = tile % block_rows
        panel = tile // block_rows
        first = block_row * BLOCKS
        sums = tl.zeros((128, BLOCK_N), tl.float32)
        # Loop bounds that the compiler knows: without them the flattened loop took 183 to 189 us
        # instead of 167 to 172 (H200, 2026-11-21).
        for i in range(0, BLOCKS):
            block = first + i
            a_block = values.load([block * 128, 0])
            b_block = b.load([tl.load(columns + block) * 32, panel * BLOCK_N])
            sums = tl.dot(a_block, b_block, sums)
        store_parts(c, sums, block_row * 128, panel * BLOCK_N, BLOCK_N, PARTS)
    if DEPENDENT == 2:
        tl.extra.cuda.gdc_launch_dependents()


@triton.jit
def store_parts(c, sums, row, column, WIDTH: tl.constexpr, PARTS: tl.constexpr):
    """Stores a tile in parts, side by side. Each part needs only its own part of shared memory."""
    if PARTS == 1:
        c.store([row, column], sums)
    else:
        halves = tl.permute(tl.reshape(sums, (128, 2, WIDTH // 2)), (0, 2, 1))
        left, right = tl.split(halves)
        store_parts(c, left, row, column, WIDTH // 2, PARTS // 2)
        store_parts(c, right, row, column + WIDTH // 2, WIDTH // 2, PARTS // 2)


@dataclass(frozen=True)
class Choice:
    """One configuration of the kernel."""

    block_n: int
    parts: int
    programs: int  # for each multiprocessor, each takes tile after tile; 0: one for each tile
    num_warps: int
    num_stages: int


# Found with ci/compare-peers.sh --sweep on an H200, 2026-11-21, PyTorch 2.11 and Triton 3.6. Not
# offered there, because they were slower: plain pointers instead of descriptors, and two blocks of
# A in one turn of the loop.
FASTEST = Choice(block_n=128, parts=4, programs=2, num_warps=4, num_stages=12)


@dataclass(frozen=True)
class Tensors:
    """The operands of one problem."""

    values: torch.Tensor  # [blocks * 128, 32] fp16, block after block
    columns: torch.Tensor  # [blocks] int32
    b: torch.Tensor  # [k, n] fp16
    c: torch.Tensor  # [m, n] fp32
    blocks_per_row: int

    @property
    def block_rows(self) -> int:
        return self.c.shape[0] // BLOCK_ROWS


def launch(t: Tensors, choice: Choice, warmup: bool = False, dependent: int = 0) -> None:
    """Launches the kernel, or only compiles it. `dependent`: DEPENDENT of the kernel."""
    tiles = t.block_rows * (t.b.shape[1] // choice.block_n)
    processors = torch.cuda.get_device_properties(0).multi_processor_count
    grid = (min(tiles, choice.programs * processors) or tiles,)
    arguments = (
        TensorDescriptor.from_tensor(t.values, [BLOCK_ROWS, BLOCK_COLUMNS]),
        t.columns,
        TensorDescriptor.from_tensor(t.b, [BLOCK_COLUMNS, choice.block_n]),
        TensorDescriptor.from_tensor(t.c, [BLOCK_ROWS, choice.block_n // choice.parts]),
        *(tiles, t.block_rows, t.blocks_per_row),
        *(choice.block_n, choice.parts, choice.programs > 0, dependent),
    )
    options = {
        "num_warps": choice.num_warps,
        "num_stages": choice.num_stages,
        "launch_pdl": dependent > 0,
    }
    if warmup:
        bsr_gemm_triton.warmup(*arguments, grid=grid, **options)
    else:
        bsr_gemm_triton[grid](*arguments, **options)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))
    import triton_program as program

    def require(sizes: Namespace) -> None:
        for name, value, unit in (
            ("m", sizes.m, BLOCK_ROWS),
            ("n", sizes.n, FASTEST.block_n),
            ("k", sizes.k, BLOCK_COLUMNS),
        ):
            if value % unit != 0:
                raise program.RefusedError(f"--{name} {value} is not a multiple of {unit}")
        if sizes.blocks_per_row > sizes.k // BLOCK_COLUMNS:
            raise program.RefusedError("--blocks-per-row is more than the block columns of --k")
        if sizes.m * sizes.n > 2**31 or sizes.k * sizes.n > 2**31:
            raise program.RefusedError("C or B has more than 2^31 elements")

    def draw_columns(sizes: Namespace) -> list[int]:
        """As kernels/bsr_gemm/problem.cuh: distinct columns of every block-row, ascending."""
        key = program.stream_key(sizes.seed, 0)
        choices, wanted = sizes.k // BLOCK_COLUMNS, sizes.blocks_per_row
        columns: list[int] = []
        for block_row in range(sizes.m // BLOCK_ROWS):
            deck = list(range(choices))
            for i in range(wanted):
                draw = program.random_bits(key, block_row * wanted + i) >> 32
                pick = i + (draw * (choices - i) >> 32)
                deck[i], deck[pick] = deck[pick], deck[i]
            columns += sorted(deck[:wanted])
        return columns

    class Product:
        tolerance = "|got - expected| <= K * 2^-23 * sum|a*b| for each element, K = its products"

        def __init__(self, sizes: Namespace) -> None:
            blocks = sizes.m // BLOCK_ROWS * sizes.blocks_per_row
            keys = [program.stream_key(sizes.value_seed, i) >> 1 for i in (1, 2)]
            shape = (blocks * BLOCK_ROWS, BLOCK_COLUMNS)
            self.tensors = Tensors(
                program.normal(keys[0], shape, SIGMA, torch.float16),
                torch.tensor(draw_columns(sizes), dtype=torch.int32, device="cuda"),
                program.normal(keys[1], (sizes.k, sizes.n), SIGMA, torch.float16),
                torch.empty(sizes.m, sizes.n, device="cuda"),
                sizes.blocks_per_row,
            )
            t = self.tensors
            self.flop = 2 * t.c.numel() * sizes.blocks_per_row * BLOCK_COLUMNS
            offsets = 4 * (t.block_rows + 1)
            self.bytes = t.values.nbytes + t.columns.nbytes + offsets + t.b.nbytes + t.c.nbytes

        def poison(self) -> None:
            self.tensors.c.fill_(torch.nan)

        def launch(self) -> None:
            launch(self.tensors, FASTEST)

        def differences(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
            """One block-row after another, in float64: the products of fp16 values are exact."""
            t = self.tensors
            depth = t.blocks_per_row * BLOCK_COLUMNS
            b_blocks = t.b.view(-1, BLOCK_COLUMNS, t.b.shape[1])
            for row in range(t.block_rows):
                here = slice(row * t.blocks_per_row, (row + 1) * t.blocks_per_row)
                a = t.values.view(-1, BLOCK_ROWS, BLOCK_COLUMNS)[here]
                a = a.transpose(0, 1).reshape(BLOCK_ROWS, depth).double()
                b = b_blocks[t.columns[here].long()].reshape(depth, -1).double()
                got = t.c[row * BLOCK_ROWS : (row + 1) * BLOCK_ROWS].double()
                yield (got - a @ b).abs(), depth * 2.0**-23 * (a.abs() @ b.abs())

    sys.exit(
        program.run(
            "bsr_gemm_triton",
            "Block-sparse times dense in Triton.",
            {"m": 8192, "n": 8192, "k": 8192, "blocks-per-row": 16},
            require,
            Product,
        )
    )
