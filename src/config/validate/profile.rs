//! `[profile]`, in each of the tables that may contain one.

use toml::de::DeValue;

use super::file::{File, entry};
use crate::config::error::{ConfigError, suggest};
use crate::config::model::ProfileSettings;
use crate::config::raw::{
    CacheControl, ClockControl, Collector, GraphProfiling, RawProfile, ReplayMode,
};
use crate::terms::Tier;

const DEFAULT_LAUNCHES: u32 = 20;
const DEFAULT_PROCESSES: u32 = 4;
const DEFAULT_COUNTED_LAUNCHES: u32 = 2;
const DEFAULT_ROUNDS: u32 = 1;
const DEFAULT_MAX_ROUNDS: u32 = 5;
const DEFAULT_PROFILE_TIMEOUT_S: f64 = 300.0;
const MOST_RETRIES: u32 = 10;
/// Arguments of ncu that the tool sets itself, and that would break its reading if set twice.
const OWN_NCU_ARGS: &[&str] = &[
    "-o",
    "--export",
    "-f",
    "--force-overwrite",
    "--log-file",
    "--csv",
    "--page",
    "--print-units",
    "--import",
    "--metrics",
    "--launch-count",
    "-c",
    "--launch-skip",
    "-s",
    "--clock-control",
    "--cache-control",
    "--replay-mode",
    "--graph-profiling",
    "-k",
    "--kernel-name",
    "--quiet",
    "--config-file",
    "--config-file-path",
];

/// Arguments of ncu that change how `--kernel-id` counts and compares.
const COUNTING_NCU_ARGS: &[&str] = &[
    "--kernel-id",
    "--kernel-name-base",
    "--filter-mode",
    "--launch-skip-before-match",
];

