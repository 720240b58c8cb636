//! What a report says of lines: samples by instruction, against what ncu itself prints.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use sparsek_gate::capture::ncu_rep;
use std::collections::BTreeMap;

#[test]
fn explore() {
    for name in [
        "cp_async",
        "spills",
        "baseline",
        "extra_sync",
        "uncoalesced",
        "bank_conflict",
    ] {
        let bytes = std::fs::read(format!("/work/notes/captures/{name}.ncu-rep")).unwrap();
        let t = std::time::Instant::now();
        let rec = ncu_rep::read(&bytes).unwrap();
        println!("{name} {:?}", t.elapsed());
        for launch in &rec.launches {
            let s = launch.source.as_ref().unwrap();
            println!(
                "{} {} instr, cubin {:?}",
                launch.kernel.function,
                s.instructions.len(),
                s.cubin
            );
            let mut by: BTreeMap<String, u64> = BTreeMap::new();
            for i in &s.instructions {
                let chain: Vec<String> = i
                    .lines
                    .iter()
                    .map(|l| format!("{}:{}", l.file, l.line))
                    .collect();
                *by.entry(chain.join(" < ")).or_default() += i.samples;
            }
            let mut v: Vec<_> = by.into_iter().collect();
            v.sort_by_key(|x| std::cmp::Reverse(x.1));
            for (l, n) in v.iter().take(8) {
                println!("   {n} {l}");
            }
        }
    }
}
