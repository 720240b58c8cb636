//! Tolerances as written.

use std::fmt::{self, Formatter};

use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserializer, MapAccess, Visitor};

use crate::metric::Tolerance;

/// The tolerances of a metric: one for both comparisons, or one for each.
#[derive(Debug, JsonSchema)]
#[schemars(untagged, extend("x-stricter" = "tolerance"))]
pub(super) enum RawTolerances {
    /// The same for both.
    Both(RawTolerance),
    /// By what it is compared with.
    Each(RawEach),
}

/// One tolerance for each comparison. Without it the metric is recorded there, and not judged.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "tolerances")]
pub(super) struct RawEach {
    /// Against a locked baseline.
    pub stored: Option<RawTolerance>,
    /// Side by side: `check --against`.
    pub against: Option<RawTolerance>,
}

/// How much worse is no regression: `4 %` of the value, or `1.5` in the counter's unit.
#[derive(Clone, Copy, Debug, JsonSchema)]
#[schemars(rename = "tolerance")]
pub(super) struct RawTolerance(
    #[schemars(with = "String", regex(pattern = r"^[0-9]+(\.[0-9]+)?( ?%)?$"))] pub Tolerance,
);

impl<'de> Deserialize<'de> for RawTolerances {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<RawTolerances, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = RawTolerances;

            fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "a text, such as `\"4 %\"` or `\"1.5\"`, or a table of `stored` and `against`",
                )
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<RawTolerances, E> {
                RawTolerance::parse(text).map(RawTolerances::Both)
            }

            fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<RawTolerances, M::Error> {
                RawEach::deserialize(MapAccessDeserializer::new(map)).map(RawTolerances::Each)
            }
        }
        from.deserialize_any(Either)
    }
}

impl RawTolerance {
    fn parse<E: de::Error>(text: &str) -> Result<RawTolerance, E> {
        let (number, of): (&str, fn(f64) -> Tolerance) = match text.strip_suffix('%') {
            Some(percent) => (percent.trim_end(), Tolerance::RelativePercent),
            None => (text, Tolerance::Absolute),
        };
        let size = number.parse::<f64>().ok().filter(|size| size.is_finite());
        let size = size.filter(|size| *size >= 0.0 && (number == text || *size < 100.0));
        let size = size.ok_or_else(|| {
            E::custom(format!(
                "{text:?} is no tolerance: write `\"4 %\"` of the value, below 100 %, or `\"1.5\"` in the metric's unit, ns of a duration"
            ))
        })?;
        Ok(RawTolerance(of(size)))
    }
}

impl<'de> Deserialize<'de> for RawTolerance {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<RawTolerance, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = RawTolerance;

            fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
                f.write_str("a text, such as `\"4 %\"` or `\"1.5\"`")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<RawTolerance, E> {
                RawTolerance::parse(text)
            }
        }
        from.deserialize_str(Text)
    }
}

/// One tolerance, where a key may be left out.
pub(super) fn tolerance<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Tolerance>, D::Error> {
    RawTolerance::deserialize(from).map(|tolerance| Some(tolerance.0))
}
