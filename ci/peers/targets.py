"""The targets of the shipped kernels, on one H200."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from contest import Contest, Outcome

# Times of a launch inside a graph; us.
BSR_GEMM_US = 125.0
TRITON_OVER_BSR_GEMM = 1.5
RESAMPLE_US: dict[tuple[int, ...], float] = {
    (64, 1000, 512, 512): 24.0,
    (256, 100, 2048, 256): 72.0,
}
ATTENTION_US = 8.0


@dataclass(frozen=True)
class Target:
    """One bound. A value that is missing, because its contestant has no time, misses the bound."""

    name: str
    value: float | None
    limit: float  # the value must be at most this, or below it if `strict`
    strict: bool = False

    @property
    def met(self) -> bool:
        if self.value is None:
            return False
        return self.value < self.limit or (not self.strict and self.value == self.limit)


def targets(contest: Contest, outcomes: list[Outcome]) -> list[Target]:
    """The targets of one contest."""
    times = {o.contestant.name: o.median_us for o in outcomes if o.right}
    peers = [o.contestant.name for o in outcomes if not o.contestant.ours]
    return list(OF_FAMILY[contest.family.name](contest, times, peers))


def ratio(times: dict[str, float], of: str, to: str) -> float | None:
    return times[of] / times[to] if of in times and to in times else None


def faster(times: dict[str, float], ours: str, than: str, by: float = 1.0) -> Target:
    name = f"time of {ours} over that of {than}"
    return Target(name, ratio(times, ours, than), 1 / by, strict=by == 1.0)


def of_bsr_gemm(contest: Contest, times: dict[str, float], _: list[str]) -> Iterator[Target]:
    ours = contest.family.variants
    last = ours[-1]
    gathered = "cuBLAS dense {m}x{n}x{depth}".format(
        **contest.sizes, depth=contest.sizes["blocks-per-row"] * 32
    )
    yield Target(f"{last}, us", times.get(last), BSR_GEMM_US)
    yield faster(times, last, gathered)
    yield faster(times, last, "Triton", by=TRITON_OVER_BSR_GEMM)
    for before, variant in pairwise(ours):
        yield faster(times, variant, before)


def of_resample(contest: Contest, times: dict[str, float], peers: list[str]) -> Iterator[Target]:
    ran = [variant for variant in contest.family.variants if variant in times]
    best = min(ran, key=lambda variant: times[variant], default="no variant")
    limit = RESAMPLE_US.get(tuple(contest.sizes.values()))
    if limit is not None:
        yield Target(f"{best}, us", times.get(best), limit)
    for peer in peers:
        yield faster(times, best, peer)


def of_attention(contest: Contest, times: dict[str, float], peers: list[str]) -> Iterator[Target]:
    last = contest.family.variants[-1]
    yield Target(f"{last}, us", times.get(last), ATTENTION_US)
    for peer in peers:
        yield faster(times, last, peer)


OF_FAMILY = {
    "bsr_gemm": of_bsr_gemm,
    "trajectory_resample": of_resample,
    "attention": of_attention,
}
