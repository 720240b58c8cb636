"""The peers of attention: Triton, the backends of torch's scaled_dot_product_attention, and
FlashInfer where it is installed."""

import ctypes
import itertools
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

import flashinfer_peer
from binding import Inputs, Variant, tensor
from contest import Contest, Contestant, on_inputs, variants
from families import Family, Sizes
from floors import Floors
from sweep import faster, fastest
from twins import DEPENDENT, twin

TWIN = twin("attention")
Choice, Tensors, launch = TWIN.Choice, TWIN.Tensors, TWIN.launch

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


def choices() -> list[Choice]:
    return [Choice(*each) for each in itertools.product((64, 128), (64, 128), (4, 8), (2, 3, 4))]


def compile_choice(sizes: Sizes, choice: Choice) -> None:
    rows = sizes["batch"] * sizes["heads"] * sizes["sequence"]
    empty = [
        torch.empty(rows, sizes["features"], dtype=torch.float16, device="cuda") for _ in range(4)
    ]
    launch(Tensors(*empty, sizes["sequence"]), choice, warmup=True)


def compile_jobs(sizes: Sizes) -> list[Callable[[], None]]:
    return [partial(compile_choice, sizes, choice) for choice in choices()]


def contest(
    family: Family, sizes: Sizes, ours: Sequence[Variant], floors: Floors, sweep: bool
) -> Contest:
    inputs = [Inputs(ours[0], Operands, sizes, seed=1)]
    p = inputs[0].operands
    shape = tuple(sizes[name] for name in ("batch", "heads", "sequence", "features"))
    q, k, v, out = (tensor(pointer, shape, torch.float16) for pointer in (p.q, p.k, p.v, p.out))
    rows = [each.view(-1, sizes["features"]) for each in (q, k, v, out)]
    tensors = Tensors(*rows, sizes["sequence"])

    def in_triton(choice: Choice, dependent: int = 0) -> Contestant:
        return on_inputs(
            "Triton",
            inputs,
            lambda _: launch(tensors, choice, dependent=dependent),
            configuration=f"{choice}, dependent={dependent}",
            dependent=dependent > 0,
        )

    def attend(backend: SDPBackend | None) -> Callable[[int], torch.Tensor]:
        def launch_backend(_: int) -> torch.Tensor:
            with nullcontext() if backend is None else sdpa_kernel(backend):
                return scaled_dot_product_attention(q, k, v)

        return launch_backend

    choice = fastest(choices(), in_triton, 1) if sweep else TWIN.FASTEST
    dependent = faster(DEPENDENT, lambda one: in_triton(choice, one), 1)
    return Contest(
        family,
        sizes,
        1,
        [
            *floors.copies(q, k, v, p.heads, p.sequence),
            *variants(ours, inputs),
            in_triton(choice),
            in_triton(choice, dependent),
            *(
                on_inputs(name, inputs, attend(backend), outputs=[out])
                for name, backend in BACKENDS.items()
            ),
            *flashinfer_peer.attention(q, k, v, out, inputs),
        ],
    )
