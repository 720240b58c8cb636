//! Where the time of a kernel moved, by the samples of its warps.
//!
//! Samples are in proportion to the time that all warps spent, so the share of a line in them,
//! times the kernel's duration, is the time that belongs to it. Lines of a file are compared
//! only where that file is the same on both sides; of other files the report names the lines where
//! the time is now. Nothing is judged by it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::cause::LEAST_SHARE;
use super::stall::stall_words;
use crate::metric::display_value;
use crate::profile::{HotLine, Hotspots, KernelProfile, MOST_LINES, Profile};

/// Most lines, and most reasons, that are named.
const NAMED: usize = 3;
/// Standard errors that a share must have moved by; samples of one moment are not independent.
const ERRORS: f64 = 6.0;
/// Share of the duration that a line must have moved by.
const SMALLEST_MOVE: f64 = 0.01;
/// Share of the time from which on a line that cannot be compared is named.
const SMALLEST_SHARE: f64 = 0.05;

/// Where the time of a kernel went.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KernelHotspots {
    /// The kernel's function name.
    pub kernel: String,
    /// Duration of the reference, where both sides measured it: what the times below are parts of.
    pub reference_ns: Option<f64>,
    /// Duration now.
    pub current_ns: Option<f64>,
    /// Lines that take more time than they did, the most first. Of files that are the same on
    /// both sides.
    pub lines: Vec<LineMove>,
    /// Where the time is now, of lines that cannot be compared.
    pub now: Vec<HotLine>,
    /// What warps of the whole kernel wait for longer than they did.
    pub stalls: Vec<StallMove>,
    /// The same for people, in one sentence.
    pub text: String,
}

/// A line that takes more time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LineMove {
    /// The line now.
    #[serde(flatten)]
    pub line: HotLine,
    /// Its share of the samples of the reference; where it was below those that are kept, the
    /// share of the last of them, so that the real move is no smaller than the shown one.
    pub reference_share: f64,
    /// By how much its time grew; `None` without durations.
    pub moved_ns: Option<f64>,
    /// What its warps wait for longer.
    pub reason: Option<String>,
}

/// A reason to wait that takes more time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StallMove {
    /// As ncu calls it: `long_scoreboard`.
    pub reason: String,
    /// Its share of all samples of the reference, 0 to 1.
    pub reference_share: f64,
    /// Its share now.
    pub share: f64,
    /// By how much its time grew; `None` without durations.
    pub moved_ns: Option<f64>,
}

/// One side of a comparison.
#[derive(Clone, Copy, Debug)]
pub struct Sampled<'a> {
    /// The samples.
    pub hotspots: &'a Hotspots,
    /// How long a launch took.
    pub duration_ns: Option<f64>,
    /// sha256 of the files, where it is known.
    pub sources: &'a BTreeMap<String, String>,
}

impl<'a> Sampled<'a> {
    /// Of a kernel of a profile; `None` where it was not sampled.
    pub(super) fn of(
        profile: &'a Profile,
        kernel: &'a KernelProfile,
        duration_ns: Option<f64>,
    ) -> Option<Sampled<'a>> {
        Some(Sampled {
            hotspots: kernel.hotspots.as_ref()?,
            duration_ns,
            sources: &profile.provenance.sources,
        })
    }

    /// Whether a file is known to be the same on another side: by its hash, or by its bytes where
    /// no hash is known of either.
    fn same_file(&self, other: &Sampled<'_>, file: &str) -> bool {
        match (self.sources.get(file), other.sources.get(file)) {
            (Some(own), Some(others)) => own == others,
            (None, None) => {
                let bytes = self.hotspots.file_bytes.get(file);
                bytes.is_some() && bytes == other.hotspots.file_bytes.get(file)
            }
            _ => false,
        }
    }
}

/// Where the time moved from a reference to the current code.
pub fn moved(kernel: &str, reference: &Sampled<'_>, current: &Sampled<'_>) -> KernelHotspots {
    let times = reference.duration_ns.zip(current.duration_ns);
    let [was, is] = [reference, current].map(|side| side.hotspots.samples as f64);
    let samples = (was, is);
    let scale = Scale { times, samples };
    let (lines, now) = moved_lines(&scale, reference, current);
    let mut moved = KernelHotspots {
        kernel: kernel.to_owned(),
        reference_ns: times.map(|(was, _)| was),
        current_ns: times.map(|(_, is)| is),
        lines,
        now,
        stalls: moved_stalls(&scale, reference.hotspots, current.hotspots),
        text: String::new(),
    };
    moved.text = sentence(&moved);
    moved
}

