//! Whether a machine is the one that the configuration pins.

use std::path::Path;

use super::model::Toolchain;
use super::pins::{Mismatch, Pin};
use crate::finding::Error;
use crate::metric::{arch_of_capability, capability_of_arch};

impl Toolchain {
    /// Whether code for the target runs on a GPU of this compute capability, `major.minor`.
    pub fn arch_pin(&self, compute_capability: &str) -> Option<Pin> {
        let held = runs_on(&self.arch, compute_capability)?;
        let found = format!("compute capability {compute_capability}");
        let is_for = |arch| format!("{found} (its target: `arch = \"{arch}\"`)");
        let target = arch_of_capability(compute_capability).filter(|_| !held);
        Some(Pin {
            what: "arch".to_owned(),
            wanted: self.arch.clone(),
            found: Some(target.map(is_for).unwrap_or(found)),
            held,
        })
    }

    /// Ends the run if a pin is violated and the configuration denies that.
    ///
    /// # Errors
    /// [`Error::Environment`], with each pin that is violated.
    pub fn enforce(&self, config: &Path, pins: &[Pin]) -> Result<(), Error> {
        let broken = Pin::broken(pins);
        if broken.is_empty() || self.pins.mismatch == Mismatch::Warn {
            return Ok(());
        }
        Err(Error::environment(
            format!(
                "this machine differs from the pins of {}:\n  {}",
                config.display(),
                broken.join("\n  ")
            ),
            format!(
                "{}; to go on with a warning, set `mismatch = \"warn\"` under `[toolchain.pins]`",
                Pin::next_step(pins)
            ),
        ))
    }
}

/// The chips of Tegra: no code for other chips runs there, and theirs runs on no other.
const TEGRA: [(u64, u64); 3] = [(7, 2), (8, 7), (10, 1)];

/// Whether code for `sm_90`, `sm_90a` or `sm_100f` runs on a compute capability `major.minor`:
/// plain code and that of a family on every later minor version, and that of a chip there alone.
/// CUDA Programming Guide, "Binary Compatibility".
fn runs_on(arch: &str, compute_capability: &str) -> Option<bool> {
    let target = capability_of_arch(arch)?;
    let (major, minor) = compute_capability.split_once('.')?;
    let here: (u64, u64) = (major.parse().ok()?, minor.parse().ok()?);
    let of_tegra = TEGRA.iter().any(|chip| [here, target].contains(chip));
    Some(match arch.ends_with('a') || of_tegra {
        true => here == target,
        false => here.0 == target.0 && here.1 >= target.1,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_runs_where_its_target_says() {
        for (arch, capability, runs) in [
            ("sm_90a", "9.0", true),
            ("sm_90", "9.0", true),
            ("sm_90a", "10.0", false),
            ("sm_80", "8.9", true),
            ("sm_89", "8.0", false),
            ("sm_80", "9.0", false),
            ("sm_100f", "10.3", true),
            ("sm_100a", "10.3", false),
            ("sm_120", "12.1", true),
            ("sm_121", "12.0", false),
            ("sm_120f", "12.1", true),
            ("sm_121a", "12.1", true),
            ("sm_103f", "10.3", true),
            ("sm_103f", "10.0", false),
            ("sm_100f", "11.0", false),
            ("sm_110f", "11.0", true),
            ("sm_80", "8.6", true),
            ("sm_86", "8.9", true),
            ("sm_80", "8.7", false),
            ("sm_87", "8.7", true),
            ("sm_87", "8.9", false),
            ("sm_70", "7.5", true),
            ("sm_75", "8.0", false),
        ] {
            assert_eq!(runs_on(arch, capability), Some(runs), "{arch} {capability}");
        }
    }
}
