//! How tools and programs say that the machine lacks what they need.

use super::{Code, Finding};
use crate::terms::VariantId;

/// What they write, what is missing, and what to do.
const LACKS: [(&str, &str, &str); 12] = [
    (
        "File size limit exceeded",
        "a file may not become so large (`ulimit -f`)",
        "raise the limit",
    ),
    (
        "ptxas: not found", "the toolkit lacks ptxas", "install the whole CUDA toolkit",
    ),
    (
        "cicc: not found", "the toolkit lacks cicc", "install the whole CUDA toolkit",
    ),
    (
        "No space left on device",
        "the disk is full",
        "free space on the disk of the work folder and on that of TMPDIR",
    ),
    (
        "Cannot allocate memory", "there is too little memory", "free memory",
    ),
    (
        "virtual memory exhausted", "there is too little memory", "free memory",
    ),
    (
        "std::bad_alloc", "there is too little memory", "free memory",
    ),
    (
        "CUDA error: out of memory", "the GPU has too little free memory",
        "end what else uses the GPU",
    ),
    (
        "ModuleNotFoundError: No module named", "a Python module is not installed", "install it",
    ),
    (
        "error while loading shared libraries", "a shared library is missing", "install it",
    ),
    (
        "no CUDA-capable device is detected",
        "the program sees no GPU",
        "check CUDA_VISIBLE_DEVICES and the driver",
    ),
    (
        "CUDA driver version is insufficient",
        "the driver is older than the CUDA that the program was built with",
        "update the driver, or build with an older toolkit",
    ),
];

/// The finding that a step failed because of the machine, by the end of its output.
pub fn machine_lacks(variant: &VariantId, step: &str, output: &str) -> Option<Finding> {
    let found = LACKS.iter().find(|(words, _, _)| output.contains(words));
    let (_, what, next) = found?;
    let message = format!("{step} failed: {what}");
    Some(Finding::deny(Code::MachineLacks, variant, message, *next).detail(output))
}
