//! Two measurements of any kind side by side: profiles, reports, CSV pages. Nothing is judged.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io::Read as _;
use std::path::Path;

use serde::Serialize;

use crate::capture::{self, Format};
use crate::finding::Error;
use crate::judge::{KernelHotspots, Sampled, moved};
use crate::metric::Role;
use crate::profile::import::conditions_of;
use crate::profile::{Hotspots, KernelProfile, Profile};
use crate::statistics::median;
use crate::toolchain::Nvdisasm;
use crate::verdict::Change;
use ncu_report::{Launch, Measurement, Recording, Value};

/// One of the two files.
#[derive(Clone, Debug, Serialize)]
pub struct Side {
    /// The file.
    pub path: String,
    /// `profile`, `ncu-rep`, `csv`, `counter-records`, `kernel-records` or `event-times`.
    pub format: &'static str,
    /// Under what it was measured, by name, as far as the file says.
    pub conditions: BTreeMap<&'static str, String>,
    /// Its kernels, in the order of their first launch.
    #[serde(skip)]
    pub kernels: Vec<Kernel>,
    #[serde(skip)]
    sources: BTreeMap<String, String>,
}

/// A kernel at one grid and block.
#[derive(Clone, Debug, Serialize)]
pub struct Kernel {
    /// The function's name.
    pub name: String,
    /// The linker's name, where the file has it.
    pub mangled: Option<String>,
    /// The signature as the file spells it.
    pub demangled: Option<String>,
    /// Blocks in x, y, z.
    pub grid: [u64; 3],
    /// Threads a block in x, y, z.
    pub block: [u64; 3],
    /// Launches, of all processes.
    pub launches: usize,
    /// By counter.
    #[serde(skip)]
    pub metrics: BTreeMap<String, Metric>,
    /// Where its warps were.
    #[serde(skip)]
    pub hotspots: Option<Hotspots>,
}

/// A metric of a kernel on one side.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Metric {
    /// The name that a profile gives it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alias: Option<String>,
    /// Its unit; `None` where it is not known.
    pub unit: Option<String>,
    /// What was measured.
    #[serde(flatten)]
    pub reading: Reading,
}

/// What was measured of a metric.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Reading {
    /// Numbers of so many launches.
    Numbers {
        /// Median over the launches.
        value: f64,
        /// Smallest.
        min: f64,
        /// Largest.
        max: f64,
        /// How many launches have one.
        launches: usize,
    },
    /// A text.
    Text {
        /// Of the first launch.
        text: String,
    },
}

/// How two kernels were found to be one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PairedBy {
    /// Name, grid and block.
    NameAndShape,
    /// Name; grid or block differ.
    Name,
    /// Their place among those that were left.
    Order,
}

/// A metric of two kernels.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The counter.
    pub metric: String,
    /// On the first side.
    pub before: Option<Metric>,
    /// On the second side.
    pub after: Option<Metric>,
    /// Second less first: points of a metric in percent, else percent, or the unit where the first
    /// is zero. `None` where there is nothing to subtract.
    pub change: Option<Change>,
    /// Whether the launches of one side reach into those of the other.
    pub within_spread: bool,
    /// How far it moved, 0 to 200, to sort by: points, or percent of the mean of both.
    #[serde(skip)]
    pub size: f64,
}

/// Two kernels side by side.
#[derive(Clone, Debug, Serialize)]
pub struct Pair {
    /// Of the first side.
    pub before: Kernel,
    /// Of the second.
    pub after: Kernel,
    /// How they were paired.
    pub paired_by: PairedBy,
    /// The metrics of both, what moved most first.
    pub metrics: Vec<Row>,
    /// Where the second side takes more time, where both were sampled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub more_time: Option<KernelHotspots>,
    /// Where the first side takes more time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub less_time: Option<KernelHotspots>,
}

/// Two files side by side.
#[derive(Clone, Debug, Serialize)]
pub struct Diff {
    /// Version of this format.
    pub schema: u32,
    /// The first file.
    pub before: Side,
    /// The second.
    pub after: Side,
    /// Why the two are not directly comparable.
    pub warnings: Vec<String>,
    /// The kernels that are in both.
    pub kernels: Vec<Pair>,
    /// Those that only the first has.
    pub only_before: Vec<Kernel>,
    /// Those that only the second has.
    pub only_after: Vec<Kernel>,
}

