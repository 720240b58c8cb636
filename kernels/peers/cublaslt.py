"""Matrix products of cuBLASLt by its C interface, with a choice among its algorithms."""

import ctypes
from dataclasses import dataclass

import torch

R_32F = 0  # cudaDataType_t
OPERANDS = {torch.float16: 2, torch.bfloat16: 14}  # CUDA_R_16F, CUDA_R_16BF
COMPUTE_32F = 68  # cublasComputeType_t
MAX_WORKSPACE_BYTES = 1  # cublasLtMatmulPreferenceAttributes_t
WORKSPACE_BYTES = 64 * 1024 * 1024
ALGORITHMS = 8


class Algorithm(ctypes.Structure):
    """`cublasLtMatmulAlgo_t`, opaque."""

    _fields_ = [("data", ctypes.c_uint64 * 8)]


class Heuristic(ctypes.Structure):
    """`cublasLtMatmulHeuristicResult_t`."""

    _fields_ = [
        ("algorithm", Algorithm),
        ("workspace_bytes", ctypes.c_size_t),
        ("state", ctypes.c_int),
        ("waves", ctypes.c_float),
        ("reserved", ctypes.c_int * 4),
    ]


def load() -> ctypes.CDLL:
    """The library that PyTorch has loaded, or one of the search path."""
    major = (torch.version.cuda or "13").split(".")[0]
    for name in (f"libcublasLt.so.{major}", "libcublasLt.so"):
        try:
            return ctypes.CDLL(name)
        except OSError as error:
            last = error
    raise last


def succeed(status: int) -> None:
    if status != 0:
        raise RuntimeError(f"cuBLASLt failed with status {status}")


@dataclass
class Product:
    """C = A·B, row-major, fp16 or bf16 in and fp32 out. cuBLASLt has the columns first: it computes
    the transposes, C' = B'·A', which lie in memory as they are."""

    a: torch.Tensor
    b: torch.Tensor
    c: torch.Tensor

    def __post_init__(self) -> None:
        (m, k), n = self.a.shape, self.b.shape[1]
        self.library = load()
        self.workspace = torch.empty(WORKSPACE_BYTES, dtype=torch.uint8, device="cuda")
        self.handle = self.created("cublasLtCreate")
        self.operation = self.created(
            "cublasLtMatmulDescCreate", ctypes.c_int(COMPUTE_32F), ctypes.c_int(R_32F)
        )
        operand = OPERANDS[self.a.dtype]
        self.layouts = [
            self.layout(operand, n, k),
            self.layout(operand, k, m),
            self.layout(R_32F, n, m),
        ]
        self.algorithms = self.first_algorithms()

    def created(self, function: str, *arguments: object) -> ctypes.c_void_p:
        made = ctypes.c_void_p()
        succeed(getattr(self.library, function)(ctypes.byref(made), *arguments))
        return made

    def layout(self, kind: int, rows: int, columns: int) -> ctypes.c_void_p:
        """Of a matrix with contiguous columns."""
        return self.created(
            "cublasLtMatrixLayoutCreate",
            ctypes.c_int(kind),
            ctypes.c_uint64(rows),
            ctypes.c_uint64(columns),
            ctypes.c_int64(rows),
        )

    def first_algorithms(self) -> list[Heuristic]:
        preference = self.created("cublasLtMatmulPreferenceCreate")
        limit = ctypes.c_size_t(WORKSPACE_BYTES)
        succeed(
            self.library.cublasLtMatmulPreferenceSetAttribute(
                preference,
                ctypes.c_int(MAX_WORKSPACE_BYTES),
                ctypes.byref(limit),
                ctypes.c_size_t(ctypes.sizeof(limit)),
            )
        )
        found = (Heuristic * ALGORITHMS)()
        count = ctypes.c_int()
        b, a, c = self.layouts
        succeed(
            self.library.cublasLtMatmulAlgoGetHeuristic(
                *(self.handle, self.operation, b, a, c, c, preference),
                *(ctypes.c_int(ALGORITHMS), found, ctypes.byref(count)),
            )
        )
        return [one for one in found[: count.value] if one.state == 0]

    def multiply(self, algorithm: int) -> None:
        one, zero = ctypes.c_float(1), ctypes.c_float(0)
        b, a, c = self.layouts
        out = ctypes.c_void_p(self.c.data_ptr())
        succeed(
            self.library.cublasLtMatmul(
                *(self.handle, self.operation, ctypes.byref(one)),
                *(ctypes.c_void_p(self.b.data_ptr()), b),
                *(ctypes.c_void_p(self.a.data_ptr()), a),
                *(ctypes.byref(zero), out, c, out, c),
                ctypes.byref(self.algorithms[algorithm].algorithm),
                ctypes.c_void_p(self.workspace.data_ptr()),
                ctypes.c_size_t(WORKSPACE_BYTES),
                ctypes.c_void_p(torch.cuda.current_stream().cuda_stream),
            )
        )
