"""FlashInfer as a peer of attention and attention_causal, where it can be imported. Its backend
for Hopper implements FlashAttention 3."""

import time
from collections.abc import Callable, Sequence
from typing import Any

import torch

from binding import Inputs
from contest import Contestant, on_inputs

WORKSPACE_BYTES = 128 << 20  # what FlashInfer recommends for a planned call
Attend = Callable[[], torch.Tensor]  # [sequence, heads, features]


def attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, out: torch.Tensor, inputs: Sequence[Inputs]
) -> list[Contestant]:
    """FlashInfer at the problem of attention; nothing if it is not here."""
    return contestants(q, k, v, out, inputs, causal=False)


def attention_causal(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, out: torch.Tensor, inputs: Sequence[Inputs]
) -> list[Contestant]:
    """FlashInfer at the problem of attention_causal; nothing if it is not here."""
    return contestants(q, k, v, out, inputs, causal=True)


def contestants(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    out: torch.Tensor,
    inputs: Sequence[Inputs],
    causal: bool,
) -> list[Contestant]:
    """Its kernels for Hopper, with and without a plan, and its kernels for every architecture.

    All tensors are [batch, heads, sequence, features]. FlashInfer takes [sequence, heads, features]
    with any strides except the last, so that views suffice: the batch becomes more heads.
    """
    try:
        import flashinfer
    except Exception as error:  # whatever a library raises, the contest goes on without it
        print(f"without FlashInfer: {type(error).__name__}: {error}", flush=True)
        return []
    views = [each.flatten(0, 1).transpose(0, 1) for each in (q, k, v)]
    makers: dict[str, Callable[[], Attend]] = {
        "FlashInfer FA3": lambda: single(flashinfer, views, causal, "fa3"),
        "FlashInfer FA3 ragged": lambda: planned(flashinfer, views, causal, "fa3"),
        "FlashInfer FA2": lambda: single(flashinfer, views, causal, "fa2"),
    }
    found = []
    for name, make in makers.items():
        start_s = time.monotonic()
        try:
            attend = make()
            attend()  # compiles the kernels, unless they were compiled before
            torch.cuda.synchronize()
        except Exception as error:
            print(f"without {name}: {type(error).__name__}: {error}", flush=True)
            continue
        print(f"{name} was ready after {time.monotonic() - start_s:.0f} s", flush=True)
        found.append(
            on_inputs(
                name,
                inputs,
                in_shape_of(out, attend),
                outputs=[out],
                configuration=f"version {flashinfer.__version__}",
            )
        )
    return found


def in_shape_of(out: torch.Tensor, attend: Attend) -> Callable[[int], torch.Tensor]:
    """A launch whose result has the shape of the problem's output. It copies nothing."""
    return lambda _: attend().transpose(0, 1).unflatten(0, out.shape[:2])


def single(flashinfer: Any, views: Sequence[torch.Tensor], causal: bool, backend: str) -> Attend:
    """The call for one request. Its kernels for Hopper take the number of keys from the first
    dimension whatever the layout, so that "HND" would be wrong."""
    q, k, v = views
    return lambda: flashinfer.single_prefill_with_kv_cache(
        q, k, v, causal=causal, kv_layout="NHD", backend=backend
    )


def planned(flashinfer: Any, views: Sequence[torch.Tensor], causal: bool, backend: str) -> Attend:
    """The call for requests of various lengths, here one. Its plan, made beforehand, distributes
    the tiles over the multiprocessors."""
    q, k, v = views
    workspace = torch.empty(WORKSPACE_BYTES, dtype=torch.uint8, device=q.device)
    wrapper = flashinfer.BatchPrefillWithRaggedKVCacheWrapper(workspace, "NHD", backend=backend)
    ends = torch.tensor([0, q.shape[0]], dtype=torch.int32)
    wrapper.plan(ends, ends, q.shape[1], k.shape[1], q.shape[2], causal=causal, q_data_type=q.dtype)
    return lambda: wrapper.run(q, k, v)
