//! `tail` and `tail_against` of `[metric.NAME]`.

use super::file::File;
use crate::config::error::ConfigError;
use crate::config::model::{Metric, TailTolerances};
use crate::config::raw::{RawMetric, RawTolerance, RawTolerances};
use crate::metric::{Direction, Level, Role, Tolerance};

impl File<'_> {
    /// How much worse the slowest launches of a metric may be, as its table says.
    pub(super) fn tail(
        &self,
        raw: &RawMetric,
        metric: &Metric,
    ) -> Result<Option<TailTolerances>, ConfigError> {
        let at = |key| ["metric", &metric.alias, key];
        let tail = self.tail_tolerance(&at("tail"), raw.tail.as_ref())?;
        let against = self.tail_tolerance(&at("tail_against"), raw.tail_against.as_ref())?;
        let Some(tolerance) = tail else {
            return match against {
                Some(_) => Err(self.without_tail(&at("tail_against"))),
                None => Ok(None),
            };
        };
        self.has_tail(&at("tail"), metric)?;
        let against = against.unwrap_or(tolerance);
        Ok(Some(TailTolerances { tolerance, against }))
    }

    /// The same as a table of some kernels, `own`, changes it.
    pub(super) fn tail_on(
        &self,
        at: &[&str; 4],
        raw: &RawMetric,
        own: &RawTolerances,
        metric: &Metric,
    ) -> Result<Option<TailTolerances>, ConfigError> {
        let [table, alias, on, name] = *at;
        let at = |key| [table, alias, on, name, key];
        let tail = self.tail_tolerance(&at("tail"), own.tail.as_ref())?;
        let own_against = own.tail_against.as_ref();
        let against = self.tail_tolerance(&at("tail_against"), own_against)?;
        let Some(tolerance) = tail.or(metric.tail.map(|tail| tail.tolerance)) else {
            return match against {
                Some(_) => Err(self.without_tail(&at("tail_against"))),
                None => Ok(None),
            };
        };
        self.has_tail(&at("tail"), metric)?;
        let inherited = match raw.tail_against {
            Some(_) => None,
            None => tail,
        };
        let outer = metric.tail.map(|tail| tail.against);
        let against = against.or(inherited).or(outer).unwrap_or(tolerance);
        Ok(Some(TailTolerances { tolerance, against }))
    }

    fn tail_tolerance(
        &self,
        at: &[&str],
        raw: Option<&RawTolerance>,
    ) -> Result<Option<Tolerance>, ConfigError> {
        raw.map(|raw| self.tolerance(at, raw)).transpose()
    }

    fn without_tail(&self, at: &[&str]) -> ConfigError {
        self.error(at, "`tail_against` has no effect without `tail`")
    }

    /// Only of a duration it is known which launches are the bad ones.
    fn has_tail(&self, at: &[&str], metric: &Metric) -> Result<(), ConfigError> {
        let alias = &metric.alias;
        let why = if metric.role() != Some(Role::Duration) || metric.exact {
            format!("only a duration that is judged by a tolerance has a tail; `{alias}` is none")
        } else if metric.level == Level::Record {
            format!("`tail` has no effect: `{alias}` is only recorded; set its `level`")
        } else if metric.direction != Direction::Lower {
            "a tail is the slowest launches, so it needs `direction = \"lower\"`".to_owned()
        } else {
            return Ok(());
        };
        Err(self.error(at, why))
    }
}
