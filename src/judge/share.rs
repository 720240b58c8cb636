//! What part of the total each kernel has.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::profile::{Profile, TOTAL};

/// The part of one kernel in the total.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KernelShare {
    /// The kernel's function name, with its signature where several share the name.
    pub kernel: String,
    /// Its share in the reference, in percent; absent where that does not launch it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<f64>,
    /// Its share in the current profile, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<f64>,
}

impl KernelShare {
    /// `gemm 60.0 % (was 55.0 %)`.
    pub fn words(&self) -> String {
        let KernelShare { kernel, .. } = self;
        match (self.reference, self.current) {
            (Some(was), Some(is)) => format!("{kernel} {is:.1} % (was {was:.1} %)"),
            (None, Some(is)) => format!("{kernel} {is:.1} % (new)"),
            (Some(was), None) => format!("{kernel} gone (was {was:.1} %)"),
            (None, None) => kernel.clone(),
        }
    }
}

/// The share of each kernel of both sides, the largest of the current one first.
pub(super) fn shares(reference: &Profile, current: &Profile, alias: &str) -> Vec<KernelShare> {
    let was = sums(reference.shares_of_total(alias));
    let is = sums(current.shares_of_total(alias));
    let of = |list: &[(String, f64)], name: &str| {
        let mut list = list.iter();
        list.find(|(other, _)| other == name)
            .map(|(_, share)| *share)
    };
    let gone = was.iter().filter(|(name, _)| of(&is, name).is_none());
    let names = is.iter().chain(gone).map(|(name, _)| name);
    let mut shares: Vec<KernelShare> = names
        .map(|name| KernelShare {
            kernel: name.clone(),
            reference: of(&was, name),
            current: of(&is, name),
        })
        .collect();
    shares.sort_by(|a, b| {
        b.current
            .unwrap_or(-1.0)
            .total_cmp(&a.current.unwrap_or(-1.0))
    });
    shares
}

/// With one entry a name: a kernel that is launched in several shapes has several.
fn sums(shares: Vec<(String, f64)>) -> Vec<(String, f64)> {
    let mut sums: Vec<(String, f64)> = Vec::new();
    for (name, share) in shares {
        match sums.iter_mut().find(|(other, _)| *other == name) {
            Some((_, sum)) => *sum += share,
            None => sums.push((name, share)),
        }
    }
    sums
}

/// `(total): gemm 60.0 % (was 55.0 %), softmax 40.0 % (was 45.0 %)`, the first few; `None` where no
/// total was compared.
pub fn share_words(shares: &[KernelShare]) -> Option<String> {
    const MOST: usize = 12;
    let mut words: Vec<String> = shares.iter().take(MOST).map(KernelShare::words).collect();
    let more = shares.len().saturating_sub(MOST);
    if more > 0 {
        words.push(format!("and {more} further kernels"));
    }
    (!words.is_empty()).then(|| format!("{TOTAL}: {}", words.join(", ")))
}
