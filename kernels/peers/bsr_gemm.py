"""The peers of bsr_gemm: Triton and a batched product of cuBLAS on the same problem, cuBLAS on
dense ones."""

import ctypes
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import torch

from binding import Check, Inputs, Variant, tensor
from contest import Contest, Contestant, on_inputs, variants
from cublaslt import Product
from families import Family, Sizes
from floors import Floors, Traffic
from sweep import faster, fastest
from twins import DEPENDENT, twin

TWIN = twin("bsr_gemm")
BLOCK_ROWS, BLOCK_COLUMNS = TWIN.BLOCK_ROWS, TWIN.BLOCK_COLUMNS  # of a block of A
Choice, Tensors, launch = TWIN.Choice, TWIN.Tensors, TWIN.launch


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
class Gathered:
    """Tensors of a product with gathered rows of B."""

    a: torch.Tensor  # [block-rows, 128, depth]
    blocks: torch.Tensor  # of B, [k / 32, 32 * n]
    gathered: torch.Tensor  # [blocks of A, 32 * n]
    c: torch.Tensor  # [block-rows, 128, n]


def tensors_of(inputs: Inputs) -> Tensors:
    """The operands of one problem."""
    p = inputs.operands
    blocks_per_row = inputs.sizes["blocks-per-row"]
    blocks = p.m // BLOCK_ROWS * blocks_per_row
    return Tensors(
        tensor(p.values, (blocks * BLOCK_ROWS, BLOCK_COLUMNS), torch.float16),
        tensor(p.columns, (blocks,), torch.int32),
        tensor(p.b, (p.k, p.n), torch.float16),
        tensor(p.c, (p.m, p.n), torch.float32),
        blocks_per_row,
    )


def empty_tensors(sizes: Sizes) -> Tensors:
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


def compile_choice(sizes: Sizes, choice: Choice) -> None:
    launch(empty_tensors(sizes), choice, warmup=True)


def compile_jobs(sizes: Sizes) -> list[Callable[[], None]]:
    return [partial(compile_choice, sizes, choice) for choice in choices()]


def contest(
    family: Family, sizes: Sizes, ours: Sequence[Variant], floors: Floors, sweep: bool
) -> Contest:
    inputs = [Inputs(ours[0], Operands, sizes, seed=1)]
    tensors = tensors_of(inputs[0])

    def in_triton(choice: Choice, dependent: int = 0) -> Contestant:
        return on_inputs(
            "Triton",
            inputs,
            lambda _: launch(tensors, choice, dependent=dependent),
            configuration=f"{choice}, dependent={dependent}",
            dependent=dependent > 0,
        )

    read = torch.cat([each.view(-1).view(torch.uint8) for each in (tensors.values, tensors.b)])
    choice = fastest(choices(), in_triton, 1) if sweep else TWIN.FASTEST
    dependent = faster(DEPENDENT, lambda one: in_triton(choice, one), 1)
    return Contest(
        family,
        sizes,
        1,
        [
            *floors.streams([Traffic(read, read.nbytes, tensors.c)]),
            *variants(ours, inputs),
            in_triton(choice),
            in_triton(choice, dependent),
            batched(tensors, inputs),
            *gathered(tensors),
            *dense(tensors),
        ],
    )


def batched(t: Tensors, inputs: Sequence[Inputs]) -> Contestant:
    """The same problem: the rows of B that each block-row needs are gathered, then multiplied by
    cuBLAS as a batch. A's blocks are put side by side beforehand."""
    blocks = t.values.view(t.block_rows, t.blocks_per_row, BLOCK_ROWS, BLOCK_COLUMNS)
    depth, n = t.blocks_per_row * BLOCK_COLUMNS, t.b.shape[1]
    all_of = Gathered(
        blocks.transpose(1, 2).reshape(t.block_rows, BLOCK_ROWS, depth).contiguous(),
        t.b.view(-1, BLOCK_COLUMNS * n),
        torch.empty(t.columns.numel(), BLOCK_COLUMNS * n, device="cuda", dtype=torch.float16),
        t.c.view(t.block_rows, BLOCK_ROWS, n),
    )

    def multiply(_: int) -> None:
        torch.index_select(all_of.blocks, 0, t.columns, out=all_of.gathered)
        b = all_of.gathered.view(t.block_rows, depth, n)
        torch.bmm(all_of.a, b, out_dtype=torch.float32, out=all_of.c)

    return on_inputs("gather and batched cuBLAS", inputs, multiply)


def gathered(t: Tensors) -> list[Contestant]:
    """Dense products of as many FLOP: A's blocks side by side, as if every block-row of A had the
    same columns. So B has only as many rows, and there are no index lookups."""
    depth = t.blocks_per_row * BLOCK_COLUMNS
    blocks = t.values.view(t.block_rows, t.blocks_per_row, BLOCK_ROWS, BLOCK_COLUMNS)
    a = blocks.transpose(1, 2).reshape(t.block_rows * BLOCK_ROWS, depth).contiguous()
    return products(a, t.b[:depth])


def dense(t: Tensors) -> list[Contestant]:
    """The products with a dense A of the same sizes."""
    a = torch.randn(t.c.shape[0], t.b.shape[0], device="cuda") * 0.02
    return products(a.half(), t.b)


def products(a: torch.Tensor, b: torch.Tensor) -> list[Contestant]:
    """cuBLAS, fp16 or bf16 in and fp32 out: as PyTorch calls it, and the fastest of the first
    algorithms of cuBLASLt."""
    m, k = a.shape
    n = b.shape[1]
    c = torch.empty(m, n, device="cuda", dtype=torch.float32)

    def poison(_: int) -> None:
        c.fill_(torch.nan)

    def in_torch(_: int) -> None:
        torch.mm(a, b, out_dtype=torch.float32, out=c)

    def contestant(
        library: str, multiply: Callable[[int], None], configuration: str = ""
    ) -> Contestant:
        return Contestant(
            f"{library} dense {m}x{n}x{k}",
            False,
            poison,
            multiply,
            lambda *_: check_product(a, b, c),
            flop=2 * m * n * k,
            bytes=a.nbytes + b.nbytes + c.nbytes,
            configuration=configuration,
        )

    found = [contestant("cuBLAS", in_torch)]
    try:
        product = Product(a, b, c)

        def of_lt(algorithm: int) -> Contestant:
            return contestant(
                "cuBLASLt",
                lambda _: product.multiply(algorithm),
                f"algorithm {algorithm} of the first {len(product.algorithms)}",
            )

        found.append(of_lt(fastest(range(len(product.algorithms)), of_lt, 1)))
    except (AttributeError, OSError, RuntimeError) as error:
        print(f"cuBLASLt is left out: {error}")
    return found


def check_product(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> Check:
    """Compares with float64, with the tolerance of kernels/bsr_gemm/reference.cuh."""
    error = (c.double() - a.double() @ b.double()).abs()
    magnitude = a.double().abs() @ b.double().abs()
    over = error / (a.shape[1] * 2.0**-23 * magnitude)
    wrong = int((~(over <= 1)).sum())  # NaN is wrong
    return Check(c.numel(), wrong, error.max().item(), over.max().item())
