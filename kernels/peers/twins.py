"""The Triton programs below kernels/, as modules: their kernels are peers here."""

import importlib.util
import sys
from types import ModuleType

from families import ROOT

# The ways of a twin's kernel to be a dependent launch.
DEPENDENT = (1, 2)


def twin(family: str) -> ModuleType:
    name = f"{family}_triton_twin"
    if name not in sys.modules:
        path = ROOT / "kernels" / family / "triton_twin.py"
        spec = importlib.util.spec_from_file_location(name, path)
        if spec is None or spec.loader is None:
            raise ImportError(f"{path} cannot be loaded")
        sys.modules[name] = module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return sys.modules[name]
