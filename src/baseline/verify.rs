//! Whether a stored baseline is what was locked.

use std::cell::LazyCell;

use super::immutable::immutable_changes;
use super::lock::{Entry, Lock};
use super::store::Stored;
use crate::config::{Config, Variant};
use crate::disk;
use crate::files::LFS_POINTER;
use crate::finding::{Code, Finding};
use crate::git;
use crate::hash::sha256_hex;
use crate::profile::{Profile, Series, norm_text};
use crate::terms::{Tier, VariantId};

/// A stored baseline that is unchanged since it was locked.
#[derive(Clone, Debug)]
pub struct Trusted {
    /// The locked profile.
    pub profile: Profile,
    /// Its lock.
    pub lock: Lock,
}

/// Verifies a stored baseline against its lock, and an immutable variant's files against the lock.
/// Every contradiction is a finding. The profile is returned only if the locked numbers are
/// unchanged.
pub fn verify_stored(
    config: &Config,
    variant: &Variant,
    stored: &Stored,
) -> (Option<Trusted>, Vec<Finding>) {
    let (trusted, mut findings) = verify_files(config, stored);
    if let Some(Ok(lock)) = stored.lock.as_deref().map(Lock::parse) {
        let tier = Tier::of_folder(&stored.gpu);
        let changes = immutable_changes(config, variant, &lock, tier).into_iter();
        findings.extend(changes.map(|mut change| {
            change.message += &format!(" (lock of {})", stored.gpu);
            change
        }));
    }
    (trusted, findings)
}

/// Verifies the files of a stored baseline against its lock.
/// The configuration need not have the variant.
pub fn verify_files(config: &Config, stored: &Stored) -> (Option<Trusted>, Vec<Finding>) {
    let id = &stored.variant;
    let mut check = Check {
        stored,
        findings: Vec::new(),
    };
    let files = check.files();
    let is_sound = check.findings.is_empty();
    if let Some((message, next)) = (!is_sound).then(|| converted(config, stored)).flatten() {
        return (None, vec![Finding::deny(Code::Tampered, id, message, next)]);
    }
    let mut findings = check.findings;
    if !findings.is_empty() {
        let next = repair(config, stored);
        if let Some((name, line)) = conflict(stored) {
            let message = format!("git left a conflict of a merge in line {line} of {name}");
            findings = vec![Finding::of(Code::Tampered, id, message)];
        }
        findings
            .iter_mut()
            .for_each(|one| one.next.clone_from(&next));
    }
    let Some((lock, profile)) = files else {
        return (None, findings);
    };
    let unchanged = !findings.iter().any(Finding::denies);
    let trusted = Trusted { profile, lock };
    (unchanged.then_some(trusted), findings)
}

/// The first file of a baseline in which a merge left a conflict, and its line.
fn conflict(stored: &Stored) -> Option<(String, usize)> {
    let mut files = stored.files().into_iter();
    files.find_map(|(ending, text)| Some((stored.name(ending), git::conflict(text?)?)))
}

/// The folder of the baselines for a command of the shell: as seen from here, where it is below.
fn shown_baselines(config: &Config) -> String {
    let mut roots = [&config.root, &config.checkout].into_iter();
    let below = roots.find_map(|root| config.baselines.strip_prefix(root).ok());
    let whole = below.map(|below| disk::leads_to(&config.checkout).join(below));
    let whole = whole.as_deref().unwrap_or(&config.baselines);
    let here = std::env::current_dir().unwrap_or_default();
    whole
        .strip_prefix(here)
        .unwrap_or(whole)
        .display()
        .to_string()
}

/// What gives the command that removes a baseline from folders of GPUs. Git is asked once, and only where
/// there is one to remove.
pub fn removal(config: &Config) -> impl Fn(&str, &VariantId) -> String {
    let tracked = LazyCell::new(|| git::tracked(&config.baselines, ".").ok());
    move |gpus, id| {
        let files = format!("{}/{gpus}/{id}.*", shown_baselines(config));
        let lock = format!("/{id}.lock.toml");
        let tracked = tracked.as_ref();
        match tracked.is_some_and(|all| !all.keys().any(|path| path.ends_with(&lock))) {
            true => format!("rm {files}"),
            false => format!("git rm '{files}'"),
        }
    }
}

