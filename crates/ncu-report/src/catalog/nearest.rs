//! "Did you mean": the metric of a chip with the most similar name.

use super::chip::Chip;
use super::suffix::{ROLLUPS, has_suffix, parts, split};
use super::table::{Kind, ncu_own};

/// The full name of the chip's metric that is most similar to `metric`, if one is similar.
///
/// ```
/// use ncu_report::{Chip, nearest};
///
/// let h100 = Chip::named("gh100").unwrap();
/// assert_eq!(nearest(h100, "dram__bytes_raed.sum").unwrap(), "dram__bytes_read.sum");
/// ```
pub fn nearest(chip: Chip, metric: &str) -> Option<String> {
    let (wanted, suffix) = split(metric);
    // The comparison takes quadratic time.
    if wanted.len() > 200 || suffix.len() > 200 {
        return None;
    }
    if let Some(base) = chip.base(wanted) {
        return Some(format!(
            "{wanted}{}",
            nearest_suffix(base.kind, base.unit, suffix)
        ));
    }
    let limit = (wanted.len() / 4).max(2);
    let of_chip = chip
        .bases()
        .map(|(name, base)| (distance(wanted, name, limit), name, Some(base)));
    let own = ncu_own().map(|name| (distance(metric, name, limit), name, None));
    let (distance, name, base) = of_chip.chain(own).min_by_key(|(distance, ..)| *distance)?;
    if distance > limit {
        return None;
    }
    Some(match base {
        Some(base) => format!("{name}{}", nearest_suffix(base.kind, base.unit, suffix)),
        None => name.to_owned(),
    })
}

/// Edit distance, where the lengths do not show that it is above `limit`.
fn distance(wanted: &str, name: &str, limit: usize) -> usize {
    match wanted.len().abs_diff(name.len()) > limit {
        true => usize::MAX,
        false => strsim::osa_distance(wanted, name),
    }
}

/// The most similar suffix that metrics of this type have.
fn nearest_suffix(kind: Kind, unit: &str, wanted: &str) -> String {
    if has_suffix(kind, wanted) {
        return wanted.to_owned();
    }
    if wanted.is_empty() {
        return match kind {
            Kind::Counter => ".sum",
            Kind::Ratio if unit.is_empty() => ".pct",
            Kind::Ratio => ".ratio",
            Kind::Throughput => ".avg.pct_of_peak_sustained_elapsed",
        }
        .to_owned();
    }
    if kind == Kind::Throughput && ROLLUPS.contains(&wanted) {
        return format!("{wanted}.pct_of_peak_sustained_elapsed");
    }
    if kind == Kind::Counter && wanted == ".total" {
        return ".sum".to_owned();
    }
    let [rollups, rests] = parts(kind);
    let suffixes = rollups
        .iter()
        .flat_map(|rollup| rests.iter().map(move |rest| format!("{rollup}{rest}")));
    suffixes
        .min_by_key(|suffix| strsim::osa_distance(suffix, wanted))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistyped_name_finds_its_neighbour() {
        let table = "
dram__bytes_raed.sum | dram__bytes_read.sum
dram__bytes_read | dram__bytes_read.sum
dram__bytes_read.smu | dram__bytes_read.sum
dram__throughput.max | dram__throughput.max.pct_of_peak_sustained_elapsed
dram__throughput | dram__throughput.avg.pct_of_peak_sustained_elapsed
sm__cycle_active.avg.pct_of_peak_sustained_elapsed | sm__cycles_active.avg.pct_of_peak_sustained_elapsed
launch__register_per_thread | launch__registers_per_thread
l1tex__t_sector_miss_rate.pct | l1tex__t_sector_hit_rate.pct
";
        for row in table.trim().lines() {
            let (wrong, right) = row.split_once(" |").unwrap();
            let right = right.trim();
            let found = nearest(Chip::named("gh100").unwrap(), wrong);
            assert_eq!(found.as_deref(), Some(right), "{wrong}");
        }
    }

    #[test]
    fn a_name_like_no_other_has_no_neighbour() {
        for wrong in ["", "x", "quite something else", &"a".repeat(500)] {
            assert_eq!(
                nearest(Chip::named("gh100").unwrap(), wrong),
                None,
                "{wrong}"
            );
        }
    }
}
