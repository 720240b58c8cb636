"""Finds the fastest right configuration of a Triton kernel among many."""

import multiprocessing
import os
import statistics
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeVar

import torch

from contest import Contestant, captured, replay, verify

FINALISTS = 6
LAUNCHES = 20  # in a graph, at least
REPLAYS = 3
FINAL_REPLAYS = 15

C = TypeVar("C")


def compile_all(jobs: Sequence[Callable[[], object]]) -> None:
    """Fills Triton's cache with all cores; each job compiles one configuration. Call it before this
    process uses CUDA: a child cannot use the context of its parent."""
    cores = os.cpu_count() or 1
    context = multiprocessing.get_context("fork")
    children = [context.Process(target=quietly, args=(jobs[i::cores],)) for i in range(cores)]
    for child in children:
        child.start()
    for child in children:
        child.join()


def quietly(jobs: Sequence[Callable[[], object]]) -> None:
    """Runs the jobs and ignores errors: a configuration that does not compile fails again later."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    for job in jobs:
        with suppress(Exception):
            job()


def fastest(configurations: Sequence[C], entry: Callable[[C], Contestant], sets: int) -> C:
    """The fastest configuration whose output is right on every set of inputs."""
    times: list[tuple[float, C]] = []
    failed = 0
    for configuration in configurations:
        try:
            times.append((time_us(entry(configuration), sets, REPLAYS), configuration))
        except Exception:  # it needs more than the device has
            failed += 1
    times.sort(key=lambda pair: pair[0])
    finals = []
    for _, configuration in times[:FINALISTS]:
        contestant = entry(configuration)
        right = all(verify(contestant, number).right for number in range(sets))
        time = time_us(contestant, sets, FINAL_REPLAYS)
        print(f"  {time:8.2f} us  {'right' if right else 'WRONG'}  {configuration}")
        if right:
            finals.append((time, configuration))
    print(f"  of {len(configurations)} configurations, of which {failed} do not run")
    if not finals:
        raise RuntimeError("no configuration is right")
    return min(finals, key=lambda pair: pair[0])[1]


def faster(options: Sequence[C], entry: Callable[[C], Contestant], sets: int) -> C:
    """The fastest of a few that must all be right. One that is not is taken: then the contest
    reports it."""
    times = []
    for option in options:
        try:
            contestant = entry(option)
            if not all(verify(contestant, number).right for number in range(sets)):
                return option
            times.append(time_us(contestant, sets, FINAL_REPLAYS))
        except Exception:
            return option
    return options[times.index(min(times))]


def time_us(contestant: Contestant, sets: int, replays: int) -> float:
    """The median time of a launch inside a graph."""
    contestant.launch(0)
    torch.cuda.synchronize()
    launches = -(-LAUNCHES // sets) * sets
    graph, _ = captured(contestant, sets, launches)
    events = [replay(graph) for _ in range(1 + replays)]
    torch.cuda.synchronize()
    times = [start.elapsed_time(stop) * 1e3 / launches for start, stop in events[1:]]
    return statistics.median(times)
