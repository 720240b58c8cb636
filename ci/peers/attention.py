"""The peers of attention: the backends of torch's scaled_dot_product_attention."""

import ctypes
from collections.abc import Callable, Sequence
from contextlib import nullcontext

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

from binding import Inputs, Variant, tensor
from contest import Contest, on_inputs, variants
from families import Family, Sizes

BACKENDS = {
    "SDPA default": None,
    "SDPA cuDNN": SDPBackend.CUDNN_ATTENTION,
    "SDPA flash": SDPBackend.FLASH_ATTENTION,
    "SDPA memory-efficient": SDPBackend.EFFICIENT_ATTENTION,
}


class Operands(ctypes.Structure):
    """`sparsek::AttentionOperands` of kernels/attention/reference.cuh."""

    _fields_ = [
        ("q", ctypes.c_void_p),
        ("k", ctypes.c_void_p),
        ("v", ctypes.c_void_p),
        ("out", ctypes.c_void_p),
        ("heads", ctypes.c_int),  # of the whole batch
        ("sequence", ctypes.c_int),
    ]


def compile_jobs(_: Sizes) -> list[Callable[[], None]]:
    """Nothing to compile: there are no configurations."""
    return []


def contest(family: Family, sizes: Sizes, ours: Sequence[Variant], sweep: bool) -> Contest:
    del sweep
    inputs = [Inputs(ours[0], Operands, sizes, seed=1)]
    p = inputs[0].operands
    shape = tuple(sizes[name] for name in ("batch", "heads", "sequence", "features"))
    q, k, v, out = (tensor(pointer, shape, torch.float16) for pointer in (p.q, p.k, p.v, p.out))

    def attend(backend: SDPBackend | None) -> Callable[[int], torch.Tensor]:
        def launch(_: int) -> torch.Tensor:
            with nullcontext() if backend is None else sdpa_kernel(backend):
                return scaled_dot_product_attention(q, k, v)

        return launch

    peers = [
        on_inputs(name, inputs, attend(backend), outputs=[out])
        for name, backend in BACKENDS.items()
    ]
    return Contest(family, sizes, 1, [*variants(ours, inputs), *peers])