/// The lines that take more time, and those where the time is now that cannot be compared.
fn moved_lines(
    scale: &Scale,
    reference: &Sampled<'_>,
    current: &Sampled<'_>,
) -> (Vec<LineMove>, Vec<HotLine>) {
    let (was, is) = (reference.hotspots, current.hotspots);
    let (mut lines, mut now) = (Vec::new(), Vec::new());
    for line in &is.lines {
        let paired = line
            .file
            .as_deref()
            .is_some_and(|file| reference.same_file(current, file));
        if !paired {
            if line.share >= SMALLEST_SHARE {
                now.push(line.clone());
            }
            continue;
        }
        let before = was
            .lines
            .iter()
            .find(|other| other.file == line.file && other.line == line.line);
        let reference_share = before.map_or_else(|| least(was), |before| before.share);
        if scale.grew(reference_share, line.share) {
            lines.push(LineMove {
                reference_share,
                moved_ns: scale.moved_ns(reference_share, line.share),
                reason: longer(scale, was, before, is, line),
                line: line.clone(),
            });
        }
    }
    let size = |moved: &LineMove| scale.size(moved.reference_share, moved.line.share);
    lines.sort_by(|a, b| size(b).total_cmp(&size(a)));
    lines.truncate(NAMED);
    now.truncate(NAMED);
    (lines, now)
}

/// The reasons to wait that take more time.
fn moved_stalls(scale: &Scale, was: &Hotspots, is: &Hotspots) -> Vec<StallMove> {
    let mut stalls: Vec<StallMove> = is
        .stalls
        .keys()
        .map(|reason| (reason, was.stall_share(reason), is.stall_share(reason)))
        .filter(|(_, was, is)| scale.grew(*was, *is))
        .map(|(reason, was, is)| StallMove {
            reason: reason.clone(),
            reference_share: was,
            share: is,
            moved_ns: scale.moved_ns(was, is),
        })
        .collect();
    let size = |moved: &StallMove| scale.size(moved.reference_share, moved.share);
    stalls.sort_by(|a, b| size(b).total_cmp(&size(a)));
    stalls.truncate(NAMED);
    stalls
}

impl KernelHotspots {
    /// Where most of the time went, in a few words: a line, where one alone took half of what the
    /// kernel waits for longer; else what it waits for, and where it is now. And whether that is enough of
    /// the added time for a cause.
    pub(crate) fn short(&self) -> Option<(bool, String)> {
        let added = self.current_ns? - self.reference_ns?;
        let is_named = |ns: f64| added > 0.0 && ns / added >= LEAST_SHARE;
        let time = |ns: f64| format!("+{}", display_value(ns, Some("ns")));
        let line = self
            .lines
            .first()
            .and_then(|line| Some((line.moved_ns?, line)));
        let stall = self
            .stalls
            .first()
            .and_then(|stall| Some((stall.moved_ns?, stall)));
        match (line, stall) {
            (Some((of_line, line)), stall)
                if stall.is_none_or(|(of_all, _)| of_line >= of_all / 2.0) =>
            {
                let text = format!("{} at {}", time(of_line), line.line.place());
                Some((is_named(of_line), text))
            }
            (_, Some((of_all, stall))) => {
                let now = self.now.first().map_or_else(String::new, |line| {
                    format!(
                        ", now {:.1} % of the time at {}",
                        line.share * 100.0,
                        line.place()
                    )
                });
                let text = format!("{} {}{now}", time(of_all), stall_words(&stall.reason));
                Some((is_named(of_all), text))
            }
            _ => None,
        }
    }

    /// Whether the lines that can be compared explain less than half of what the whole kernel waits
    /// for.
    fn lines_explain_little(&self) -> bool {
        let least = |ns: Option<Option<f64>>| ns.flatten().unwrap_or(0.0);
        let of_lines = least(self.lines.first().map(|line| line.moved_ns));
        let of_all = least(self.stalls.first().map(|stall| stall.moved_ns));
        !self.now.is_empty() && of_lines < of_all / 2.0
    }
}

/// The share that a line which is not among those that are kept has at most.
fn least(hotspots: &Hotspots) -> f64 {
    match hotspots.lines.last() {
        Some(last) if hotspots.lines.len() >= MOST_LINES => last.share,
        _ => 0.0,
    }
}

/// What makes shares of two sides comparable.
struct Scale {
    times: Option<(f64, f64)>,
    samples: (f64, f64),
}

impl Scale {
    /// By how much a share grew, in parts of the reference's duration.
    fn size(&self, was: f64, is: f64) -> f64 {
        let slower = self.times.map_or(1.0, |(was, is)| is / was);
        is * slower - was
    }

