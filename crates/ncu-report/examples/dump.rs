//! Prints the launches and metrics of a report or of a CSV page:
//!
//! ```sh
//! cargo run --example dump -- gemm.ncu-rep
//! ```

use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;

use ncu_report::Recording;

fn main() -> ExitCode {
    let Some(path) = std::env::args_os().nth(1) else {
        let _ = writeln!(io::stderr(), "usage: dump FILE");
        return ExitCode::from(2);
    };
    let dumped = ncu_report::read_file(path)
        .map_err(Box::<dyn Error>::from)
        .and_then(|recording| Ok(dump(&recording, &mut io::stdout().lock())?));
    match dumped {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn dump(recording: &Recording, out: &mut impl Write) -> io::Result<()> {
    if let Some(version) = &recording.profiler_version {
        writeln!(out, "ncu {version}")?;
    }
    for (index, launch) in recording.launches.iter().enumerate() {
        let (kernel, grid, block) = (&launch.kernel.function, launch.grid, launch.block);
        writeln!(out, "\n{index}: {kernel} grid {grid:?} block {block:?}")?;
        for (name, measurement) in &launch.metrics {
            let value = &measurement.value;
            match measurement.unit.symbol() {
                Some("") => writeln!(out, "  {name} = {value}")?,
                Some(unit) => writeln!(out, "  {name} = {value} {unit}")?,
                None => writeln!(out, "  {name} = {value} (unknown unit)")?,
            }
        }
    }
    Ok(())
}