/// What something converted the files of a baseline to, and the commands that undo it.
fn converted(config: &Config, stored: &Stored) -> Option<(String, String)> {
    let (id, all) = (&stored.variant, shown_baselines(config));
    let is_pointer = |bytes: &[u8]| bytes.starts_with(LFS_POINTER);
    let mut files = stored.files().into_iter();
    if let Some((ending, _)) = files.find(|(_, bytes)| bytes.is_some_and(is_pointer)) {
        let next = format!(
            "git lfs pull && echo '{all}/** !filter !diff !merge -text' >>.gitattributes && git add .gitattributes && git add --renormalize {all}, and commit"
        );
        let what = "is a pointer of Git LFS to the file, which git must have itself";
        return Some((format!("{} {what}", stored.name(ending)), next));
    }
    let folder = format!("{all}/{}/{}", stored.gpu, id.suite);
    is_locked_with_other_line_ends(stored).then(|| (
        format!("the files of {}/{id} have lines that end with CRLF, and were locked with LF: git or an editor converted them", stored.gpu),
        format!("echo '{all}/** -text' >>.gitattributes && sed -i 's/\\r$//' {folder}/* && git add .gitattributes {folder}, and commit"),
    ))
}

/// What to do where a stored baseline is not what was locked.
pub(super) fn repair(config: &Config, stored: &Stored) -> String {
    let (id, baselines) = (&stored.variant, shown_baselines(config));
    let files = |folder: &str, id: &VariantId| format!("{baselines}/{folder}/{id}.*");
    let here = files(&stored.gpu, id);
    let lock = Tier::of_folder(&stored.gpu).lock_command(id);
    if conflict(stored).is_some() {
        let commit = |name: &str| git::commit_of(&config.checkout, name);
        // On the target branch a merge brings the other one.
        let is_of_target = |merged: &str| {
            let targets = [
                "refs/remotes/origin/HEAD", "refs/heads/main", "refs/heads/master",
            ];
            let mut targets = targets.into_iter().filter_map(commit);
            targets.any(|target| git::contains(&config.checkout, &target, merged))
        };
        let from = match commit("MERGE_HEAD") {
            Some(merged) if is_of_target(&merged) => "MERGE_HEAD",
            None if commit("REBASE_HEAD").is_none() => "COMMIT",
            _ => "HEAD",
        };
        return format!(
            "keep all its files as the target branch has them, or else the last commit before (git log -- '{here}'): git checkout {from} -- '{here}'; then lock what the merged code gives: {lock}"
        );
    }
    let home = home(stored);
    // Its variant was renamed, and the lock with it.
    if let Some(home) = &home
        && home.variant != *id
        && config.variant(&home.variant).is_none()
    {
        return format!(
            "these are the files of {}, and a lock does not move to another name: remove them, rm {here}, and lock this variant: {lock}",
            home.variant
        );
    }
    // Files with the name of another variant were copied.
    if let Some(home) = home.as_ref().filter(|it| it.variant.variant == id.variant) {
        let home = format!("{baselines}/{}/{}", home.gpu, home.variant.suite);
        return format!("move its files back: mkdir -p {home} && mv {here} {home}/");
    }
    let lock_file = stored.name("lock.toml");
    let committed = git::objects_at(&config.checkout, "HEAD");
    let is_new = |_: &Stored| {
        let mut names = committed.iter().flat_map(|it| it.keys());
        committed.is_ok() && !names.any(|path| path.ends_with(&lock_file))
    };
    if let Some(home) = home.filter(is_new) {
        let (of, name) = (&home.variant, &id.variant);
        return match disk::is_there(config.baselines.join(home.name("lock.toml"))) {
            true => format!(
                "these are the files of {of}: remove the copy, rm {here}, and lock this variant: {lock}"
            ),
            false => format!(
                "these are the files of {of}, and a lock does not move to another name: for it in {here}; do mv \"$it\" {baselines}/{}/{of}.\"${{it#*/{name}.}}\"; done; then lock this variant, {lock}, and remove {} if that one is gone",
                home.gpu,
                files(&home.gpu, of)
            ),
        };
    }
    let locked = stored.lock.as_deref().map(Lock::parse);
    if let Some(Err(why)) = &locked
        && why.contains("this version reads")
    {
        return "update sparsek-gate: another version wrote the lock".to_owned();
    }
    let in_order =
        |lock: Result<Lock, String>| lock.is_ok_and(|lock| lock.contradictions().is_empty());
    let again = match locked.is_some_and(in_order) {
        true => format!("or lock again: {lock}"),
        false => format!("only where git has none, begin a new ledger: rm {here} && {lock}"),
    };
    let begins = stored.name("");
    let of_it = |path: &str| path.contains(&begins);
    let from = match git::changed_since(&config.checkout, "HEAD", of_it) {
        // What is committed is what is wrong.
        Ok(changed) if !changed.iter().any(|path| of_it(path)) => {
            git::one_before_last(&config.checkout, &format!(":(glob)**/{begins}*"))
        }
        _ => Some("HEAD".to_owned()),
    };
    let from = from.unwrap_or_else(|| "COMMIT".to_owned());
    format!(
        "restore its files: git checkout {from} -- '{here}' (`git log -- '{here}'` lists the commits that changed them); {again}"
    )
}

