"""The kernel families that are compared, their variants and sizes, and how to build them."""

import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]

# Variants that gain nothing, and are kept to show that.
NO_STEP = {"bsr_gemm/occupancy"}

# By the executables' flags, without the dashes. Only choices that have names are texts.
Sizes = dict[str, Any]


@dataclass(frozen=True)
class Family:
    """A folder of kernels: its variants from the first to the last, and the sizes compared."""

    name: str
    variants: tuple[str, ...]
    sizes: tuple[Sizes, ...]

    def source(self, variant: str) -> Path:
        return ROOT / "kernels" / self.name / f"{variant}.cu"

    def before(self, variant: str) -> str | None:
        """The variant that this one is compared with."""
        earlier = self.variants[: self.variants.index(variant)]
        return next((one for one in reversed(earlier) if f"{self.name}/{one}" not in NO_STEP), None)


RESAMPLE_SIZES: tuple[Sizes, ...] = (
    {"batch": 32, "steps": 500, "targets": 256, "features": 256},
    {"batch": 64, "steps": 1000, "targets": 512, "features": 512},
    {"batch": 256, "steps": 100, "targets": 2048, "features": 256},
)
# What else a contest of trajectory_resample can say of the times.
TIMES: tuple[Sizes, ...] = ({}, {"shuffled": 1}, {"times": "bursty"}, {"times": "lognormal"})


FAMILIES = (
    Family(
        "bsr_gemm",
        (
            "naive",
            "wmma",
            "baseline",
            "occupancy",
            "cp_async",
            "ldmatrix",
            "producers",
            "persistent",
            "warp_specialized",
            "tma",
            "tma_wgmma",
        ),
        ({"m": 8192, "n": 8192, "k": 8192, "blocks-per-row": 16},),
    ),
    Family(
        "trajectory_resample",
        ("baseline", "warp_optimized", "tma"),
        tuple({**sizes, **times} for sizes in RESAMPLE_SIZES for times in TIMES),
    ),
    Family(
        "attention",
        ("scalar", "wmma", "wgmma", "overlap"),
        ({"batch": 2, "heads": 8, "sequence": 512, "features": 64},),
    ),
    Family(
        "attention_causal",
        ("mma", "wgmma", "overlap"),
        ({"batch": 1, "heads": 32, "kv-heads": 8, "sequence": 4096, "features": 128},),
    ),
)


@dataclass(frozen=True)
class Selection:
    """The variants of one family that take part."""

    family: Family
    variants: tuple[str, ...]


def select(only: list[str]) -> list[Selection]:
    """Everything, or the named FAMILY and FAMILY/VARIANT. Raises ValueError for an unknown name."""
    known = {family.name: family for family in FAMILIES}
    wanted: dict[str, set[str]] = {}
    for name in only or known:
        family_name, _, variant = name.partition("/")
        family = known.get(family_name)
        if family is None or (variant and variant not in family.variants):
            raise ValueError(f"unknown name '{name}'; there are {', '.join(all_names())}")
        wanted.setdefault(family_name, set()).update([variant] if variant else family.variants)
    return [
        Selection(known[name], tuple(v for v in known[name].variants if v in variants))
        for name, variants in wanted.items()
    ]


def all_names() -> list[str]:
    return [f"{family.name}/{variant}" for family in FAMILIES for variant in family.variants]


def library(folder: Path, family: Family, variant: str) -> Path:
    return folder / f"{family.name}-{variant}.so"


def floors_library(folder: Path) -> Path:
    return folder / "floors.so"


def build(selections: list[Selection], folder: Path) -> None:
    """Compiles every selected variant, and floors.cu, into `folder`. Raises FileNotFoundError or
    RuntimeError."""
    jobs = [(s.family, variant) for s in selections for variant in s.variants]
    for family, variant in jobs:
        if not family.source(variant).is_file():
            raise FileNotFoundError(f"{family.source(variant)} does not exist")
    nvcc = find_nvcc()
    folder.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        floors = pool.submit(compile_floors, nvcc, folder)
        list(pool.map(lambda job: compile_variant(nvcc, folder, *job), jobs))
        floors.result()


def find_nvcc() -> str:
    """nvcc of $CUDA_HOME, of the PATH, or of the default folder of CUDA."""
    home = os.environ.get("CUDA_HOME")
    places = [f"{home}/bin/nvcc"] if home else []
    places += [shutil.which("nvcc") or "", "/usr/local/cuda/bin/nvcc"]
    found = next((place for place in places if place and os.access(place, os.X_OK)), None)
    if found is None:
        raise FileNotFoundError(
            "nvcc was not found in $CUDA_HOME/bin, on the PATH or in /usr/local/cuda/bin; "
            "install it with ci/install-cuda.sh, or use --prebuilt FOLDER"
        )
    return found


def compile_variant(nvcc: str, folder: Path, family: Family, variant: str) -> None:
    compile_library(
        nvcc,
        ROOT / "ci" / "peers" / "bind.cu",
        library(folder, family, variant),
        f"{family.name}/{variant}",
        [f'-DVARIANT="{family.source(variant)}"'],
    )


def compile_floors(nvcc: str, folder: Path) -> None:
    source = ROOT / "ci" / "peers" / "floors.cu"
    compile_library(nvcc, source, floors_library(folder), "kernels/peers/floors.cu", [])


def compile_library(nvcc: str, source: Path, target: Path, name: str, defines: list[str]) -> None:
    libraries = Path(nvcc).resolve().parents[1] / "lib"
    command = [
        nvcc,
        "-gencode=arch=compute_90a,code=sm_90a",
        "-O3",
        "-std=c++17",
        "-lineinfo",
        f"-L{libraries}",
        "-shared",
        "--default-stream=per-thread",
        # One process loads the libraries of several variants and PyTorch's own runtime: no library
        # may see the symbols of another.
        "-Xcompiler=-fPIC,-fno-gnu-unique",
        "-Xlinker=--exclude-libs,ALL,-Bsymbolic",
        *defines,
        str(source),
        "-o",
        str(target),
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{name} does not build:\n{done.stderr}")


def main() -> None:
    """Builds for a machine without nvcc: families.py FOLDER [FAMILY[/VARIANT]...]."""
    if len(sys.argv) < 2:
        sys.exit(main.__doc__)
    try:
        build(select(sys.argv[2:]), Path(sys.argv[1]))
    except (ValueError, FileNotFoundError, RuntimeError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
