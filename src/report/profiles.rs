//! Fresh profiles for a terminal.

use super::detail::Detail;
use crate::metric::{Role, display_value};
use crate::profile::{KernelProfile, Profile, norm_text};
use crate::terms::{Phase, Tier, counted, first};

/// Most kernels whose duration a line shows.
const MOST_KERNELS: usize = 3;

/// What was measured: a line for each variant, or all of its values.
pub fn text(profiles: &[Profile], detail: Detail) -> String {
    let mut text = String::new();
    for profile in profiles {
        match detail {
            Detail::Verdict => {}
            Detail::Attention => text.push_str(&format!("{}\n", line(profile))),
            Detail::All => {
                text.push_str(&format!("\n{}\n", place(profile)));
                let norm = norm_text(profile).unwrap_or_else(|| "a value is missing\n".to_owned());
                for line in norm.lines() {
                    text.push_str(&format!("  {line}\n"));
                }
            }
        }
    }
    text
}

/// The variant, the GPU, and the tier where it is not that of the counters.
fn place(profile: &Profile) -> String {
    let tier = match profile.identity.tier {
        Tier::Counters => String::new(),
        lower => format!(", by {lower} without counters"),
    };
    format!("{} on {}{tier}", profile.variant, profile.identity.gpu)
}

fn line(profile: &Profile) -> String {
    let launches = profile.launch_count(Phase::Timing);
    let processes = counted(
        profile.provenance.processes as usize, "process", "processes",
    );
    let mut parts = vec![
        durations(profile),
        format!("{launches} launches in {processes}"),
    ];
    parts.retain(|part| !part.is_empty());
    if norm_text(profile).is_none() {
        parts.push("a value is missing".to_owned());
    }
    format!("{}: {}", place(profile), parts.join(", "))
}

/// The durations of the kernels that take longest.
fn durations(profile: &Profile) -> String {
    let metrics = profile.identity.metrics.iter();
    let is_time = |counter: &str| Role::of(counter) == Some(Role::Duration);
    let Some((alias, metric)) = metrics.into_iter().find(|(_, one)| is_time(&one.counter)) else {
        return String::new();
    };
    let value = |kernel: &KernelProfile| kernel.metrics.get(alias)?.value;
    let kernels = profile.kernels.iter();
    let mut known: Vec<(&KernelProfile, f64)> = kernels
        .filter_map(|kernel| Some((kernel, value(kernel)?)))
        .collect();
    known.sort_by(|one, other| other.1.total_cmp(&one.1));
    let shown = known.iter().map(|(kernel, value)| {
        let value = display_value(*value, metric.unit.as_deref());
        format!("{} {value}", profile.label(kernel))
    });
    match known.is_empty() {
        true => String::new(),
        false => format!("{alias} of {}", first(shown, MOST_KERNELS)),
    }
}
