"""Contestants at one problem: checked first, then timed side by side."""

import random
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch

from binding import Check, Inputs, Variant
from families import Family, Sizes

# The stream that a library compiled with --default-stream per-thread launches on
# (cudaStreamPerThread): everything runs there, so that it can be captured.
STREAM_HANDLE = 0x2

SLICE_US = 5_000  # of one replay of one contestant's graph
# Before it the device does nothing for some 10 ms (at 2 GHz): what draws the most power lowers the
# clock for what follows, and each contestant is to find the same.
PAUSE_CYCLES = 20_000_000
ROUNDS = 21
WARMUP_ROUNDS = 2
SINGLE_LAUNCHES = 40


@dataclass(frozen=True)
class Contestant:
    """One implementation. Input sets go by number."""

    name: str
    ours: bool
    poison: Callable[[int], None]  # fills the output with what is not a number
    launch: Callable[[int], torch.Tensor | None]  # asynchronous, on the current stream
    check: Callable[[int, torch.Tensor | None], Check]  # the output, or what a launch returned
    flop: int  # of one launch
    bytes: int  # that one launch must move
    configuration: str = ""


@dataclass
class Outcome:
    """What was found of a contestant. Without a check that is right there are no times."""

    contestant: Contestant
    # Of plain launches, then of the graph; one for each set of inputs.
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


@dataclass(frozen=True)
class Contest:
    """The contestants at one family's problem of one size."""

    family: Family
    sizes: Sizes
    sets: int  # of inputs, taken in turn by successive launches
    contestants: Sequence[Contestant]


def on_inputs(
    name: str,
    inputs: Sequence[Inputs],
    launch: Callable[[int], torch.Tensor | None],
    outputs: Sequence[torch.Tensor] = (),
    ours: bool = False,
    configuration: str = "",
) -> Contestant:
    """A contestant at the family's own problem, checked by its reference.

    `launch` writes to the problem's output, or returns a tensor, which `outputs` then receive.
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
    )


def variants(ours: Sequence[Variant], inputs: Sequence[Inputs]) -> list[Contestant]:
    """Our variants, all on the very same operands."""
    for variant in ours:
        variant.require(inputs[0].sizes)

    def launcher(variant: Variant) -> Callable[[int], None]:
        return lambda number: variant.launch(inputs[number])

    return [on_inputs(variant.name, inputs, launcher(variant), ours=True) for variant in ours]


def hold(contest: Contest) -> list[Outcome]:
    """Checks everybody on every set of inputs, and times those who are right."""
    sets = contest.sets
    outcomes = [Outcome(contestant) for contestant in contest.contestants]
    graphs = [prepared(outcome, sets) for outcome in outcomes]
    timed = [(o, graph) for o, graph in zip(outcomes, graphs, strict=True) if graph is not None]
    time_rounds(timed)
    for outcome, _ in timed:
        outcome.single_us = time_single(outcome.contestant, sets, SINGLE_LAUNCHES)
    return outcomes


def prepared(outcome: Outcome, sets: int) -> torch.cuda.CUDAGraph | None:
    """The graph to time, once plain launches and the graph itself were right; otherwise none."""
    contestant = outcome.contestant
    try:
        outcome.checks = [verify(contestant, number) for number in range(sets)]
        if not outcome.right:
            return None
        outcome.launches = launches_of_a_slice(contestant, sets)
        graph, results = captured(contestant, sets, outcome.launches)
        outcome.checks += verify_graph(contestant, graph, results)
    except Exception as error:  # whatever a library raises: the contestant has no time
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
    """Every round replays every graph once, in an order of its own. Everything is queued without
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
    """Queues a pause and one replay; the events around the replay."""
    start, stop = timed_event(), timed_event()
    torch.cuda._sleep(PAUSE_CYCLES)
    start.record()
    graph.replay()
    stop.record()
    return start, stop


def time_single(contestant: Contestant, sets: int, launches: int) -> list[float]:
    """Times single launches between two events each, after one unmeasured turn of the sets; us."""
    for number in range(sets):
        contestant.launch(number)
    torch.cuda._sleep(PAUSE_CYCLES)
    events = []
    for launch in range(launches):
        start, stop = timed_event(), timed_event()
        start.record()
        contestant.launch(launch % sets)
        stop.record()
        events.append((start, stop))
    torch.cuda.synchronize()
    return [start.elapsed_time(stop) * 1e3 for start, stop in events]


def timed_event() -> torch.cuda.Event:
    return torch.cuda.Event(enable_timing=True)