impl Side {
    /// Reads a profile, report or CSV.
    ///
    /// # Errors
    /// Those of the file's reader.
    pub fn read(
        path: &Path,
        unreadable: impl Fn(&Path, ncu_report::ReadError) -> Error,
    ) -> Result<Side, Error> {
        let looks_like_json = begins_like_json(path);
        let profile = looks_like_json.then(|| Profile::read(path));
        if let Some(Ok(profile)) = profile {
            return Ok(Side::of_profile(path, &profile));
        }
        match (capture::read_file(path), profile) {
            (Ok((format, recording)), _) => Ok(Side::of_recording(path, format, &recording)),
            (Err(_), Some(Err(error))) => Err(error),
            (Err(error), _) => Err(unreadable(path, error)),
        }
    }

    /// Of a profile that was read from a file.
    pub fn of_profile(path: &Path, profile: &Profile) -> Side {
        let identity = &profile.identity;
        let provenance = &profile.provenance;
        let mut conditions = BTreeMap::from([
            ("GPU", identity.gpu.clone()),
            ("tier", identity.tier.to_string()),
        ]);
        let optional = [
            ("ncu", provenance.profiler.clone()),
            ("driver", provenance.driver.clone()),
        ];
        conditions.extend(optional.into_iter().filter_map(|(n, v)| Some((n, v?))));
        conditions.extend(known_settings(&identity.conditions));
        Side {
            path: path.display().to_string(),
            format: "profile",
            conditions,
            kernels: profile
                .kernels
                .iter()
                .map(|kernel| Kernel::of_profile(profile, kernel))
                .collect(),
            sources: provenance.sources.clone(),
        }
    }

    /// Of a capture that was read from a file.
    pub fn of_recording(path: &Path, format: Format, recording: &Recording) -> Side {
        let mut conditions = BTreeMap::from([("tier", format.tier().to_string())]);
        let gpu = recording
            .launches
            .iter()
            .find_map(|launch| Role::DeviceName.text(launch));
        conditions.extend(gpu.map(|gpu| ("GPU", gpu.to_owned())));
        conditions.extend(
            recording
                .profiler_version
                .as_deref()
                // What follows names the build.
                .and_then(|version| version.split_whitespace().next())
                .map(|version| ("ncu", version.to_owned())),
        );
        conditions.extend(known_settings(&conditions_of(recording)));
        // What the launches state outranks the command line.
        if let Some(locked) = recording.launches.iter().find_map(|one| one.clock_locked) {
            let words = if locked { "yes" } else { "no" };
            conditions.insert("clocks locked", words.to_owned());
        }
        Side {
            path: path.display().to_string(),
            format: match format {
                Format::Report => "ncu-rep",
                Format::Csv => "csv",
                Format::CounterRecords => "counter-records",
                Format::KernelRecords => "kernel-records",
                Format::EventTimes => "event-times",
            },
            conditions,
            kernels: by_kernel(&recording.launches)
                .iter()
                .filter_map(|group| Kernel::of_launches(group))
                .collect(),
            sources: BTreeMap::new(),
        }
    }

    /// The samples of a kernel, with the names of files as the other side has them too.
    fn hotspots(&self, kernel: &Kernel, bare: bool) -> Option<Hotspots> {
        let mut hotspots = kernel.hotspots.clone()?;
        if bare {
            let name = |file: &str| file.rsplit('/').next().unwrap_or(file).to_owned();
            for line in &mut hotspots.lines {
                line.file = line.file.as_deref().map(name);
            }
            let bytes = std::mem::take(&mut hotspots.file_bytes);
            hotspots.file_bytes = bytes.into_iter().map(|(f, n)| (name(&f), n)).collect();
        }
        Some(hotspots)
    }
}

