//! Ranges of values: what serde reads by these functions is within them.

use std::time::Duration;

use jiff::civil::Date;
use serde::Deserialize;
use serde::de::{Deserializer, Error};

use super::version_range::VersionRange;
use crate::terms::{Tier, is_identifier};

/// The longest time limit, one day: a larger number is a typing error.
const LONGEST_TIMEOUT_S: f64 = 86_400.0;

/// A whole number from `LEAST` to `MOST`.
pub(super) fn count<'de, D: Deserializer<'de>, const LEAST: u32, const MOST: u32>(
    from: D,
) -> Result<u32, D::Error> {
    let number = u32::deserialize(from)?;
    if (LEAST..=MOST).contains(&number) {
        return Ok(number);
    }
    let message = format!("must be a number from {LEAST} to {MOST}");
    Err(D::Error::custom(message))
}

/// Seconds above 0, up to a day.
pub(super) fn seconds<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    let seconds = f64::deserialize(from)?;
    if seconds > 0.0 && seconds <= LONGEST_TIMEOUT_S {
        return Ok(Duration::from_secs_f64(seconds));
    }
    let message = format!("must be a number of seconds above 0, up to {LONGEST_TIMEOUT_S}");
    Err(D::Error::custom(message))
}

/// Tiers of measurement below the counters.
pub(super) fn tiers<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Tier>, D::Error> {
    const NAMES: &[&str] = &["kernel-times", "static"];
    let names = Vec::<String>::deserialize(from)?;
    let tier = |name: String| {
        let mut tiers = Tier::ACCEPTABLE.into_iter();
        let tier = tiers.find(|tier| tier.as_str() == name);
        tier.ok_or_else(|| D::Error::unknown_variant(&name, NAMES))
    };
    names.into_iter().map(tier).collect()
}

/// A version, or bounds on one.
pub(super) fn version<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<VersionRange>, D::Error> {
    let range = VersionRange::parse(&String::deserialize(from)?);
    range.map(Some).map_err(|why| {
        D::Error::custom(format!(
            "{why}: write `13.0` for every version that begins with it, or bounds such as `>=2025.3, <2027`"
        ))
    })
}

/// Names of GPU models.
pub(super) fn models<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    let names = Vec::<String>::deserialize(from)?;
    if names.iter().any(|name| name.trim().is_empty()) {
        return Err(D::Error::custom(
            "a GPU model has a name: `nvidia-smi -L` prints it, such as `NVIDIA H200`; `*` stands for any text",
        ));
    }
    Ok(names)
}

/// Names of environment variables.
pub(super) fn variables<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    let names = Vec::<String>::deserialize(from)?;
    match names.iter().find(|name| !is_identifier(name)) {
        None => Ok(names),
        Some(name) => Err(D::Error::custom(format!(
            "`{name}` cannot be the name of an environment variable: each is named whole, with letters, digits and `_`, no pattern and no value; `env` of a variant sets a value"
        ))),
    }
}

/// A day, written as TOML's own or as text.
pub(super) fn day<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Date>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "a date such as 2026-12-31")]
    enum Written {
        Date(toml::value::Datetime),
        Text(String),
    }
    let text = match Written::deserialize(from)? {
        Written::Text(text) => text,
        Written::Date(date) => date.to_string(),
    };
    // A day has many spellings, and configurations are compared as text.
    let day = text.parse().ok();
    let day = day.filter(|day: &Date| day.to_string() == text);
    let message = format!("`expires` must be a day such as 2026-12-31, not `{text}`");
    day.map(Some).ok_or_else(|| D::Error::custom(message))
}
