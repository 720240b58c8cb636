//! What part of the total each kernel has.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::kernels::Pairing;
use crate::judge::compare::metric::Comparison;
use crate::profile::{KernelProfile, Profile, TOTAL};
use crate::terms::first;

/// The part of one kernel, at one grid and block, in the total.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KernelShare {
    /// The kernel's function name, with its signature where several share the name.
    pub kernel: String,
    /// Blocks in x, y, z.
    #[serde(default)]
    pub grid: [u64; 3],
    /// Threads a block in x, y, z.
    #[serde(default)]
    pub block: [u64; 3],
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

    /// The larger of its shares.
    pub fn largest(&self) -> f64 {
        let [was, is] = [self.reference, self.current].map(|share| share.unwrap_or(0.0));
        was.max(is)
    }

    /// Whether a comparison is about this kernel.
    pub fn is_of(&self, one: &Comparison) -> bool {
        (&self.kernel, self.grid, self.block) == (&one.kernel, one.grid, one.block)
    }
}

/// The share of each kernel of both sides in the total of a duration, the largest of the current one first.
pub(in crate::judge) fn shares(pairing: &Pairing<'_>, alias: &str) -> Vec<KernelShare> {
    let profiles = [pairing.reference, pairing.current];
    let [was, is] = profiles.map(|profile| (profile, profile.shares_of_total(alias)));
    let of = |(profile, shares): &(&Profile, Vec<f64>), kernel: &KernelProfile| {
        let mut kernels = profile.kernels.iter();
        let at = kernels.position(|one| std::ptr::eq(one, kernel))?;
        shares.get(at).copied()
    };
    let named = |profile: &Profile, kernel: &KernelProfile| KernelShare {
        kernel: profile.label(kernel).to_owned(),
        grid: kernel.grid,
        block: kernel.block,
        ..KernelShare::default()
    };
    let pairs = pairing.pairs().map(|pair| KernelShare {
        reference: of(&was, pair.reference),
        current: of(&is, pair.current),
        ..named(is.0, pair.current)
    });
    let gone = pairing.gone.iter().map(|kernel| KernelShare {
        reference: of(&was, kernel),
        ..named(was.0, kernel)
    });
    let new = pairing.new.iter().map(|kernel| KernelShare {
        current: of(&is, kernel),
        ..named(is.0, kernel)
    });
    let mut shares: Vec<KernelShare> = pairs.chain(gone).chain(new).collect();
    sort(&mut shares);
    shares
}

fn sort(shares: &mut [KernelShare]) {
    let current = |share: &KernelShare| share.current.unwrap_or(-1.0);
    shares.sort_by(|a, b| current(b).total_cmp(&current(a)));
}

/// `(total): gemm 60.0 % (was 55.0 %), softmax 40.0 % (was 45.0 %)`, the first few, each with the shares
/// of all of its shapes; `None` where no total was compared.
pub fn share_words(shares: &[KernelShare]) -> Option<String> {
    const MOST: usize = 12;
    let mut sums: Vec<KernelShare> = Vec::new();
    for share in shares {
        let Some(sum) = sums.iter_mut().find(|sum| sum.kernel == share.kernel) else {
            sums.push(share.clone());
            continue;
        };
        let add = |one: Option<f64>, other: Option<f64>| match (one, other) {
            (Some(one), Some(other)) => Some(one + other),
            (one, other) => one.or(other),
        };
        sum.reference = add(sum.reference, share.reference);
        sum.current = add(sum.current, share.current);
    }
    sort(&mut sums);
    let words = first(sums.iter().map(KernelShare::words), MOST);
    (!words.is_empty()).then(|| format!("{TOTAL}: {words}"))
}
