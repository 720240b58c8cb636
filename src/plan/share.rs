//! How a plan is shared out over slices.

use crate::terms::VariantId;

/// The variants of each slice. Where `seconds` knows how long one of them took, the slices take about
/// as long as each other; else they have as many variants, and neighbours stay together. Within a
/// slice the variants keep their order.
pub fn shared_out(
    variants: &[VariantId],
    slices: u32,
    seconds: impl Fn(&VariantId) -> Option<f64>,
) -> Vec<Vec<VariantId>> {
    let count = usize::try_from(slices).unwrap_or(1).max(1);
    let known: Vec<Option<f64>> = variants
        .iter()
        .map(|variant| seconds(variant).filter(|s| s.is_finite() && *s >= 0.0))
        .collect();
    let times: Vec<f64> = known.iter().flatten().copied().collect();
    let place_of = match times.is_empty() {
        true => by_number(variants.len(), count),
        false => {
            // What never ran takes as long as the others do.
            let usual = times.iter().sum::<f64>() / times.len() as f64;
            let times: Vec<f64> = known.iter().map(|time| time.unwrap_or(usual)).collect();
            by_time(&times, count)
        }
    };
    let mut shared = vec![Vec::new(); count];
    for (variant, place) in variants.iter().zip(place_of) {
        if let Some(slice) = shared.get_mut(place) {
            slice.push(variant.clone());
        }
    }
    shared
}

/// Rows of neighbours whose lengths differ by one at most.
fn by_number(variants: usize, slices: usize) -> Vec<usize> {
    let slices = slices.min(variants);
    (0..variants).map(|at| at * slices / variants).collect()
}

/// The longest first, each into the slice with the least so far.
fn by_time(times: &[f64], slices: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..times.len()).collect();
    order.sort_by(|a, b| times[*b].total_cmp(&times[*a]).then(a.cmp(b)));
    let mut sums = vec![(0.0_f64, 0_usize); slices];
    let mut place_of = vec![0; times.len()];
    for at in order {
        let least = (0..slices).min_by(|a, b| {
            let ((a_s, a_count), (b_s, b_count)) = (sums[*a], sums[*b]);
            a_s.total_cmp(&b_s).then(a_count.cmp(&b_count))
        });
        let place = least.unwrap_or_default();
        sums[place].0 += times[at];
        sums[place].1 += 1;
        place_of[at] = place;
    }
    place_of
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn names(count: usize) -> Vec<VariantId> {
        let name = |at| VariantId::try_from(format!("s/v{at:03}"));
        (0..count).map(|at| name(at).unwrap()).collect()
    }

    #[test]
    fn without_times_the_slices_have_as_many_variants() {
        for (variants, slices) in [(64, 8), (7, 3), (2, 5), (1, 1), (0, 4), (1000, 7)] {
            let all = names(variants);
            let shared = shared_out(&all, slices, |_| None);
            assert_eq!(shared.len(), slices as usize);
            let counts: Vec<usize> = shared.iter().map(Vec::len).collect();
            let (least, most) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
            assert!(most - least <= 1, "{variants} in {slices}: {counts:?}");
            assert_eq!(shared.concat(), all);
        }
    }

    #[test]
    fn with_times_the_slices_take_as_long() {
        let all = names(64);
        let seconds: BTreeMap<VariantId, f64> = all
            .iter()
            .enumerate()
            .map(|(at, id)| (id.clone(), 10.0 + (at % 9) as f64))
            .collect();
        // One of them never ran.
        let time = |id: &VariantId| seconds.get(id).copied().filter(|_| id.variant != "v005");
        let shared = shared_out(&all, 8, time);
        let sums = shared
            .iter()
            .map(|slice| slice.iter().map(|id| seconds[id]).sum::<f64>());
        let sums: Vec<f64> = sums.collect();
        let mean = sums.iter().sum::<f64>() / 8.0;
        assert!(
            sums.iter().all(|sum| (sum / mean - 1.0).abs() < 0.1),
            "{sums:?}"
        );
        let mut found = shared.concat();
        found.sort();
        assert_eq!(found, all);
        // Times of zero, and none that is no number, put every variant somewhere.
        for odd in [0.0, f64::NAN, -1.0, f64::INFINITY] {
            let shared = shared_out(&all, 8, |_| Some(odd));
            assert!(shared.iter().all(|slice| slice.len() == 8), "{odd}");
        }
    }
}