/// The launches of each kernel at one grid and block, in the order of the first one of each.
pub fn by_kernel(launches: &[Launch]) -> Vec<Vec<&Launch>> {
    let mut groups: Vec<Vec<&Launch>> = Vec::new();
    let mut places = HashMap::new();
    for launch in launches {
        let kernel = &launch.kernel;
        let names = (&kernel.function, &kernel.mangled, &kernel.demangled);
        let place = places.entry((names, launch.grid, launch.block));
        let at = *place.or_insert_with(|| {
            groups.push(Vec::new());
            groups.len() - 1
        });
        groups[at].push(launch);
    }
    groups
}

/// Whether the first byte of a file that is no blank begins an object.
fn begins_like_json(path: &Path) -> bool {
    let mut start = Vec::new();
    let read =
        crate::files::open_regular(path).and_then(|file| file.take(4096).read_to_end(&mut start));
    read.is_ok() && start.trim_ascii_start().starts_with(b"{")
}

/// The known ones of the profiler's settings.
fn known_settings(conditions: &crate::profile::Conditions) -> Vec<(&'static str, String)> {
    let named = conditions.named().into_iter();
    named
        .filter_map(|(name, value)| Some((name, value?.to_owned())))
        .collect()
}

impl Kernel {
    /// Of a profile that was read from a file.
    pub fn of_profile(profile: &Profile, kernel: &KernelProfile) -> Kernel {
        let mut metrics = BTreeMap::new();
        for (alias, series) in &kernel.metrics {
            let Some(identity) = profile.identity.metrics.get(alias) else {
                continue;
            };
            let values: Vec<f64> = series.samples.iter().flatten().flatten().copied().collect();
            if let Some(reading) = Reading::of(values) {
                metrics.insert(
                    identity.counter.clone(),
                    Metric {
                        alias: Some(alias.clone()),
                        unit: identity.unit.clone(),
                        reading,
                    },
                );
            }
        }
        let launches = kernel.metrics.values().map(|series| series.launch_count());
        Kernel {
            name: kernel.name.clone(),
            mangled: kernel.mangled.clone(),
            demangled: kernel.demangled.clone(),
            grid: kernel.grid,
            block: kernel.block,
            launches: launches.max().unwrap_or(0),
            metrics,
            hotspots: kernel.hotspots.clone(),
        }
    }

    fn of_launches(launches: &[&Launch]) -> Option<Kernel> {
        let first = launches.first()?;
        let mut readings: BTreeMap<String, Vec<&Measurement>> = BTreeMap::new();
        for launch in launches {
            for (name, measurement) in &launch.metrics {
                readings
                    .entry(name.to_string())
                    .or_default()
                    .push(measurement);
            }
            for label in &launch.labels {
                readings
                    .entry(format!("{} / {}", label.section, label.name))
                    .or_default()
                    .push(&label.measurement);
            }
        }
        let metrics = readings
            .into_iter()
            .filter_map(|(name, all)| Some((name, Metric::of(&all)?)))
            .collect();
        Some(Kernel {
            name: first.kernel.function.clone(),
            mangled: first.kernel.mangled.clone(),
            demangled: first.kernel.demangled.clone(),
            grid: first.grid,
            block: first.block,
            launches: launches.len(),
            metrics,
            hotspots: sampled(launches),
        })
    }

    /// Median duration in nanoseconds.
    fn duration_ns(&self) -> Option<f64> {
        let metric = self.metrics.get(Role::Duration.counter())?;
        match metric.reading {
            Reading::Numbers { value, .. } if metric.unit.as_deref() == Some("ns") => Some(value),
            _ => None,
        }
    }
}

/// The samples of launches, with the text of their instructions where a disassembler is at hand.
fn sampled(launches: &[&Launch]) -> Option<Hotspots> {
    let mut hotspots = Hotspots::of(launches.iter().copied(), &[])?;
    let cubin = launches
        .iter()
        .find_map(|launch| launch.source.as_ref()?.cubin.clone());
    let name = launches.iter().find_map(|one| one.kernel.mangled.clone());
    if let (Some(cubin), Some(name), Some(nvdisasm)) = (cubin, name, Nvdisasm::at_hand())
        && let Ok(listing) = nvdisasm.listing(&cubin.0)
        && let Some(text) = listing.get(&name)
    {
        hotspots.name_instructions(text);
    }
    Some(hotspots)
}

