"""The peers of bsr_gemm: Triton on the same problem, cuBLAS on dense ones."""

import ctypes
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from binding import Check, Inputs, Variant, tensor
from contest import Contest, Contestant, on_inputs, variants
from families import Family, Sizes
from sweep import fastest

BLOCK_ROWS = 128  # of a block of A
BLOCK_COLUMNS = 32


class Operands(ctypes.Structure):
    """`sparsek::Operands` of kernels/bsr_gemm/problem.cuh."""

    _fields_ = [
        ("values", ctypes.c_void_p),
        ("columns", ctypes.c_void_p),
        ("row_offsets", ctypes.c_void_p),
        ("b", ctypes.c_void_p),
        ("c", ctypes.c_void_p),
        ("m", ctypes.c_int),
        ("n", ctypes.c_int),
        ("k", ctypes.c_int),
        ("host_row_offsets", ctypes.c_void_p),
    ]


@dataclass(frozen=True)
class Tensors:
    """The operands of one problem."""

    values: torch.Tensor  # [blocks * 128, 32] fp16, block after block
    columns: torch.Tensor  # [blocks] int32
    b: torch.Tensor  # [k, n] fp16
    c: torch.Tensor  # [m, n] fp32
    blocks_per_row: int

    @staticmethod
    def of(inputs: Inputs) -> "Tensors":
        p = inputs.operands
        blocks_per_row = inputs.sizes["blocks-per-row"]
        blocks = p.m // BLOCK_ROWS * blocks_per_row
        values = tensor(p.values, (blocks * BLOCK_ROWS, BLOCK_COLUMNS), torch.float16)
        columns = tensor(p.columns, (blocks,), torch.int32)
        b = tensor(p.b, (p.k, p.n), torch.float16)
        c = tensor(p.c, (p.m, p.n), torch.float32)
        return Tensors(values, columns, b, c, blocks_per_row)

    @staticmethod
    def empty(sizes: Sizes) -> "Tensors":
        """Tensors without data, to compile for these sizes."""
        m, n, k = sizes["m"], sizes["n"], sizes["k"]
        blocks = m // BLOCK_ROWS * sizes["blocks-per-row"]

        def make(*shape: int, dtype: torch.dtype) -> torch.Tensor:
            return torch.empty(shape, dtype=dtype, device="cuda")

        return Tensors(
            make(blocks * BLOCK_ROWS, BLOCK_COLUMNS, dtype=torch.float16),
            make(blocks, dtype=torch.int32),
            make(k, n, dtype=torch.float16),
            make(m, n, dtype=torch.float32),
            sizes["blocks-per-row"],
        )

    @property
    def block_rows(self) -> int:
        return self.c.shape[0] // BLOCK_ROWS


@triton.jit
def bsr_gemm(
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
):
    """Computes tile after tile of C, with tensor descriptors (bulk tensor copies). All block-rows
    of a panel of B come one after another, so that the panel stays in L2."""
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
    """One configuration of the Triton kernel."""

    block_n: int
    parts: int
    programs: int  # for each multiprocessor, each takes tile after tile; 0: one for each tile
    num_warps: int
    num_stages: int


# Found with --sweep on an H200, 2026-11-21, PyTorch 2.11 and Triton 3.6. Not offered, because they
# were slower: plain pointers instead of descriptors, and two blocks of A in one turn of the loop.
FASTEST = Choice(block_n=128, parts=4, programs=2, num_warps=4, num_stages=12)


def choices() -> list[Choice]:
    """The configurations whose ring and slab fit in shared memory. Triton uses about half of
    num_stages for the ring, because the place of a B block is itself loaded."""
    found = []
    for block_n, parts, programs, num_warps, num_stages in itertools.product(
        (128, 256), (1, 2, 4), (0, 1, 2), (4, 8), (4, 8, 10, 12, 16)
    ):
        ring = 32 * (128 + block_n) * 2 * num_stages // 2
        slab = 128 * block_n * 4 // parts
        if ring + slab <= 227 * 1024 // max(programs, 1) and block_n <= num_warps * 32:
            found.append(Choice(block_n, parts, programs, num_warps, num_stages))
    return found