/// Where a baseline is as it was locked, if it was moved.
fn home(stored: &Stored) -> Option<Stored> {
    let home = Stored {
        gpu: Profile::parse(stored.profile.as_deref()?)
            .ok()?
            .identity
            .folder(),
        variant: Lock::parse(stored.lock.as_deref()?).ok()?.variant,
        ..stored.clone()
    };
    is_as_locked(&home).then_some(home)
}

/// Whether the files are those that were locked at their place.
fn is_as_locked(stored: &Stored) -> bool {
    let mut check = Check {
        stored,
        findings: Vec::new(),
    };
    check.files().is_some() && check.findings.is_empty()
}

/// Whether only the line ends of the files differ from what was locked.
fn is_locked_with_other_line_ends(stored: &Stored) -> bool {
    let plain = |bytes: &Vec<u8>| {
        let text = String::from_utf8_lossy(bytes);
        text.replace("\r\n", "\n").into_bytes()
    };
    let text = |text: &String| text.replace("\r\n", "\n");
    let plain = Stored {
        lock: stored.lock.as_ref().map(text),
        norm: stored.norm.as_ref().map(plain),
        norm_sha256: stored.norm_sha256.as_ref().map(text),
        profile: stored.profile.as_ref().map(plain),
        ..stored.clone()
    };
    is_as_locked(&plain)
}

/// The check of one stored baseline.
struct Check<'a> {
    stored: &'a Stored,
    findings: Vec<Finding>,
}