impl Metric {
    fn of(all: &[&Measurement]) -> Option<Metric> {
        let unit = all.first()?.unit.symbol();
        let numbers = all.iter().filter_map(|one| one.value.number()).collect();
        let reading = Reading::of(numbers).or_else(|| {
            all.iter().find_map(|one| match &one.value {
                Value::Text(text) => Some(Reading::Text {
                    text: text.to_string(),
                }),
                _ => None,
            })
        })?;
        Some(Metric {
            alias: None,
            unit: unit.map(str::to_owned),
            reading,
        })
    }
}

impl Reading {
    /// Of the finite ones; nothing of none.
    fn of(mut values: Vec<f64>) -> Option<Reading> {
        values.retain(|value| value.is_finite());
        values.sort_by(f64::total_cmp);
        Some(Reading::Numbers {
            value: median(&values)?,
            min: *values.first()?,
            max: *values.last()?,
            launches: values.len(),
        })
    }
}

impl Row {
    fn of(metric: &str, before: Option<&Metric>, after: Option<&Metric>) -> Row {
        let mut row = Row {
            metric: metric.to_owned(),
            before: before.cloned(),
            after: after.cloned(),
            change: None,
            within_spread: false,
            size: 0.0,
        };
        let (Some(before), Some(after)) = (before, after) else {
            return row;
        };
        match (&before.reading, &after.reading) {
            (
                Reading::Numbers {
                    value: was,
                    min: was_min,
                    max: was_max,
                    ..
                },
                Reading::Numbers {
                    value: is,
                    min: is_min,
                    max: is_max,
                    ..
                },
            ) if before.unit.is_some() && before.unit == after.unit => {
                let step = is - was;
                let percent = before.unit.as_deref() == Some("%");
                row.change = Some(if percent || *was == 0.0 {
                    Change::Absolute(step)
                } else {
                    Change::RelativePercent(100.0 * step / was.abs())
                });
                row.within_spread = step != 0.0 && is_min <= was_max && was_min <= is_max;
                row.size = match was.abs() + is.abs() {
                    0.0 => 0.0,
                    _ if percent => step.abs().min(200.0),
                    both => 200.0 * step.abs() / both,
                };
            }
            (before, after) if before != after => row.size = 200.0,
            _ => {}
        }
        row
    }

    /// Whether both sides read the same.
    pub fn same(&self) -> bool {
        let reading = |side: &Option<Metric>| side.as_ref().map(|metric| metric.reading.clone());
        let unit = |side: &Option<Metric>| side.as_ref().map(|metric| metric.unit.clone());
        self.size == 0.0
            && reading(&self.before).is_some() == reading(&self.after).is_some()
            && unit(&self.before) == unit(&self.after)
    }
}

impl Diff {
    /// Pairs the kernels of two files and subtracts what both measured.
    pub fn of(before: Side, after: Side) -> Diff {
        let (pairs, only_before, only_after) = pair(&before.kernels, &after.kernels);
        let mut warnings = differing(&before, &after);
        // The names of files are those of a project only between its profiles.
        let bare = before.format != "profile" || after.format != "profile";
        let kernels = pairs
            .into_iter()
            .map(|(paired_by, was, is)| {
                for (what, was_shape, is_shape) in
                    [("grid", was.grid, is.grid), ("block", was.block, is.block)]
                {
                    // The tier of event times and the static tier do not know them.
                    let unknown = was_shape == [0; 3] || is_shape == [0; 3];
                    if was_shape != is_shape && !unknown {
                        warnings.push(format!(
                            "the {what} of {} differs: {was_shape:?} and {is_shape:?}",
                            was.name
                        ));
                    }
                }
                let names = was.metrics.keys().chain(is.metrics.keys());
                let mut names: Vec<&String> = names.collect();
                names.sort_unstable();
                names.dedup();
                let mut metrics: Vec<Row> = names
                    .into_iter()
                    .map(|name| Row::of(name, was.metrics.get(name), is.metrics.get(name)))
                    .collect();
                metrics.sort_by(|a, b| b.size.total_cmp(&a.size));
                let (more_time, less_time) = times(&before, &after, was, is, bare).unzip();
                Pair {
                    before: was.clone(),
                    after: is.clone(),
                    paired_by,
                    metrics,
                    more_time,
                    less_time,
                }
            })
            .collect();
        let owned = |kernels: Vec<&Kernel>| kernels.into_iter().cloned().collect();
        let (only_before, only_after) = (owned(only_before), owned(only_after));
        Diff {
            schema: 1,
            warnings,
            kernels,
            only_before,
            only_after,
            before,
            after,
        }
    }
}

