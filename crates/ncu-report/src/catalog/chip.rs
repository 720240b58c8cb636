//! GPU chips.

use super::table::{Base, bases, table};

/// A chip whose metrics are known: Volta to Rubin. Chips with equal metrics are one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chip(u8);

/// Each compute capability and a chip that has it, in the words of `ncu --query-metrics --chip`. The
/// GeForce 16 series is 7.5 too: it has the metrics of TU102 without those of tensor cores.
const OF_COMPUTE_CAPABILITY: &[((u64, u64), &str)] = &[
    ((7, 0), "gv100"),
    ((7, 2), "gv11b"),
    ((7, 5), "tu102"),
    ((8, 0), "ga100"),
    ((8, 6), "ga102"),
    ((8, 7), "ga10b"),
    ((8, 9), "ad102"),
    ((9, 0), "gh100"),
    ((10, 0), "gb100"),
    // What CUDA before 13 called Thor.
    ((10, 1), "gb10b"),
    ((10, 3), "gb110"),
    ((11, 0), "gb10b"),
    ((12, 0), "gb202"),
    ((12, 1), "gb20b"),
];

impl Chip {
    /// The chip with this compute capability; `None` where its metrics are not known.
    ///
    /// ```
    /// use ncu_report::Chip;
    ///
    /// assert_eq!(Chip::from_compute_capability(8, 0), Chip::named("ga100"));
    /// assert_eq!(Chip::from_compute_capability(6, 1), None);
    /// ```
    pub fn from_compute_capability(major: u64, minor: u64) -> Option<Chip> {
        let mut known = OF_COMPUTE_CAPABILITY.iter();
        let (_, name) = known.find(|(capability, _)| *capability == (major, minor))?;
        Chip::named(name)
    }

    /// The chip that ncu gives this name, such as `ga104`.
    pub fn named(name: &str) -> Option<Chip> {
        let is_named = |chip: &Chip| {
            let names = table().chips(chip.0).unwrap_or_default();
            names.split(' ').any(|known| known == name)
        };
        Chip::all().find(is_named)
    }

    /// All chips whose metrics are known.
    pub fn all() -> impl Iterator<Item = Chip> {
        (0..).map_while(|index| table().chips(index).map(|_| Chip(index)))
    }

    /// The base metrics of the chip, without suffixes: `dram__bytes_read`.
    pub fn metrics(self) -> impl Iterator<Item = &'static str> {
        self.bases().map(|(name, _)| name)
    }

    /// The base metrics with their type and unit.
    pub(super) fn bases(self) -> impl Iterator<Item = (&'static str, Base)> {
        bases(self.0)
    }

    /// The base metric of this name, without a suffix.
    pub(super) fn base(self, name: &str) -> Option<Base> {
        let row = table().find(name).find(|row| row.is_of(self.0))?;
        row.base()
    }

    /// The base metric as the chip has it, or else as all others have it: `None` where these differ.
    pub(super) fn any_base(chip: Option<Chip>, name: &str) -> Option<Base> {
        let (mut other, mut differ) = (None, false);
        for row in table().find(name) {
            if chip.is_some_and(|chip| row.is_of(chip.0)) {
                return row.base();
            }
            if let Some(base) = row.base() {
                differ |= other.replace(base).is_some();
            }
        }
        other.filter(|_| !differ)
    }

    /// ncu's name of the chip, of several with equal metrics the first: `ga102`.
    pub fn name(self) -> &'static str {
        let names = table().chips(self.0).unwrap_or_default();
        names.split(' ').next().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_compute_capability_has_a_chip_of_its_own() {
        for ((major, minor), name) in OF_COMPUTE_CAPABILITY {
            let chip = Chip::from_compute_capability(*major, *minor).unwrap();
            assert_eq!(chip.name(), *name);
        }
        assert_eq!(Chip::named("gb206").unwrap().name(), "gb202");
        for unknown in ["", "gb", "ga102 ga103", "gh200"] {
            assert_eq!(Chip::named(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn a_metric_whose_unit_differs_between_chips_has_that_of_the_chip() {
        let unit = |chip: Option<Chip>| {
            Chip::any_base(chip, "gcc__xbar2gcc_sectors").map(|base| base.unit)
        };
        assert_eq!(unit(Chip::named("ga100")), Some("sector"));
        assert_eq!(unit(Chip::named("gh100")), Some(""));
        assert_eq!(unit(None), None);
    }

    #[test]
    fn a_chip_has_its_own_metrics() {
        assert_eq!(Chip::named("gh100").unwrap().metrics().count(), 3729);
        assert_eq!(Chip::named("gv100").unwrap().metrics().count(), 1716);
    }
}
