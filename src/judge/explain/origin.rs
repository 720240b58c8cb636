//! What changed between the builds of two sides: files, flags, the compiler.

use std::collections::BTreeSet;

use crate::finding::Finding;
use crate::profile::Provenance;

/// The most files or flags that are named.
const NAMED: usize = 3;

/// What changed, in words; `None` where nothing is known to.
pub(crate) fn changed_inputs(was: &Provenance, is: &Provenance) -> Option<String> {
    let mut parts = Vec::new();
    if !was.sources.is_empty() && !is.sources.is_empty() {
        let changed = is
            .sources
            .iter()
            .filter(|(path, hash)| was.sources.get(*path) != Some(hash));
        let gone = was
            .sources
            .keys()
            .filter(|path| !is.sources.contains_key(*path));
        let files: Vec<String> = changed
            .map(|(path, _)| path)
            .chain(gone)
            .map(|path| format!("`{path}`"))
            .collect();
        parts.extend(named(&files));
    }
    let flags = |argv: &[String], other: &[String], sign: char| -> Vec<String> {
        let own = argv.iter().skip(1);
        own.filter(|flag| !other.contains(flag) && flag.starts_with('-'))
            .map(|flag| format!("{sign}`{flag}`"))
            .collect()
    };
    let mut changed = Vec::new();
    if !was.build_argv.is_empty() && !is.build_argv.is_empty() {
        changed.extend(flags(&is.build_argv, &was.build_argv, '+'));
        changed.extend(flags(&was.build_argv, &is.build_argv, '−'));
    }
    parts.extend(named(&changed).map(|flags| format!("flags {flags}")));
    if let (Some(before), Some(now)) = (&was.compiler, &is.compiler)
        && before != now
    {
        parts.push(format!("nvcc {before} → {now}"));
    }
    (!parts.is_empty()).then(|| parts.join(", "))
}

fn named(all: &[String]) -> Option<String> {
    let shown = all.get(..NAMED).unwrap_or(all).join(", ");
    match all.len().saturating_sub(NAMED) {
        _ if all.is_empty() => None,
        0 => Some(shown),
        more => Some(format!("{shown} and {more} more")),
    }
}

/// States in findings that a kernel got worse what changed. The first one of each kernel says it.
pub(crate) fn state_origin(findings: &mut [Finding], was: &Provenance, is: &Provenance) {
    let Some(origin) = changed_inputs(was, is) else {
        return;
    };
    let mut kernels = BTreeSet::new();
    for finding in findings.iter_mut().filter(|finding| finding.says_worse()) {
        if kernels.insert((finding.severity, finding.kernel.clone())) {
            finding.message.push_str(&format!("; changed: {origin}"));
        }
        finding.values.origin = Some(origin.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_files_flags_and_compilers_are_named() {
        let side = |files: &[(&str, &str)], argv: &str, compiler: &str| Provenance {
            sources: files
                .iter()
                .map(|(path, hash)| ((*path).to_owned(), (*hash).to_owned()))
                .collect(),
            build_argv: argv.split(' ').map(str::to_owned).collect(),
            compiler: Some(compiler.to_owned()),
            ..Provenance::default()
        };
        let was = side(
            &[("a.cu", "1"), ("tile.cuh", "1")],
            "nvcc -O3 a.cu",
            "V13.0.88",
        );
        let changed = |is: &Provenance| changed_inputs(&was, is);
        assert_eq!(changed(&was), None);
        let header = side(
            &[("a.cu", "1"), ("tile.cuh", "2")],
            "nvcc -O3 a.cu",
            "V13.0.88",
        );
        assert_eq!(changed(&header).unwrap(), "`tile.cuh`");
        let other = side(&[("b.cu", "1")], "nvcc -O3 --use_fast_math b.cu", "V13.2.0");
        assert_eq!(
            changed(&other).unwrap(),
            "`b.cu`, `a.cu`, `tile.cuh`, flags +`--use_fast_math`, nvcc V13.0.88 → V13.2.0"
        );
        // Of an imported side nothing is known.
        assert_eq!(changed(&Provenance::default()), None);
    }
}
