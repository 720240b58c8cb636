"""Contestants at one problem: first checked, then timed side by side."""

import random
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch

from binding import Check, Inputs, Variant
from families import Family, Sizes

# The stream of launches in a library compiled with --default-stream per-thread
# (cudaStreamPerThread). Everything runs on it, so that it can be captured.
STREAM_HANDLE = 0x2

SLICE_US = 5_000  # duration of one replay of one contestant's graph
# Before each replay the device is idle for some 10 ms (at 2 GHz). A contestant that draws much
# power lowers the clock for the next one; the pause gives each contestant the same conditions.
PAUSE_CYCLES = 20_000_000
ROUNDS = 21
WARMUP_ROUNDS = 2
SINGLE_LAUNCHES = 40
SINGLE_PAUSE_CYCLES = 4_000_000  # some 2 ms: the host has queued a single launch by then


@dataclass(frozen=True)
class Contestant:
    """One implementation. Input sets have numbers."""

    name: str
    ours: bool
    poison: Callable[[int], None]  # fills the output with NaN
    launch: Callable[[int], torch.Tensor | None]  # asynchronous, on the current stream
    check: Callable[[int, torch.Tensor | None], Check]  # the output, or what a launch returned
    flop: int  # of one launch
    bytes: int  # that one launch must move
    configuration: str = ""
    dependent: bool = False  # its launches are dependent ones, with launches of the same before
    floor: bool = False  # a program that only moves data, or only multiplies: the work alone

    @property
    def title(self) -> str:
        return f"{self.name}, dependent launches" if self.dependent else self.name


@dataclass
class Outcome:
    """The results of a contestant. It has times only if all its checks are right."""

    contestant: Contestant
    # First of plain launches, then of the graph; one for each set of inputs.
    checks: list[Check] = field(default_factory=list)
    error: str = ""
    launches: int = 0  # in the graph
    graph_us: list[float] = field(default_factory=list)  # a launch, one for each replay
    single_us: list[float] = field(default_factory=list)  # one for each launch outside of a graph

    @property
    def right(self) -> bool:
        return not self.error and bool(self.checks) and all(check.right for check in self.checks)

    @property
    def median_us(self) -> float:
        return statistics.median(self.graph_us)

    @property
    def single_median_us(self) -> float:
        return statistics.median(self.single_us)


@dataclass(frozen=True)
class Contest:
    """The contestants at one family's problem of one size."""

    family: Family
    sizes: Sizes
    sets: int  # of inputs; successive launches use them in turn
    contestants: Sequence[Contestant]


def on_inputs(
    name: str,
    inputs: Sequence[Inputs],
    launch: Callable[[int], torch.Tensor | None],
    outputs: Sequence[torch.Tensor] = (),
    ours: bool = False,
    configuration: str = "",
    dependent: bool = False,
) -> Contestant:
    """A contestant at the family's own problem, checked with its reference.

    `launch` writes to the problem's output, or returns a tensor, which is then copied to `outputs`.
    """

    def check(number: int, result: torch.Tensor | None) -> Check:
        if result is not None:
            outputs[number].copy_(result)
            torch.cuda.synchronize()
        return inputs[number].check()

    return Contestant(
        name,
        ours,
        lambda number: inputs[number].poison_output(),
        launch,
        check,
        inputs[0].flop,
        inputs[0].bytes,
        configuration,
        dependent,
    )


def variants(ours: Sequence[Variant], inputs: Sequence[Inputs]) -> list[Contestant]:
    """Our variants, all with the same operands: with plain launches, and those that can, with
    dependent ones too."""
    for variant in ours:
        variant.require(inputs[0].sizes)

    def contestant(variant: Variant, dependent: bool) -> Contestant:
        def launch(number: int) -> None:
            variant.launch(inputs[number], dependent)

        return on_inputs(variant.name, inputs, launch, ours=True, dependent=dependent)

    return [
        contestant(variant, dependent)
        for variant in ours
        for dependent in ((False, True) if variant.can_be_dependent(inputs[0]) else (False,))
    ]


