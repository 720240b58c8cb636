//! `[profile]`, in each of the tables that may hold one.

use toml::de::DeValue;

use super::File;
use crate::config::error::suggest;
use crate::config::raw::RawProfile;
use crate::config::{
    CacheControl, ClockControl, ConfigError, GraphProfiling, ProfileSettings, ReplayMode,
};
use crate::terms::Tier;

const DEFAULT_LAUNCHES: u32 = 20;
const DEFAULT_PROCESSES: u32 = 4;
const DEFAULT_COUNTED_LAUNCHES: u32 = 2;
const DEFAULT_ROUNDS: u32 = 3;
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
];

impl File<'_> {
    pub(super) fn profile(
        &self,
        at: &[&str],
        layers: &[&RawProfile],
    ) -> Result<ProfileSettings, ConfigError> {
        fn first<'a, T: Clone + 'a>(
            layers: &[&'a RawProfile],
            field: impl Fn(&'a RawProfile) -> &'a Option<T>,
        ) -> Option<T> {
            layers.iter().find_map(|layer| field(layer).clone())
        }
        let launches = first(layers, |p| &p.launches).unwrap_or(DEFAULT_LAUNCHES);
        let processes = first(layers, |p| &p.processes).unwrap_or(DEFAULT_PROCESSES);
        let max_processes =
            first(layers, |p| &p.max_processes).unwrap_or(processes.saturating_mul(2));
        let counted_launches =
            first(layers, |p| &p.counted_launches).unwrap_or(DEFAULT_COUNTED_LAUNCHES);
        let rounds = first(layers, |p| &p.rounds).unwrap_or(DEFAULT_ROUNDS);
        let max_rounds = first(layers, |p| &p.max_rounds).unwrap_or(DEFAULT_MAX_ROUNDS.max(rounds));
        // The setting may stand in any of three tables; the variant's own is named, the others found.
        let place = |setting: &str| -> Vec<String> {
            let own: Vec<String> = at
                .iter()
                .map(|key| (*key).to_owned())
                .chain([setting.to_owned()])
                .collect();
            let suite = at.get(1).map(|suite| {
                vec![
                    "suite".to_owned(),
                    (*suite).to_owned(),
                    "profile".to_owned(),
                    setting.to_owned(),
                ]
            });
            let global = vec!["profile".to_owned(), setting.to_owned()];
            [Some(own), suite, Some(global.clone())]
                .into_iter()
                .flatten()
                .find(|keys| self.has(keys))
                .unwrap_or(global)
        };
        let complain = |setting: &str, message: String| {
            let keys = place(setting);
            let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
            self.error(&keys, message)
        };
        for (setting, value) in [
            ("launches", launches),
            ("processes", processes),
            ("max_processes", max_processes),
            ("counted_launches", counted_launches),
            ("rounds", rounds),
            ("max_rounds", max_rounds),
        ] {
            if value == 0 || value > 10_000 {
                return Err(complain(
                    setting,
                    format!("`{setting}` is a number from 1 to 10000"),
                ));
            }
        }
        for (setting, most, least) in [
            ("max_processes", max_processes, processes),
            ("max_rounds", max_rounds, rounds),
        ] {
            if most < least {
                return Err(complain(
                    setting,
                    format!(
                        "`{setting}` is {most}, fewer than the {least} that are always measured"
                    ),
                ));
            }
        }
        let retries = first(layers, |p| &p.retries).unwrap_or(0);
        if retries > MOST_RETRIES {
            return Err(complain(
                "retries",
                format!("`retries` is a number from 0 to {MOST_RETRIES}"),
            ));
        }
        let ncu_args = first(layers, |p| &p.ncu_args).unwrap_or_default();
        if let Some(argument) = ncu_args.iter().find(|argument| {
            let name = argument.split('=').next().unwrap_or_default();
            OWN_NCU_ARGS.contains(&name)
        }) {
            return Err(complain(
                "ncu_args",
                format!("`{argument}` is set by the tool itself"),
            ));
        }
        let named = first(layers, |p| &p.accept_tiers).unwrap_or_default();
        let accept_tiers: Vec<Tier> = named.iter().filter_map(|name| Tier::lower(name)).collect();
        if let Some(unknown) = named.iter().find(|name| Tier::lower(name).is_none()) {
            let known: Vec<&str> = Tier::ACCEPTABLE.iter().map(|tier| tier.as_str()).collect();
            let error = complain(
                "accept_tiers",
                format!("`{unknown}` is no tier of measurement below the counters"),
            );
            return Err(error.help(Some(suggest(unknown, &known))));
        }
        let timeout_s = first(layers, |p| &p.timeout_s).unwrap_or(DEFAULT_PROFILE_TIMEOUT_S);
        let keys = place("timeout_s");
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        Ok(ProfileSettings {
            launches,
            skip: first(layers, |p| &p.skip).unwrap_or(0),
            processes,
            max_processes,
            counted_launches,
            rounds,
            max_rounds,
            clock_control: first(layers, |p| &p.clock_control).unwrap_or(ClockControl::Base),
            cache_control: first(layers, |p| &p.cache_control).unwrap_or(CacheControl::All),
            replay_mode: first(layers, |p| &p.replay_mode).unwrap_or(ReplayMode::Kernel),
            graph_profiling: first(layers, |p| &p.graph_profiling).unwrap_or(GraphProfiling::Node),
            nvtx: first(layers, |p| &p.nvtx).unwrap_or_default(),
            profiler_range: first(layers, |p| &p.profiler_range).unwrap_or(false),
            keep_sass: first(layers, |p| &p.keep_sass).unwrap_or(false),
            timeout: self.timeout(&keys, timeout_s)?,
            ncu_args,
            accept_tiers,
            hotspots: first(layers, |p| &p.hotspots).unwrap_or(false),
            retries,
        })
    }

    fn has(&self, keys: &[String]) -> bool {
        let mut table = Some(self.tree);
        for (depth, key) in keys.iter().enumerate() {
            let Some((_, value)) =
                table.and_then(|table| table.iter().find(|(name, _)| name.get_ref() == key))
            else {
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
