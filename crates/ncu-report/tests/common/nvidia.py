"""Prints what NVIDIA's module `ncu_report` reads of each file that a line of standard input names.

A line of JSON for a file: a list of launches, or the error as a text. A metric is its value, its unit,
and how many values by instance it has; a value that is no finite number is null.
"""

import json
import math
import sys

import ncu_report

def plain(value):
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    return value


def launch(action):
    metrics = {}
    for name in action.metric_names():
        metric = action[name]
        metrics[name] = [plain(metric.value()), metric.unit(), metric.num_instances()]
    bases = (action.NameBase_FUNCTION, action.NameBase_DEMANGLED, action.NameBase_MANGLED)
    return {"names": [plain(action.name(base)) for base in bases], "metrics": metrics}


print(json.dumps("ready"), flush=True)
for line in sys.stdin:
    try:
        ranges = ncu_report.load_report(line.rstrip("\n"))
        answer = [launch(action) for group in ranges for action in group]
    except Exception as error:
        answer = repr(error)
    print(json.dumps(answer, allow_nan=False), flush=True)