def run(contest: Contest) -> list[Outcome]:
    """Checks every contestant on every set of inputs, and times those that are right."""
    sets = contest.sets
    outcomes = [Outcome(contestant) for contestant in contest.contestants]
    graphs = [prepared(outcome, sets) for outcome in outcomes]
    timed = [(o, graph) for o, graph in zip(outcomes, graphs, strict=True) if graph is not None]
    time_rounds(timed)
    for outcome, _ in timed:
        outcome.single_us = time_single(outcome.contestant, sets, SINGLE_LAUNCHES)
    return outcomes


def prepared(outcome: Outcome, sets: int) -> torch.cuda.CUDAGraph | None:
    """The graph to time, if plain launches and the graph itself were right; otherwise None."""
    contestant = outcome.contestant
    try:
        outcome.checks = [verify(contestant, number) for number in range(sets)]
        if not outcome.right:
            return None
        outcome.launches = launches_of_a_slice(contestant, sets)
        graph, results = captured(contestant, sets, outcome.launches)
        outcome.checks += verify_graph(contestant, graph, results)
    except Exception as error:  # a library may raise anything: then there is no time
        outcome.error = f"{type(error).__name__}: {error}"
    return graph if outcome.right else None


def verify(contestant: Contestant, number: int) -> Check:
    contestant.poison(number)
    result = contestant.launch(number)
    torch.cuda.synchronize()
    return contestant.check(number, result)


Results = list[torch.Tensor | None]  # what launches returned, one for each set of inputs


def verify_graph(
    contestant: Contestant, graph: torch.cuda.CUDAGraph, results: Results
) -> list[Check]:
    for number, result in enumerate(results):
        contestant.poison(number)
        if result is not None:
            result.fill_(torch.nan)
    graph.replay()
    torch.cuda.synchronize()
    return [contestant.check(number, result) for number, result in enumerate(results)]


def launches_of_a_slice(contestant: Contestant, sets: int) -> int:
    """How many launches take about SLICE_US, in whole turns of the input sets."""
    estimate_us = statistics.median(time_single(contestant, sets, 5))
    turns = max(1, round(SLICE_US / estimate_us / sets))
    return turns * sets


def captured(
    contestant: Contestant, sets: int, launches: int
) -> tuple[torch.cuda.CUDAGraph, Results]:
    """A graph of launches one after another, captured on the current stream."""
    torch.cuda.synchronize()
    results: Results = [None] * sets
    graph = torch.cuda.CUDAGraph()
    graph.capture_begin()
    for launch in range(launches):
        results[launch % sets] = contestant.launch(launch % sets)
    graph.capture_end()
    return graph, results


def time_rounds(contestants: Sequence[tuple[Outcome, torch.cuda.CUDAGraph]]) -> None:
    """Every round replays every graph once, in a new random order. Everything is queued without
    waiting, so that the host runs ahead of the device."""
    order = list(contestants)
    shuffle = random.Random(1).shuffle
    events: list[tuple[Outcome, torch.cuda.Event, torch.cuda.Event]] = []
    for timed in [False] * WARMUP_ROUNDS + [True] * ROUNDS:
        shuffle(order)
        for outcome, graph in order:
            start, stop = replay(graph)
            if timed:
                events.append((outcome, start, stop))
    torch.cuda.synchronize()
    for outcome, start, stop in events:
        outcome.graph_us.append(start.elapsed_time(stop) * 1e3 / outcome.launches)


def replay(graph: torch.cuda.CUDAGraph) -> tuple[torch.cuda.Event, torch.cuda.Event]:
    """Queues a pause and one replay. Returns the events around the replay."""
    start, stop = timed_event(), timed_event()
    torch.cuda._sleep(PAUSE_CYCLES)
    start.record()
    graph.replay()
    stop.record()
    return start, stop


def time_single(contestant: Contestant, sets: int, launches: int) -> list[float]:
    """Times of single launches, after one turn that is not timed; us. Each is between two events,
    after a pause."""
    for number in range(sets):
        contestant.launch(number)
    events = []
    for launch in range(launches):
        torch.cuda._sleep(SINGLE_PAUSE_CYCLES)
        start, stop = timed_event(), timed_event()
        start.record()
        contestant.launch(launch % sets)
        stop.record()
        events.append((start, stop))
    torch.cuda.synchronize()
    return [start.elapsed_time(stop) * 1e3 for start, stop in events]


def timed_event() -> torch.cuda.Event:
    return torch.cuda.Event(enable_timing=True)