def launch(t: Tensors, choice: Choice, warmup: bool = False) -> None:
    """Launches the Triton kernel, or only compiles it."""
    tiles = t.block_rows * (t.b.shape[1] // choice.block_n)
    processors = torch.cuda.get_device_properties(0).multi_processor_count
    grid = (min(tiles, choice.programs * processors) or tiles,)
    arguments = (
        TensorDescriptor.from_tensor(t.values, [BLOCK_ROWS, BLOCK_COLUMNS]),
        t.columns,
        TensorDescriptor.from_tensor(t.b, [BLOCK_COLUMNS, choice.block_n]),
        TensorDescriptor.from_tensor(t.c, [BLOCK_ROWS, choice.block_n // choice.parts]),
        *(tiles, t.block_rows, t.blocks_per_row),
        *(choice.block_n, choice.parts, choice.programs > 0),
    )
    options = {"num_warps": choice.num_warps, "num_stages": choice.num_stages}
    if warmup:
        bsr_gemm.warmup(*arguments, grid=grid, **options)
    else:
        bsr_gemm[grid](*arguments, **options)


def compile_choice(sizes: Sizes, choice: Choice) -> None:
    launch(Tensors.empty(sizes), choice, warmup=True)


def compile_jobs(sizes: Sizes) -> list[Callable[[], None]]:
    return [partial(compile_choice, sizes, choice) for choice in choices()]


def contest(family: Family, sizes: Sizes, ours: Sequence[Variant], sweep: bool) -> Contest:
    inputs = [Inputs(ours[0], Operands, sizes, seed=1)]
    tensors = Tensors.of(inputs[0])

    def in_triton(choice: Choice) -> Contestant:
        return on_inputs(
            "Triton", inputs, lambda _: launch(tensors, choice), configuration=str(choice)
        )

    choice = fastest(choices(), in_triton, 1) if sweep else FASTEST
    return Contest(
        family,
        sizes,
        1,
        [
            *variants(ours, inputs),
            in_triton(choice),
            gathered(tensors),
            dense(tensors),
        ],
    )


def gathered(t: Tensors) -> Contestant:
    """A dense product of as many FLOP: A's blocks side by side, as if every block-row of A had the
    same columns. So B has only as many rows, and there are no index lookups."""
    depth = t.blocks_per_row * BLOCK_COLUMNS
    blocks = t.values.view(t.block_rows, t.blocks_per_row, BLOCK_ROWS, BLOCK_COLUMNS)
    a = blocks.transpose(1, 2).reshape(t.block_rows * BLOCK_ROWS, depth).contiguous()
    return product(a, t.b[:depth])


def dense(t: Tensors) -> Contestant:
    """The product with a dense A of the same sizes."""
    a = torch.randn(t.c.shape[0], t.b.shape[0], device="cuda") * 0.02
    return product(a.half(), t.b)


def product(a: torch.Tensor, b: torch.Tensor) -> Contestant:
    """cuBLAS, fp16 in and fp32 out."""
    m, k = a.shape
    n = b.shape[1]
    c = torch.empty(m, n, device="cuda", dtype=torch.float32)

    def poison(_: int) -> None:
        c.fill_(torch.nan)

    def multiply(_: int) -> None:
        torch.mm(a, b, out_dtype=torch.float32, out=c)

    return Contestant(
        f"cuBLAS dense {m}x{n}x{k}",
        False,
        poison,
        multiply,
        lambda *_: check_product(a, b, c),
        flop=2 * m * n * k,
        bytes=a.nbytes + b.nbytes + c.nbytes,
    )


def check_product(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> Check:
    """Compares with float64, with the tolerance of kernels/bsr_gemm/reference.cuh."""
    error = (c.double() - a.double() @ b.double()).abs()
    magnitude = a.double().abs() @ b.double().abs()
    over = error / (a.shape[1] * 2.0**-23 * magnitude)
    wrong = int((~(over <= 1)).sum())  # NaN is wrong
    return Check(c.numel(), wrong, error.max().item(), over.max().item())