impl File<'_> {
    /// Settings from several tables; the first that sets one counts. `at` is the narrowest of them.
    pub(super) fn profile(
        &self,
        at: &[&str],
        layers: &[&RawProfile],
    ) -> Result<ProfileSettings, ConfigError> {
        let counts = self.profile_counts(at, layers)?;
        let timeout_s = first(layers, |p| &p.timeout_s).unwrap_or(DEFAULT_PROFILE_TIMEOUT_S);
        let settings = ProfileSettings {
            skip: first(layers, |p| &p.skip).unwrap_or(0),
            ncu_args: self.ncu_args(at, layers)?,
            accept_tiers: self.accepted_tiers(at, layers)?,
            collector: first(layers, |p| &p.collector).unwrap_or(Collector::Ncu),
            clock_control: first(layers, |p| &p.clock_control).unwrap_or(ClockControl::Base),
            cache_control: first(layers, |p| &p.cache_control).unwrap_or(CacheControl::All),
            replay_mode: first(layers, |p| &p.replay_mode).unwrap_or(ReplayMode::Kernel),
            graph_profiling: first(layers, |p| &p.graph_profiling).unwrap_or(GraphProfiling::Node),
            nvtx: first(layers, |p| &p.nvtx).unwrap_or_default(),
            profiler_range: first(layers, |p| &p.profiler_range).unwrap_or(false),
            hotspots: first(layers, |p| &p.hotspots).unwrap_or(false),
            timeout: self.timeout(&keys(&self.place(at, "timeout_s")), timeout_s)?,
            launches: counts.launches,
            max_launches: counts.max_launches,
            processes: counts.processes,
            max_processes: counts.max_processes,
            counted_launches: counts.counted_launches,
            rounds: counts.rounds,
            max_rounds: counts.max_rounds,
            retries: counts.retries,
            per_kernel: first(layers, |p| &p.per_kernel).unwrap_or(false),
            total: first(layers, |p| &p.total).unwrap_or(false),
        };
        self.countable(at, &settings)?;
        self.collectable(at, &settings)?;
        Ok(settings)
    }

    /// That it is known how often each measured kernel is launched, so that times can be added up.
    fn summable(&self, at: &[&str], settings: &ProfileSettings) -> Result<(), ConfigError> {
        if !settings.per_kernel {
            let message =
                "`total` needs `per_kernel = true`: every kernel of a step must be measured";
            return Err(self.wrong_setting(at, "total", message.to_owned()));
        }
        if settings.nvtx.is_empty() {
            return Ok(());
        }
        let message = "`total` does not work with `nvtx`: only ncu selects by it, and does not say how often a kernel is launched";
        Err(self.wrong_setting(at, "total", message.to_owned()))
    }

    /// That launches can be counted by kernel, where they are.
    fn countable(&self, at: &[&str], settings: &ProfileSettings) -> Result<(), ConfigError> {
        if settings.total {
            self.summable(at, settings)?;
        }
        if !settings.per_kernel {
            return Ok(());
        }
        if settings.graph_profiling == GraphProfiling::Graph {
            let message = "`per_kernel` does not work with `graph_profiling = \"graph\"`: a whole CUDA graph is no launch of a kernel";
            return Err(self.wrong_setting(at, "graph_profiling", message.to_owned()));
        }
        if matches!(
            settings.replay_mode,
            ReplayMode::Range | ReplayMode::ApplicationRange
        ) {
            let message = format!(
                "`per_kernel` does not work with `replay_mode = \"{}\"`: a range is no launch of a kernel",
                settings.replay_mode
            );
            return Err(self.wrong_setting(at, "replay_mode", message));
        }
        let mut arguments = settings.ncu_args.iter();
        let own = arguments.find(|argument| {
            let name = argument.split('=').next().unwrap_or_default();
            COUNTING_NCU_ARGS.contains(&name)
        });
        match own {
            None => Ok(()),
            Some(own) => {
                let message = format!(
                    "`{own}` does not work with `per_kernel`, which counts by `--kernel-id`"
                );
                Err(self.wrong_setting(at, "ncu_args", message))
            }
        }
    }

    /// That the collector supports every other setting: what only ncu does is refused beside
    /// `cupti`, and never ignored.
    fn collectable(&self, at: &[&str], settings: &ProfileSettings) -> Result<(), ConfigError> {
        if settings.collector == Collector::Ncu {
            return Ok(());
        }
        let refused: [(&str, bool, &str); 7] = [
            (
                "clock_control",
                settings.clock_control != ClockControl::None,
                "only ncu locks the clocks: set `clock_control = \"none\"`",
            ),
            (
                "replay_mode",
                settings.replay_mode != ReplayMode::Kernel,
                "it replays single launches: set `replay_mode = \"kernel\"`",
            ),
            (
                "graph_profiling",
                settings.graph_profiling != GraphProfiling::Node,
                "only ncu measures a whole CUDA graph",
            ),
            (
                "nvtx",
                !settings.nvtx.is_empty(),
                "only ncu selects by NVTX ranges",
            ),
            (
                "profiler_range",
                settings.profiler_range,
                "CUPTI's counters cannot be limited to what is launched between cudaProfilerStart and cudaProfilerStop",
            ),
            ("hotspots", settings.hotspots, "only ncu samples warps"),
            (
                "ncu_args",
                !settings.ncu_args.is_empty(),
                "ncu is not run with it",
            ),
        ];
        match refused.iter().find(|(_, is_set, _)| *is_set) {
            None => Ok(()),
            Some((setting, _, why)) => {
                let message =
                    format!("`{setting}` does not work with `collector = \"cupti\"`: {why}");
                // A default is nowhere in the file.
                let is_set = self.has(&self.place(at, setting));
                Err(self.wrong_setting(at, if is_set { setting } else { "collector" }, message))
            }
        }
    }

    fn profile_counts(&self, at: &[&str], layers: &[&RawProfile]) -> Result<Counts, ConfigError> {
        let launches = first(layers, |p| &p.launches).unwrap_or(DEFAULT_LAUNCHES);
        let max_launches = first(layers, |p| &p.max_launches).unwrap_or(launches);
        let processes = first(layers, |p| &p.processes).unwrap_or(DEFAULT_PROCESSES);
        let max_processes =
            first(layers, |p| &p.max_processes).unwrap_or(processes.saturating_mul(2));
        let counted_launches =
            first(layers, |p| &p.counted_launches).unwrap_or(DEFAULT_COUNTED_LAUNCHES);
        let rounds = first(layers, |p| &p.rounds).unwrap_or(DEFAULT_ROUNDS);
        let max_rounds = first(layers, |p| &p.max_rounds).unwrap_or(DEFAULT_MAX_ROUNDS.max(rounds));
        for (setting, value) in [
            ("launches", launches),
            ("max_launches", max_launches),
            ("processes", processes),
            ("max_processes", max_processes),
            ("counted_launches", counted_launches),
            ("rounds", rounds),
            ("max_rounds", max_rounds),
        ] {
            if value == 0 || value > 10_000 {
                let message = format!("`{setting}` must be a number from 1 to 10000");
                return Err(self.wrong_setting(at, setting, message));
            }
        }
        for (setting, most, least) in [
            ("max_launches", max_launches, launches),
            ("max_processes", max_processes, processes),
            ("max_rounds", max_rounds, rounds),
        ] {
            if most < least {
                let message = format!(
                    "`{setting}` is {most}, fewer than the {least} that are always measured"
                );
                return Err(self.wrong_setting(at, setting, message));
            }
        }
        let retries = first(layers, |p| &p.retries).unwrap_or(0);
        if retries > MOST_RETRIES {
            let message = format!("`retries` must be a number from 0 to {MOST_RETRIES}");
            return Err(self.wrong_setting(at, "retries", message));
        }
        Ok(Counts {
            launches,
            max_launches,
            processes,
            max_processes,
            counted_launches,
            rounds,
            max_rounds,
            retries,
        })
    }

    fn ncu_args(&self, at: &[&str], layers: &[&RawProfile]) -> Result<Vec<String>, ConfigError> {
        let arguments = first(layers, |p| &p.ncu_args).unwrap_or_default();
        let own = arguments.iter().find(|argument| {
            let name = argument.split('=').next().unwrap_or_default();
            OWN_NCU_ARGS.contains(&name)
        });
        if let Some(own) = own {
            let message = format!("`{own}` is set by the tool itself");
            return Err(self.wrong_setting(at, "ncu_args", message));
        }
        // `--set full`, in one string, is an option that ncu does not have.
        let two = arguments.iter().find_map(|argument| {
            let (option, value) = argument.split_once(' ')?;
            (option.starts_with('-') && !option.contains('=')).then_some((option, value))
        });
        match two {
            Some((option, value)) => {
                let message = format!("`{option} {value}` is two arguments");
                let help = format!("write \"{option}\", \"{value}\"");
                let error = self.wrong_setting(at, "ncu_args", message);
                Err(error.help(Some(help)))
            }
            None => Ok(arguments),
        }
    }

    fn accepted_tiers(
        &self,
        at: &[&str],
        layers: &[&RawProfile],
    ) -> Result<Vec<Tier>, ConfigError> {
        let named = first(layers, |p| &p.accept_tiers).unwrap_or_default();
        let tier = |name: &String| {
            Tier::lower(name).ok_or_else(|| {
                let known: Vec<&str> = Tier::ACCEPTABLE.iter().map(|tier| tier.as_str()).collect();
                let message = format!("`{name}` is not a tier of measurement below the counters");
                self.wrong_setting(at, "accept_tiers", message)
                    .help(Some(suggest(name, &known)))
            })
        };
        named.iter().map(tier).collect()
    }

    fn wrong_setting(&self, at: &[&str], setting: &str, message: String) -> ConfigError {
        self.error(&keys(&self.place(at, setting)), message)
    }

    /// The path of a setting: in the variant's own table, the suite's, or the whole configuration's.
    fn place(&self, at: &[&str], setting: &str) -> Vec<String> {
        let path = |tables: &[&str]| -> Vec<String> {
            let keys = tables.iter().chain([&setting]);
            keys.map(|key| (*key).to_owned()).collect()
        };
        let suite = at.get(1).map(|suite| path(&["suite", suite, "profile"]));
        let everywhere = path(&["profile"]);
        [Some(path(at)), suite]
            .into_iter()
            .flatten()
            .find(|keys| self.has(keys))
            .unwrap_or(everywhere)
    }

    fn has(&self, keys: &[String]) -> bool {
        let mut table = Some(self.tree);
        for (depth, key) in keys.iter().enumerate() {
            let Some((_, value)) = table.and_then(|table| entry(table, key)) else {
                return false;
            };
            table = match value.get_ref() {
                DeValue::Table(inner) => Some(inner),
                _ => return depth + 1 == keys.len(),
            };
        }
        true
    }
}

/// The settings that are numbers.
struct Counts {
    launches: u32,
    max_launches: u32,
    processes: u32,
    max_processes: u32,
    counted_launches: u32,
    rounds: u32,
    max_rounds: u32,
    retries: u32,
}

/// The setting of the first table that has it.
fn first<'a, T: Clone + 'a>(
    layers: &[&'a RawProfile],
    field: impl Fn(&'a RawProfile) -> &'a Option<T>,
) -> Option<T> {
    layers.iter().find_map(|layer| field(layer).clone())
}

fn keys(path: &[String]) -> Vec<&str> {
    path.iter().map(String::as_str).collect()
}
