//! The occupancy of a compiled kernel as far as its launch is known: at the block size that is known,
//! else at each one.

use super::occupancy::{Limits, Occupancy, ResourceUse};

/// How full a multiprocessor gets with a kernel.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Residency {
    /// At the block size that is known, else at each multiple of a warp: threads and occupancy.
    at: Vec<(u32, Occupancy)>,
    /// Whether the block size and the dynamic shared memory are known.
    pub is_known: bool,
    /// Whether it takes dynamic shared memory, and nobody knows how much.
    pub is_open: bool,
}

impl Residency {
    /// From the static metrics of a kernel by name. Dynamic shared memory that is not known counts as
    /// none. Empty for a chip that is not known, and where a metric is missing.
    pub fn of(arch: &str, value: impl Fn(&str) -> Option<f64>) -> Residency {
        Residency::try_of(arch, value).unwrap_or_default()
    }

    fn try_of(arch: &str, value: impl Fn(&str) -> Option<f64>) -> Option<Residency> {
        const SIZES: std::ops::RangeInclusive<u32> = 1..=32;
        let number = |name| whole(value(name)?);
        let (threads, dynamic) = (number("threads_per_block"), number("dynamic_shared_bytes"));
        let limits = Limits::of_arch(arch)?;
        let own = number("static_shared_bytes")?.checked_add(number("driver_shared_bytes")?)?;
        let shared_bytes = own.checked_add(dynamic.unwrap_or(0))?;
        let (registers, barriers) = (number("registers")?, number("barriers")?);
        let sizes = match threads {
            Some(threads) => vec![threads],
            None => SIZES.map(|warps| warps * 32).collect(),
        };
        let block = |threads| ResourceUse {
            threads,
            registers,
            shared_bytes,
            barriers,
        };
        let at = sizes
            .into_iter()
            .map(|threads| Some((threads, limits.occupancy(block(threads))?)));
        Some(Residency {
            at: at.collect::<Option<_>>()?,
            is_known: threads.is_some() && dynamic.is_some(),
            is_open: dynamic.is_none(),
        })
    }

    /// Whether it is at least as high as another at every block size; `false` where either is empty, and
    /// where only this one has dynamic shared memory that is not known.
    pub fn is_at_least(&self, other: &Residency) -> bool {
        !self.at.is_empty()
            && (other.is_open || !self.is_open)
            && self.at.len() == other.at.len()
            && self
                .at
                .iter()
                .zip(&other.at)
                .all(|((_, own), (_, other))| own.percent >= other.percent)
    }

    /// Its percentage, or their range over the block sizes that can run: `50 %`, `25–100 %`. `None` where
    /// nothing is known.
    pub fn percent(&self) -> Option<String> {
        let all = self.at.iter().map(|(_, at)| at.percent);
        let runs = || all.clone().filter(|percent| *percent > 0.0);
        let highest = all.clone().reduce(f64::max)?;
        let lowest = runs().reduce(f64::min).unwrap_or(highest);
        let [lowest, highest] = [lowest, highest].map(|one| (one * 10.0).round() / 10.0);
        Some(match lowest == highest {
            true => format!("{highest} %"),
            false => format!("{lowest}–{highest} %"),
        })
    }

    /// What limits it, where the launch is known and something does.
    pub fn limiter(&self) -> Option<String> {
        let (_, one) = self.at_block()?;
        (one.percent < 100.0).then(|| one.limiter())
    }

    /// Threads a block and the occupancy, where the block size is known.
    pub fn at_block(&self) -> Option<(u32, Occupancy)> {
        match self.at.as_slice() {
            [one] => Some(*one),
            _ => None,
        }
    }
}

/// A whole number of 32 bits.
pub(crate) fn whole(value: f64) -> Option<u32> {
    let fits = value >= 0.0 && value <= f64::from(u32::MAX) && value.fract() == 0.0;
    fits.then_some(value as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn residency(registers: f64, shared: f64, threads: Option<f64>) -> Residency {
        Residency::of("sm_90a", |name| match name {
            "registers" => Some(registers),
            "static_shared_bytes" => Some(shared),
            "driver_shared_bytes" => Some(1024.0),
            "barriers" => Some(1.0),
            "threads_per_block" => threads,
            "dynamic_shared_bytes" => Some(0.0),
            _ => None,
        })
    }

    #[test]
    fn without_a_block_size_it_is_a_range_and_falls_where_any_size_does() {
        let [few, enough, many] = [14.0, 32.0, 40.0].map(|count| residency(count, 0.0, None));
        assert!(enough.is_at_least(&few) && !many.is_at_least(&few));
        assert_eq!(few.percent().unwrap(), "50–100 %");
        assert_eq!(many.percent().unwrap(), "39.1–75 %");
        assert!(!few.is_known && few.limiter().is_none());
        assert!(!Residency::default().is_at_least(&Residency::default()));
        let open = Residency {
            is_open: true,
            ..few.clone()
        };
        assert!(few.is_at_least(&open) && !open.is_at_least(&few));
    }

    #[test]
    fn with_a_block_size_it_names_what_limits_it() {
        let of = |registers, shared, threads| {
            let one = residency(registers, shared, Some(threads));
            format!(
                "{} {}",
                one.percent().unwrap(),
                one.limiter().unwrap_or_default()
            )
        };
        assert_eq!(of(32.0, 0.0, 256.0), "100 % ");
        assert_eq!(of(64.0, 0.0, 256.0), "50 % registers");
        assert_eq!(of(32.0, 60_000.0, 256.0), "37.5 % shared memory");
        assert_eq!(
            of(64.0, 56_320.0, 256.0),
            "50 % registers and shared memory"
        );
        assert_eq!(of(32.0, 0.0, 32.0), "50 % blocks");
        assert_eq!(of(16.0, 0.0, 768.0), "75 % threads");
    }
}