fn times(
    before: &Side,
    after: &Side,
    was: &Kernel,
    is: &Kernel,
    bare: bool,
) -> Option<(KernelHotspots, KernelHotspots)> {
    let none = BTreeMap::new();
    let (was_spots, is_spots) = (before.hotspots(was, bare)?, after.hotspots(is, bare)?);
    let first = Sampled {
        hotspots: &was_spots,
        duration_ns: was.duration_ns(),
        sources: if bare { &none } else { &before.sources },
    };
    let second = Sampled {
        hotspots: &is_spots,
        duration_ns: is.duration_ns(),
        sources: if bare { &none } else { &after.sources },
    };
    Some((
        moved(&is.name, &first, &second),
        moved(&was.name, &second, &first),
    ))
}

/// Conditions that both files state and that differ.
fn differing(before: &Side, after: &Side) -> Vec<String> {
    before
        .conditions
        .iter()
        .filter_map(|(what, was)| Some((what, was, after.conditions.get(what)?)))
        .filter(|(_, was, is)| was != is)
        .map(|(what, was, is)| format!("{what} differs: {was} and {is}"))
        .collect()
}

type Paired<'a> = (PairedBy, &'a Kernel, &'a Kernel);

/// Pairs by name and shape, then by name, then by order; and what is left on each side.
fn pair<'a>(
    before: &'a [Kernel],
    after: &'a [Kernel],
) -> (Vec<Paired<'a>>, Vec<&'a Kernel>, Vec<&'a Kernel>) {
    let mut left: Vec<(usize, &Kernel)> = before.iter().enumerate().collect();
    let mut right: Vec<&Kernel> = after.iter().collect();
    let mut pairs: Vec<(usize, Paired<'a>)> = Vec::new();
    let shape = |kernel: &Kernel| Some((kernel.grid, kernel.block));
    /// What two kernels share that belong together; `None` pairs with nothing.
    type Key<'k> = Option<(Option<&'k str>, Option<([u64; 3], [u64; 3])>)>;
    type KeyOf<'f, 'k> = &'f dyn Fn(&'k Kernel) -> Key<'k>;
    let code = |kernel: &'a Kernel| kernel.mangled.as_deref();
    let ways: [(PairedBy, KeyOf<'_, 'a>); 5] = [
        (PairedBy::NameAndShape, &|k| {
            Some((Some(code(k)?), shape(k)))
        }),
        (PairedBy::NameAndShape, &|k| Some((Some(&k.name), shape(k)))),
        (PairedBy::Name, &|k| Some((Some(code(k)?), None))),
        (PairedBy::Name, &|k| Some((Some(&k.name), None))),
        (PairedBy::Order, &|_| Some((None, None))),
    ];
    for (paired_by, key) in ways {
        let mut waiting: HashMap<_, VecDeque<usize>> = HashMap::new();
        for (at, kernel) in right.iter().enumerate() {
            if let Some(key) = key(kernel) {
                waiting.entry(key).or_default().push_back(at);
            }
        }
        let mut taken = vec![false; right.len()];
        left.retain(|(place, kernel)| {
            let of_key = key(kernel).and_then(|key| waiting.get_mut(&key)?.pop_front());
            let Some(at) = of_key else {
                return true;
            };
            taken[at] = true;
            pairs.push((*place, (paired_by, kernel, right[at])));
            false
        });
        let mut taken = taken.into_iter();
        right.retain(|_| !taken.next().unwrap_or(false));
    }
    pairs.sort_by_key(|(place, _)| *place);
    (
        pairs.into_iter().map(|(_, pair)| pair).collect(),
        left.into_iter().map(|(_, kernel)| kernel).collect(),
        right,
    )
}
