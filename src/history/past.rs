//! A profile of the past, as far as it can be read: in this version's form, or in an older one.

use serde_json::Value;

use crate::files::{bounded_json, most};
use crate::profile::Profile;

/// What is read of a past profile.
#[derive(Clone, Debug, PartialEq)]
pub struct PastProfile {
    /// In the order of the profile.
    pub kernels: Vec<PastKernel>,
    /// How its values differ from those of this version.
    pub note: Option<String>,
}

/// One kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct PastKernel {
    /// The name that distinguishes it from the others.
    pub name: String,
    /// By alias.
    pub series: Vec<PastSeries>,
}

/// What one metric came to.
#[derive(Clone, Debug, PartialEq)]
pub struct PastSeries {
    /// The alias.
    pub alias: String,
    /// The counter behind it.
    pub counter: String,
    /// Its unit.
    pub unit: Option<String>,
    /// The value that was judged.
    pub value: Option<f64>,
    /// See [`super::Point::noise`].
    pub noise: Option<f64>,
}

impl PastProfile {
    /// Reads the JSON form of any version.
    ///
    /// # Errors
    /// Says what is wrong with the text.
    pub fn parse(text: &[u8]) -> Result<PastProfile, String> {
        if let Ok(profile) = Profile::parse(text) {
            return Ok(PastProfile::of(&profile));
        }
        if text.len() as u64 > most::CONFIG {
            return Err("the profile cannot be read: it is too large".to_owned());
        }
        bounded_json(text).map_err(|error| format!("the profile cannot be read: {error}"))?;
        let json: Value = serde_json::from_slice(text)
            .map_err(|error| format!("the profile cannot be read: {error}"))?;
        let schema = json["schema"].as_u64().unwrap_or_default();
        let kernels = json["kernels"]
            .as_array()
            .ok_or("the profile contains no kernels")?;
        let metrics = &json["identity"]["metrics"];
        let kernels: Vec<PastKernel> = kernels
            .iter()
            .map(|kernel| PastKernel {
                name: kernel["name"].as_str().unwrap_or("?").to_owned(),
                series: kernel["metrics"]
                    .as_object()
                    .into_iter()
                    .flatten()
                    .map(|(alias, series)| loose_series(alias, series, &metrics[alias]))
                    .collect(),
            })
            .collect();
        if kernels
            .iter()
            .flat_map(|kernel| &kernel.series)
            .all(|series| series.value.is_none())
        {
            return Err(format!("profiles of schema {schema} cannot be read"));
        }
        Ok(PastProfile {
            kernels,
            note: Some(format!(
                "a profile of schema {schema}: medians of launches, without the noise of processes"
            )),
        })
    }

    fn of(profile: &Profile) -> PastProfile {
        let kernels = profile.kernels.iter().map(|kernel| {
            let series = kernel.metrics.iter().map(|(alias, series)| {
                let known = profile.identity.metrics.get(alias);
                PastSeries {
                    alias: alias.clone(),
                    counter: known.map_or_else(String::new, |known| known.counter.clone()),
                    unit: known.and_then(|known| known.unit.clone()),
                    value: series.value,
                    noise: larger(series.between, series.machines),
                }
            });
            PastKernel {
                name: profile.label(kernel).to_owned(),
                series: series.collect(),
            }
        });
        PastProfile {
            kernels: kernels.collect(),
            note: None,
        }
    }

    /// Every series with its kernel.
    pub fn series(&self) -> impl Iterator<Item = (&str, &PastSeries)> {
        self.kernels.iter().flat_map(|kernel| {
            kernel
                .series
                .iter()
                .map(|series| (kernel.name.as_str(), series))
        })
    }
}

fn loose_series(alias: &str, series: &Value, known: &Value) -> PastSeries {
    PastSeries {
        alias: alias.to_owned(),
        counter: known["counter"].as_str().unwrap_or_default().to_owned(),
        unit: known["unit"].as_str().map(str::to_owned),
        value: series["value"].as_f64().or(series["median"].as_f64()),
        // `sigma` of schema 1 is the spread of launches, not of processes.
        noise: larger(series["between"].as_f64(), series["machines"].as_f64()),
    }
}

fn larger(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.max(b)),
        (a, b) => a.or(b),
    }
}