impl Check<'_> {
    fn tampered(&mut self, message: String) {
        let finding = Finding::of(Code::Tampered, &self.stored.variant, message);
        self.findings.push(finding);
    }

    fn missing(&mut self, name: &str) {
        self.tampered(format!(
            "{name} is missing (`git check-ignore -v FILE` shows a rule that keeps it out)"
        ));
    }

    /// Lock and profile, if both can be read.
    fn files(&mut self) -> Option<(Lock, Profile)> {
        let lock = self.lock()?;
        self.hashes(lock.ledger.last()?);
        let profile = self.profile()?;
        Some((lock, profile))
    }

    fn lock(&mut self) -> Option<Lock> {
        let name = self.stored.name("lock.toml");
        let lock = match self.stored.lock.as_deref().map(Lock::parse) {
            None => {
                self.missing(&name);
                return None;
            }
            Some(Err(cause)) => {
                self.tampered(format!("{name} cannot be read: {cause}"));
                return None;
            }
            Some(Ok(lock)) => lock,
        };
        if lock.variant != self.stored.variant {
            self.tampered(format!("{name} is the lock of {}", lock.variant));
        }
        for contradiction in lock.contradictions() {
            self.tampered(format!("{name}: {contradiction}"));
        }
        Some(lock)
    }

    /// Compares the files with the hashes in the last entry of the ledger.
    fn hashes(&mut self, entry: &Entry) {
        let stored = self.stored;
        for (ending, content, locked) in [
            ("norm.txt", &stored.norm, &entry.norm_sha256),
            ("profile.json", &stored.profile, &entry.profile_sha256),
        ] {
            let name = self.stored.name(ending);
            match content.as_deref().map(sha256_hex) {
                None => self.missing(&name),
                Some(hash) if hash != *locked => self.tampered(format!(
                    "{name} is not what was locked on {}: its sha256 is {hash}, the lock says {locked}",
                    entry.time,
                )),
                Some(_) => {}
            }
        }
        let name = self.stored.name("norm.txt.sha256");
        let id = &stored.variant;
        let expected = format!("{}  {}.norm.txt\n", entry.norm_sha256, id.variant);
        match &stored.norm_sha256 {
            None => self.missing(&name),
            Some(text) if *text != expected => {
                self.tampered(format!("{name} does not contain the locked hash"));
            }
            Some(_) => {}
        }
    }

    /// The profile, compared with its place, its samples and the normalized text.
    fn profile(&mut self) -> Option<Profile> {
        let name = self.stored.name("profile.json");
        let profile = match Profile::parse(self.stored.profile.as_deref()?) {
            Ok(profile) => profile,
            Err(cause) => {
                self.tampered(format!("{name}: {cause}"));
                return None;
            }
        };
        if profile.variant != self.stored.variant {
            self.tampered(format!("{name} is the profile of {}", profile.variant));
        }
        let identity = &profile.identity;
        if identity.folder() != self.stored.gpu {
            self.tampered(format!(
                "{name} was measured on {}, by {}",
                identity.gpu, identity.tier
            ));
        }
        for (kernel, alias) in misstated(&profile) {
            self.tampered(format!(
                "{name} states a value of `{alias}` of {kernel} that its samples do not give"
            ));
        }
        if norm_text(&profile).map(String::into_bytes) != self.stored.norm {
            let norm = self.stored.name("norm.txt");
            self.tampered(format!("{norm} does not contain the values of {name}"));
        }
        Some(profile)
    }
}

/// Metrics whose stated value or spread differs from that of their samples: people read the stated
/// value, and the samples are judged.
fn misstated(profile: &Profile) -> Vec<(&str, &str)> {
    let near = |stated: Option<f64>, is: Option<f64>| match (stated, is) {
        (Some(stated), Some(is)) => (stated - is).abs() <= 1e-9 * stated.abs().max(is.abs()),
        (stated, is) => stated == is,
    };
    let mut found = Vec::new();
    for kernel in &profile.kernels {
        for (alias, series) in &kernel.metrics {
            let phase = profile
                .identity
                .metrics
                .get(alias)
                .map(|metric| metric.phase);
            let machines = phase.map_or_else(Vec::new, |phase| profile.machines(phase));
            let again = Series::new(series.samples.clone(), &machines);
            if !near(series.value, again.value) {
                found.push((kernel.name.as_str(), alias.as_str()));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::tests::recorded;

    #[test]
    fn a_stated_value_that_differs_from_its_samples_is_found() {
        let mut profile = recorded();
        assert_eq!(misstated(&profile), []);
        let series = profile.kernels[0].metrics.get_mut("duration").unwrap();
        series.value = series.value.map(|value| value * 0.95);
        assert_eq!(misstated(&profile), [("bsr_gemm_cp_async", "duration")]);
    }
}
