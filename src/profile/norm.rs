//! `<variant>.norm.txt`: the values, for people to review.

use super::{KernelProfile, Profile, TOTAL};

/// One `name: value` a line, sorted, two decimals. With several kernels the names are
/// `kernel/name`, and `kernel[grid x block]/name` where one kernel is launched in several shapes.
/// Where it is known how often each kernel is launched, the total of all is among them.
/// Compiled kernels that share a name have their signature. `None` where a value is missing: what
/// was not measured has no normalized form.
pub fn norm_text(profile: &Profile) -> Option<String> {
    let mut lines = Vec::new();
    for kernel in &profile.kernels {
        let prefix = prefix(profile, kernel);
        for (alias, series) in &kernel.metrics {
            lines.push(format!("{prefix}{alias}: {:.2}\n", series.value?));
        }
        lines.extend(shared_memory(&prefix, kernel));
    }
    let total = total(profile);
    for (alias, series) in total.iter().flat_map(|total| &total.metrics) {
        lines.push(format!("{TOTAL}/{alias}: {:.2}\n", series.value?));
    }
    lines.sort();
    lines.dedup();
    (!lines.is_empty()).then(|| lines.concat())
}

/// The dynamic shared memory of a launch, in bytes, where the launches show it.
fn shared_memory(prefix: &str, kernel: &KernelProfile) -> Option<String> {
    let sizes = kernel.dynamic_shared_bytes.iter();
    let sizes: Vec<String> = sizes.map(|bytes| format!("{bytes}.00")).collect();
    (!sizes.is_empty()).then(|| format!("{prefix}dynamic_shared_bytes: {}\n", sizes.join(", ")))
}

/// The durations of all kernels together; none where they are not known.
fn total(profile: &Profile) -> Vec<KernelProfile> {
    if profile.kernels.len() == 1 && profile.provenance.as_it_runs {
        return Vec::new();
    }
    let total = profile.of_total(|_| None);
    total.map_or_else(|_| Vec::new(), |total| total.kernels)
}

fn prefix(profile: &Profile, kernel: &KernelProfile) -> String {
    if profile.kernels.len() == 1 {
        return String::new();
    }
    // A kernel that was never launched has no shape; its signature distinguishes it.
    let name: String = match kernel.code {
        Some(_) => profile.label(kernel),
        None => &kernel.name,
    }
    .chars()
    .map(|c| if c.is_control() || c == ':' { '_' } else { c })
    .collect();
    let alike = profile
        .kernels
        .iter()
        .filter(|other| other.name == kernel.name)
        .count();
    if alike == 1 || kernel.code.is_some() {
        return format!("{name}/");
    }
    let [gx, gy, gz] = kernel.grid;
    let [bx, by, bz] = kernel.block;
    // Template instances share a function name and often a shape too; the hash distinguishes them.
    let instance = &crate::hash::sha256_hex(kernel.identity().as_bytes())[..8];
    format!("{name}[{gx},{gy},{gz} x {bx},{by},{bz} {instance}]/")
}
