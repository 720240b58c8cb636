"""The variants' libraries (bind.cu) through ctypes, and their device memory as torch tensors."""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from families import Family, Sizes, library


class CheckOutcome(ctypes.Structure):
    """`sparsek::CheckOutcome` of kernels/common/result.cuh."""

    _fields_ = [
        ("checked", ctypes.c_uint64),
        ("wrong", ctypes.c_uint64),
        ("max_abs_error", ctypes.c_double),
        ("max_error_over_tolerance", ctypes.c_double),
    ]


@dataclass(frozen=True)
class Check:
    """How one whole output compares with its reference."""

    checked: int  # elements
    wrong: int  # elements outside the tolerance, or NaN
    max_abs_error: float
    max_error_over_tolerance: float  # at most 1 if nothing is wrong

    @property
    def right(self) -> bool:
        return self.checked > 0 and self.wrong == 0


Arguments = tuple[int, ctypes.Array[ctypes.c_char_p]]


def arguments(sizes: Sizes, seed: int) -> Arguments:
    """argc and argv of the executable with these sizes."""
    words = ["variant"]
    for flag, value in {**sizes, "seed": seed}.items():
        words += [f"--{flag}", str(value)]
    return len(words), (ctypes.c_char_p * len(words))(*(word.encode() for word in words))


class Variant:
    """One of our variants."""

    def __init__(self, folder: Path, family: Family, variant: str) -> None:
        self.name = variant
        self.library = ctypes.CDLL(str(library(folder, family, variant)))
        self.library.variant_name.restype = ctypes.c_char_p
        self.library.variant_launch.argtypes = [ctypes.c_void_p]
        self.library.inputs_create.restype = ctypes.c_void_p
        for function in ("operands", "flop", "bytes", "poison_output", "check"):
            getattr(self.library, f"inputs_{function}").argtypes = [ctypes.c_void_p]
        self.library.inputs_check.argtypes = [ctypes.c_void_p, ctypes.POINTER(CheckOutcome)]
        self.library.inputs_operands.restype = ctypes.c_void_p
        for function in ("operand_bytes", "flop", "bytes"):
            getattr(self.library, f"inputs_{function}").restype = ctypes.c_uint64
        self.kernel: str = self.library.variant_name().decode()

    def require(self, sizes: Sizes) -> None:
        """Ends the process if the variant rejects these sizes."""
        self.library.variant_require(*arguments(sizes, 0))

    def launch(self, inputs: "Inputs", dependent: bool = True) -> None:
        """Launches the kernel asynchronously, on the stream of this thread. Only some variants make
        dependent launches; they make plain ones instead if `dependent` is false."""
        self.library.variant_allow_dependent(int(dependent))
        self.library.variant_launch(inputs.pointer)

    def can_be_dependent(self, inputs: "Inputs") -> bool:
        """Whether the variant makes dependent launches, after one launch to find out."""
        self.launch(inputs)
        torch.cuda.synchronize()
        return bool(self.library.variant_can_be_dependent())


class Inputs:
    """Inputs and output of one seed in device memory. They exist until the process ends."""

    def __init__(self, owner: Variant, operands: type[ctypes.Structure], sizes: Sizes, seed: int):
        self.library = owner.library
        self.sizes = sizes
        self.handle: int = self.library.inputs_create(*arguments(sizes, seed))
        self.pointer: int = self.library.inputs_operands(self.handle)
        if self.library.inputs_operand_bytes() != ctypes.sizeof(operands):
            raise TypeError(f"{operands.__name__} does not match the family's Operands")
        self.operands = operands.from_address(self.pointer)
        self.flop: int = self.library.inputs_flop(self.handle)
        self.bytes: int = self.library.inputs_bytes(self.handle)

    def poison_output(self) -> None:
        """Fills the output with NaN, so that an unwritten element cannot pass the check."""
        self.library.inputs_poison_output(self.handle)

    def check(self) -> Check:
        """Compares the output with the repository's own reference."""
        outcome = CheckOutcome()
        self.library.inputs_check(self.handle, ctypes.byref(outcome))
        return Check(
            outcome.checked,
            outcome.wrong,
            outcome.max_abs_error,
            outcome.max_error_over_tolerance,
        )


class DeviceMemory:
    """Device memory that torch uses without copying (the CUDA array interface)."""

    def __init__(self, pointer: int, shape: Sequence[int], element_bytes: int) -> None:
        self.__cuda_array_interface__ = {
            "data": (pointer, False),
            "shape": tuple(shape),
            "typestr": f"<i{element_bytes}",  # there is no bfloat16 here: tensor() casts it
            "version": 3,
        }


def tensor(pointer: int, shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
    """A tensor that uses the memory of a problem."""
    memory = DeviceMemory(pointer, shape, dtype.itemsize)
    return torch.as_tensor(memory, device="cuda").view(dtype)
