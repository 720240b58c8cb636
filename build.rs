//! Compiles the library that the CUDA driver loads into measured programs, and that is embedded into
//! the tool, which stays one binary.

use std::env;
use std::error::Error;
use std::path::Path;
use std::process::Command;

const FOLDER: &str = "src/profiler/cupti/injection";
const SOURCE: &str = "src/profiler/cupti/injection/mod.rs";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={FOLDER}");
    let library = Path::new(&env::var("OUT_DIR")?).join("libinjection.so");
    if env::var("CARGO_CFG_TARGET_OS")? != "linux" || env::var("CARGO_CFG_TARGET_ENV")? != "gnu" {
        // The driver is a glibc library, so it can load the library only into a program with glibc.
        std::fs::write(&library, [])?;
        return Ok(());
    }
    let mut compiler = Command::new(env::var("RUSTC")?);
    compiler
        .args([
            "--edition",
            "2024",
            "--crate-name",
            "injection",
            "--crate-type",
            "cdylib",
        ])
        .args([
            "-C",
            "panic=abort",
            "-C",
            "opt-level=s",
            "-C",
            "strip=symbols",
        ])
        .args(["--target", &env::var("TARGET")?, "-o"])
        .arg(&library)
        .arg(SOURCE);
    if let Ok(linker) = env::var("RUSTC_LINKER") {
        compiler.args(["-C", &format!("linker={linker}")]);
    }
    let status = compiler.status()?;
    if !status.success() {
        return Err(format!("{SOURCE} does not compile: {status}").into());
    }
    Ok(())
}
