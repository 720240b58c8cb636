//! What changed between the builds of two sides: files, flags, the compiler.

use std::collections::BTreeSet;

use crate::comparable::{NAMED, changed_flags};
use crate::finding::Finding;
use crate::profile::Profile;
use crate::terms::first;

/// What changed, in words; `None` where nothing is known to.
fn changed_inputs(before: &Profile, now: &Profile) -> Option<String> {
    let (was, is) = (&before.provenance, &now.provenance);
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
            // What was named outside of a project is what is compared.
            .filter(|path| !path.starts_with('/'))
            .map(|path| format!("`{path}`"))
            .collect();
        parts.extend(named(&files));
    }
    if !was.build_argv.is_empty() && !is.build_argv.is_empty() {
        let changed = changed_flags(&was.build_argv, &is.build_argv);
        parts.extend(named(&changed).map(|flags| format!("flags {flags}")));
    }
    let compilers = (&before.identity.compiler, &now.identity.compiler);
    if let (Some(before), Some(now)) = compilers
        && before != now
    {
        parts.push(format!("nvcc {before} → {now}"));
    }
    (!parts.is_empty()).then(|| parts.join(", "))
}

fn named(all: &[String]) -> Option<String> {
    (!all.is_empty()).then(|| first(all.iter().cloned(), NAMED))
}

/// States in findings that a kernel got worse what changed. The first one of each kernel says it.
pub(crate) fn state_origin(findings: &mut [Finding], was: &Profile, is: &Profile) {
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

    fn side(files: &[(&str, &str)], argv: &str, compiler: &str) -> Profile {
        let recorded =
            include_str!("../../../baselines/sm-90a+static/bsr_gemm/cp_async.profile.json");
        let mut profile = Profile::parse(recorded.as_bytes()).unwrap();
        let text = |text: &str| text.to_owned();
        let files = files.iter().map(|(path, hash)| (text(path), text(hash)));
        profile.provenance.sources = files.collect();
        profile.provenance.build_argv = argv.split_whitespace().map(text).collect();
        profile.identity.compiler = Some(compiler.to_owned());
        profile
    }

    #[test]
    fn changed_files_flags_and_compilers_are_named() {
        let (argv, version) = ("nvcc -O3 a.cu", "V13.0.88");
        let was = side(&[("a.cu", "1"), ("tile.cuh", "1")], argv, version);
        let changed = |is: &Profile| changed_inputs(&was, is);
        assert_eq!(changed(&was), None);
        let header = side(&[("a.cu", "1"), ("tile.cuh", "2")], argv, version);
        assert_eq!(changed(&header).unwrap(), "`tile.cuh`");
        let other = side(&[("b.cu", "1")], "nvcc -O3 --use_fast_math b.cu", "V13.2.0");
        let expected =
            "`b.cu`, `a.cu`, `tile.cuh`, flags +`--use_fast_math`, nvcc V13.0.88 → V13.2.0";
        assert_eq!(changed(&other).unwrap(), expected);
        // Of an imported side nothing is known.
        assert_eq!(changed(&side(&[], "", version)), None);
    }
}
