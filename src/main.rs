//! The `sparsek-gate` command.

fn main() {}