    /// Whether it grew by more than chance and by more than a little.
    fn grew(&self, was: f64, is: f64) -> bool {
        let slower = self.times.map_or(1.0, |(was, is)| is / was);
        let variance = |share: f64, samples: f64| share * (1.0 - share) / samples;
        let error =
            (variance(was, self.samples.0) + slower * slower * variance(is, self.samples.1)).sqrt();
        self.size(was, is) > (ERRORS * error).max(SMALLEST_MOVE)
    }

    fn moved_ns(&self, was: f64, is: f64) -> Option<f64> {
        let (before, _) = self.times?;
        Some(self.size(was, is) * before)
    }
}

/// The reason to wait that grew most at a line.
fn longer(
    scale: &Scale,
    was: &Hotspots,
    before: Option<&HotLine>,
    is: &Hotspots,
    line: &HotLine,
) -> Option<String> {
    let share = |samples: u64, all: &Hotspots| samples as f64 / all.samples as f64;
    let grown = |reason: &str, samples: u64| {
        let before = before.map_or(0, |before| {
            let known = before.stalls.iter().find(|stall| stall.reason == reason);
            known.map_or(0, |stall| stall.samples)
        });
        scale.size(share(before, was), share(samples, is))
    };
    line.stalls
        .iter()
        .map(|stall| (grown(&stall.reason, stall.samples), &stall.reason))
        .filter(|(size, _)| *size > 0.0)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, reason)| reason.clone())
}

fn sentence(moved: &KernelHotspots) -> String {
    let size = |ns: Option<f64>, was: f64, is: f64| match ns {
        Some(ns) => format!("+{}", display_value(ns, Some("ns"))),
        None => format!("{:.1} % → {:.1} % of the time", was * 100.0, is * 100.0),
    };
    let instruction = |line: &HotLine| {
        let text = line.instruction.as_ref();
        text.map_or_else(String::new, |text| format!(", `{text}`"))
    };
    let lines = moved.lines.iter().map(|one| {
        let reason = one
            .reason
            .as_deref()
            .map_or_else(String::new, |reason| format!(": {}", stall_words(reason)));
        format!(
            "{} at {}{reason}{}",
            size(one.moved_ns, one.reference_share, one.line.share),
            one.line.place(),
            instruction(&one.line)
        )
    });
    let lines: Vec<String> = lines.collect();
    let now = moved.now.iter().map(|line| {
        let reason = line.stalls.first();
        let reason = reason.map_or_else(String::new, |stall| {
            format!(", {}", stall_words(&stall.reason))
        });
        format!(
            "{:.1} % at {}{reason}{}",
            line.share * 100.0,
            line.place(),
            instruction(line)
        )
    });
    let now: Vec<String> = now.collect();
    let stalls = moved.stalls.iter().map(|stall| {
        format!(
            "{} {}",
            stall_words(&stall.reason),
            size(stall.moved_ns, stall.reference_share, stall.share)
        )
    });
    let stalls: Vec<String> = stalls.collect();
    let mut parts = Vec::new();
    if !lines.is_empty() {
        parts.push(format!("time moved: {}", lines.join("; ")));
    }
    if !stalls.is_empty() {
        parts.push(format!("over all warps: {}", stalls.join(", ")));
    }
    if !now.is_empty() {
        let why = "the source changed and its lines cannot be compared; the time is now";
        parts.push(format!("{why}: {}", now.join("; ")));
    }
    if moved.lines_explain_little() && !lines.is_empty() {
        parts.rotate_left(1);
    }
    if parts.is_empty() {
        return "no line and no stall reason took more time than before".to_owned();
    }
    parts.join(". ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(name: &str) -> Profile {
        let path = format!("{}/tests/data/hotspots/{name}", env!("CARGO_MANIFEST_DIR"));
        Profile::read(path.as_ref()).unwrap()
    }

    fn side(profile: &Profile, duration_ns: f64) -> Sampled<'_> {
        Sampled::of(profile, &profile.kernels[0], Some(duration_ns)).unwrap()
    }

    #[test]
    fn where_the_source_changed_the_wait_comes_first_and_the_line_where_it_is_now() {
        let [before, after] = ["before.profile.json", "after.profile.json"].map(recorded);
        let (before, after) = (side(&before, 270_550.0), side(&after, 541_600.0));
        let moved = moved("bsr_gemm_cp_async", &before, &after);
        let short = "+182.10 us waiting for shared memory or a special function (short scoreboard), now 47.7 % of the time at kernels/bsr_gemm/cp_async.cu:178";
        assert_eq!(moved.short().unwrap(), (true, short.to_owned()));
        let text = &moved.text;
        assert!(text.starts_with("over all warps: waiting for shared memory or"));
        assert!(text.contains("time moved: +14.80 us at"), "{text}");
    }
}
