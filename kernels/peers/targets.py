"""The targets of the shipped kernels, on one H200."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from contest import Contest, Outcome
from families import NO_STEP

# Times of a launch inside a graph; us.
BSR_GEMM_US = 125.0
TRITON_OVER_BSR_GEMM = 1.5
RESAMPLE_US: dict[tuple[int, ...], float] = {
    (64, 1000, 512, 512): 24.0,
    (256, 100, 2048, 256): 72.0,
}
ATTENTION_US = 3.8
CUDNN_SHARE = 0.9  # of the speed of cuDNN, at least


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


# Times by the name of a contestant; us.
Times = dict[str, float]


@dataclass(frozen=True)
class Measured:
    """The times of one contest, by how the launches were made."""

    plain: Times
    dependent: Times

    def best(self, name: str) -> float | None:
        times = [each[name] for each in (self.plain, self.dependent) if name in each]
        return min(times, default=None)


def targets(contest: Contest, outcomes: list[Outcome]) -> list[Target]:
    """The targets of one contest."""
    right = [o for o in outcomes if o.right and not o.contestant.floor]
    measured = Measured(
        {o.contestant.name: o.median_us for o in right if not o.contestant.dependent},
        {o.contestant.name: o.median_us for o in right if o.contestant.dependent},
    )
    peers = [o.contestant for o in outcomes if not o.contestant.ours and not o.contestant.floor]
    names = list(dict.fromkeys(peer.name for peer in peers))
    return list(OF_FAMILY[contest.family.name](contest, measured, names))


def ratio(times: Times, of: str, to: str) -> float | None:
    return times[of] / times[to] if of in times and to in times else None


def faster(times: Times, ours: str, than: str, by: float = 1.0) -> Target:
    name = f"time of {ours} over that of {than}"
    return Target(name, ratio(times, ours, than), 1 / by, strict=by == 1.0)


def faster_alike(measured: Measured, ours: str, than: str, by: float = 1.0) -> Iterator[Target]:
    """Plain launches against plain ones, and dependent ones against dependent ones."""
    yield faster(measured.plain, ours, than, by)
    if ours in measured.dependent and than in measured.dependent:
        found = faster(measured.dependent, ours, than, by)
        yield replace(found, name=f"{found.name}, dependent launches")


def of_bsr_gemm(contest: Contest, measured: Measured, _: list[str]) -> Iterator[Target]:
    ours = contest.family.variants
    last = ours[-1]
    gathered = "cuBLAS dense {m}x{n}x{depth}".format(
        **contest.sizes, depth=contest.sizes["blocks-per-row"] * 32
    )
    yield Target(f"{last}, us", measured.best(last), BSR_GEMM_US)
    yield faster(measured.plain, last, gathered)
    yield from faster_alike(measured, last, "Triton", by=TRITON_OVER_BSR_GEMM)
    for variant in ours:
        before = contest.family.before(variant)
        if before is not None and f"{contest.family.name}/{variant}" not in NO_STEP:
            yield faster(measured.plain, variant, before)


def of_resample(contest: Contest, measured: Measured, peers: list[str]) -> Iterator[Target]:
    ran = [variant for variant in contest.family.variants if variant in measured.plain]
    best = min(ran, key=lambda variant: measured.plain[variant], default="no variant")
    limit = RESAMPLE_US.get(tuple(contest.sizes.values()))
    if limit is not None:
        yield Target(f"{best}, us", measured.best(best), limit)
    for peer in peers:
        yield from faster_alike(measured, best, peer)


def of_attention(contest: Contest, measured: Measured, peers: list[str]) -> Iterator[Target]:
    last = contest.family.variants[-1]
    yield Target(f"{last}, us", measured.best(last), ATTENTION_US)
    for peer in peers:
        yield from faster_alike(measured, last, peer)


def of_attention_causal(contest: Contest, measured: Measured, _: list[str]) -> Iterator[Target]:
    yield faster(measured.plain, contest.family.variants[-1], "SDPA cuDNN", by=CUDNN_SHARE)


OF_FAMILY = {
    "bsr_gemm": of_bsr_gemm,
    "trajectory_resample": of_resample,
    "attention": of_attention,
    "attention_causal": of_attention_causal,
}
