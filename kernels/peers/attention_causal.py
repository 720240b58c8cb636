"""The peers of attention_causal: the backends of torch's scaled_dot_product_attention, a
product of cuBLAS, and FlashInfer where it is installed."""

import ctypes
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

import flashinfer_peer
from binding import Inputs, Variant, tensor
from bsr_gemm import products
from contest import Contest, Contestant, on_inputs, variants
from families import Family, Sizes
from floors import Floors

BACKENDS = {
    "SDPA default": None,
    "SDPA cuDNN": SDPBackend.CUDNN_ATTENTION,
    "SDPA flash": SDPBackend.FLASH_ATTENTION,
}
PRODUCT_SIDE = 4096  # rows and columns of the dense product


class Operands(ctypes.Structure):
    """`sparsek::AttentionCausalOperands` of kernels/attention_causal/reference.cuh."""

    _fields_ = [
        ("q", ctypes.c_void_p),
        ("k", ctypes.c_void_p),
        ("v", ctypes.c_void_p),
        ("out", ctypes.c_void_p),
        ("heads", ctypes.c_int),  # of queries, of the whole batch
        ("group", ctypes.c_int),  # query heads of a head of keys
        ("sequence", ctypes.c_int),
    ]


@dataclass(frozen=True)
class Tensors:
    """The operands of one problem."""

    q: torch.Tensor  # [batch, heads, sequence, features]
    k: torch.Tensor  # [batch, kv heads, sequence, features]
    v: torch.Tensor
    out: torch.Tensor


def tensors_of(inputs: Inputs) -> Tensors:
    p, sizes = inputs.operands, inputs.sizes

    def of(pointer: int, heads: int) -> torch.Tensor:
        shape = (sizes["batch"], heads, sizes["sequence"], sizes["features"])
        return tensor(pointer, shape, torch.bfloat16)

    heads, kv_heads = sizes["heads"], sizes["kv-heads"]
    return Tensors(of(p.q, heads), of(p.k, kv_heads), of(p.v, kv_heads), of(p.out, heads))


def compile_jobs(_: Sizes) -> list[Callable[[], None]]:
    """Nothing to compile: there are no configurations."""
    return []


def contest(
    family: Family, sizes: Sizes, ours: Sequence[Variant], floors: Floors, sweep: bool
) -> Contest:
    del floors, sweep
    inputs = [Inputs(ours[0], Operands, sizes, seed=1)]
    tensors = tensors_of(inputs[0])
    return Contest(
        family,
        sizes,
        1,
        [
            *product_of_as_many_flop(inputs[0].flop),
            *variants(ours, inputs),
            *(attention(name, backend, tensors, inputs) for name, backend in BACKENDS.items()),
            *flashinfer_peer.attention_causal(tensors.q, tensors.k, tensors.v, tensors.out, inputs),
        ],
    )


def attention(
    name: str, backend: SDPBackend | None, t: Tensors, inputs: Sequence[Inputs]
) -> Contestant:
    """One backend. One that does not support grouped heads has its keys and values repeated
    beforehand, outside of the measured time."""

    def attend(k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        grouped = k.shape[1] != t.q.shape[1]
        with nullcontext() if backend is None else sdpa_kernel(backend):
            return scaled_dot_product_attention(t.q, k, v, is_causal=True, enable_gqa=grouped)

    k, v, configuration = t.k, t.v, ""
    try:
        attend(k, v)
    except RuntimeError:
        group = t.q.shape[1] // t.k.shape[1]
        k, v = (each.repeat_interleave(group, dim=1) for each in (t.k, t.v))
        configuration = "keys and values repeated for each query head beforehand"
    return on_inputs(
        name, inputs, lambda _: attend(k, v), outputs=[t.out], configuration=configuration
    )


def product_of_as_many_flop(flop: int) -> list[Contestant]:
    """Dense products of cuBLAS with about as many FLOP, bf16: what the tensor cores do without a
    softmax."""
    depth = round(flop / (2 * PRODUCT_SIDE**2) / 64) * 64
    a = torch.randn(PRODUCT_SIDE, depth, device="cuda").bfloat16()
    b = torch.randn(depth, PRODUCT_SIDE, device="cuda").bfloat16()
    return [replace(one, floor=True) for one in products(a, b)]
