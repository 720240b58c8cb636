//! Copies of captures and profiles for publication: without sources, machine code, paths, and
//! the names of people and machines, and with every number that was measured.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::de::IgnoredAny;
use serde::{Serialize, Serializer};

use crate::capture::kernel_records;
use crate::disk::{self, folder_of};
use crate::files::{self, RECORDS, most, read_regular, read_regular_up_to};
use crate::finding::Error;
use crate::hash::sha256_hex;
use crate::metric::ALIASES;
use crate::process;
use crate::profile::Profile;
use crate::terms::spelled;
use ncu_report::{Scrubber, csv, report};

/// What was stripped, and what of it.
#[derive(Debug, Default, Serialize)]
pub struct Stripped {
    /// The files that were written, by path below the copy.
    pub files: Vec<StrippedFile>,
    /// How many of each kind were removed, in all files.
    pub removed: BTreeMap<&'static str, u64>,
    /// What was not copied.
    pub not_copied: Vec<NotCopied>,
}

/// One file of the copy.
#[derive(Debug, Serialize)]
pub struct StrippedFile {
    /// Path below the copy.
    #[serde(serialize_with = "shown")]
    pub file: PathBuf,
    /// What it is.
    pub kind: &'static str,
    /// How many of each kind were removed from it.
    pub removed: BTreeMap<&'static str, u64>,
}

/// A path as text: a name that is not UTF-8 has no other form in JSON.
fn shown<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&path.display())
}

/// A file that is not in the copy.
#[derive(Debug, Serialize)]
pub struct NotCopied {
    /// Path below what was given.
    #[serde(serialize_with = "shown")]
    pub file: PathBuf,
    /// Why.
    pub why: String,
}

spelled! {
    /// What a file is.
    Kind {
        /// A report of ncu.
        Report = "report",
        /// A page of one, or another CSV.
        Csv = "csv",
        /// A profile of this tool.
        Profile = "profile",
        /// Another JSON file.
        Json = "json",
        /// Kernel records, a log, or an argv.
        Text = "text",
    }
}

/// The kind of a file, by its content and then its name; `None` if it is unknown.
fn kind_of(path: &Path, bytes: &[u8]) -> Option<Kind> {
    // A copy of these would name the hashes of other files.
    if RECORDS
        .iter()
        .any(|name| path.file_name() == Some(name.as_ref()))
    {
        return None;
    }
    if report::ending(bytes).is_some() {
        return Some(Kind::Report);
    }
    if bytes.starts_with(kernel_records::MAGIC) {
        return Some(Kind::Text);
    }
    match path.extension()?.to_str()? {
        "csv" => Some(Kind::Csv),
        "log" | "argv" => Some(Kind::Text),
        "json" if Profile::parse(bytes).is_ok() => Some(Kind::Profile),
        "json" if files::json::<IgnoredAny>(bytes).is_ok() => Some(Kind::Json),
        _ => None,
    }
}

/// Copies a file, or a folder of files, without what must not be published. The copy appears as a
/// whole, or not at all.
///
/// # Errors
/// [`Error::Usage`] where the copy exists already, [`Error::Input`] where a file cannot be read
/// as what it is, or would still contain what must be removed; [`Error::Io`].
pub fn strip(from: &Path, to: &Path, keep_machine_code: bool) -> Result<Stripped, Error> {
    if disk::is_there(to) {
        return Err(exists(to));
    }
    let meta = disk::metadata(from).map_err(Error::named(from))?;
    let parent = folder_of(to);
    disk::create_dir_all(parent).map_err(Error::io("create", parent))?;
    let parent = &disk::real(parent).map_err(Error::io("create a folder in", parent))?;
    let mut run = Run::new(keep_machine_code);
    let place = process::scratch_in(parent, ".tmp-strip-")
        .map_err(Error::io("create a folder in", parent))?;
    let copy = place.path().join("copy");
    if meta.is_dir() {
        // A copy below the copied folder would grow while the folder is read.
        let (whole, target) = (absolute(from)?, absolute(parent)?);
        if target.starts_with(&whole) {
            return Err(Error::Usage(format!(
                "{} is inside {}, which is to be copied",
                to.display(),
                from.display()
            )));
        }
        run.folder(from, &copy)?;
    } else {
        let name = PathBuf::from(to.file_name().unwrap_or_default());
        let read = run.read(from)?.and_then(|bytes| {
            let kind = kind_of(from, &bytes)?;
            Some((kind, bytes))
        });
        let (kind, bytes) =
            read.ok_or_else(|| Error::input(from.to_path_buf(), UNKNOWN.to_owned()))?;
        let clean = run.file(from, name, kind, &bytes)?;
        disk::write(&copy, clean).map_err(Error::io("write", to))?;
    }
    if !process::may_publish() {
        return Err(Error::Interrupted);
    }
    let flags = rustix::fs::RenameFlags::NOREPLACE;
    let renamed = disk::rename_with(&copy, to, flags);
    renamed.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => exists(to),
        _ => Error::io("create", to)(error),
    })?;
    run.stripped.removed = run.scrubber.removed;
    Ok(run.stripped)
}

/// The copy of one file, of which only the name of `path` is used; `None` where files of its kind
/// cannot be stripped.
///
/// # Errors
/// [`Error::Input`], as [`strip`].
pub fn strip_bytes(
    path: &Path,
    bytes: &[u8],
    keep_machine_code: bool,
) -> Result<Option<Vec<u8>>, Error> {
    let Some(kind) = kind_of(path, bytes) else {
        return Ok(None);
    };
    let mut run = Run::new(keep_machine_code);
    run.file(path, path.to_path_buf(), kind, bytes).map(Some)
}

const UNKNOWN: &str = "files of this kind cannot be stripped; known are reports (.ncu-rep, .ncu-repz), CSV, profiles and other JSON, kernel records, .log and .argv";

/// Knows the names of this machine and its user, and the words of counters, which are no names.
fn of_this_machine() -> Scrubber {
    let counters = ALIASES
        .iter()
        .flat_map(|alias| [alias.name, alias.role.counter()]);
    let words = counters.flat_map(|name| name.split(|c: char| !c.is_ascii_alphanumeric()));
    let mut scrubber = Scrubber::new(words);
    let host = read_regular(Path::new("/proc/sys/kernel/hostname")).unwrap_or_default();
    scrubber.learn_host(lossy(&host).trim());
    for variable in ["USER", "LOGNAME"] {
        scrubber.learn_user(&std::env::var(variable).unwrap_or_default());
    }
    scrubber
}

fn exists(to: &Path) -> Error {
    Error::Usage(format!(
        "{} exists; name a path for the copy that does not exist",
        to.display()
    ))
}

fn absolute(path: &Path) -> Result<PathBuf, Error> {
    fs::canonicalize(path).map_err(Error::io("find", path))
}

struct Run {
    scrubber: Scrubber,
    keep_machine_code: bool,
    /// sha256 of each file, to that of its copy.
    hashes: BTreeMap<String, String>,
    stripped: Stripped,
}

impl Run {
    fn new(keep_machine_code: bool) -> Run {
        Run {
            scrubber: of_this_machine(),
            keep_machine_code,
            hashes: BTreeMap::new(),
            stripped: Stripped::default(),
        }
    }

    fn leave_out(&mut self, file: &Path, why: &str) {
        self.stripped.not_copied.push(NotCopied {
            file: file.to_path_buf(),
            why: why.to_owned(),
        });
    }

    fn folder(&mut self, from: &Path, copy: &Path) -> Result<(), Error> {
        disk::create_dir(copy).map_err(Error::io("create", copy))?;
        let mut files = Vec::new();
        self.find(from, Path::new(""), &mut files)?;
        // A profile contains the hashes of its captures, so these come first.
        files.sort_by_key(|(file, kind)| (*kind == Kind::Profile, file.clone()));
        for (file, kind) in files {
            if process::interrupted() {
                return Err(Error::Interrupted);
            }
            let path = from.join(&file);
            let bytes =
                read_regular_up_to(&path, most::BINARY).map_err(Error::io("read", &path))?;
            let clean = self.file(&path, file.clone(), kind, &bytes)?;
            let target = copy.join(&file);
            let folder = target.parent().unwrap_or(copy);
            disk::create_dir_all(folder).map_err(Error::io("create", folder))?;
            disk::write(&target, clean).map_err(Error::io("write", &target))?;
        }
        // Now all hosts and users of the files are known.
        for StrippedFile { file, .. } in &self.stripped.files {
            if let Some(left) = self
                .scrubber
                .forbidden_in(file.as_os_str().as_encoded_bytes())
            {
                let cause =
                    format!("its name contains `{left}`; rename it in a copy of the folder");
                return Err(Error::input(from.join(file), cause));
            }
        }
        Ok(())
    }

    /// The files below a folder that can be stripped. Links are not followed: they may lead out.
    fn find(
        &mut self,
        root: &Path,
        below: &Path,
        files: &mut Vec<(PathBuf, Kind)>,
    ) -> Result<(), Error> {
        let folder = root.join(below);
        for entry in disk::read_dir(&folder).map_err(Error::io("read", &folder))? {
            let name = below.join(entry.name());
            if entry.is_dir() {
                self.find(root, &name, files)?;
            } else if !entry.is_file() {
                self.leave_out(&name, "neither a file nor a folder");
            } else if let Some(bytes) = self.read(&entry.path)? {
                match kind_of(&name, &bytes) {
                    Some(kind) => files.push((name, kind)),
                    None => self.leave_out(&name, "of no known kind"),
                }
            }
        }
        self.stripped.not_copied.sort_by(|a, b| a.file.cmp(&b.file));
        Ok(())
    }

    fn read(&mut self, path: &Path) -> Result<Option<Vec<u8>>, Error> {
        match read_regular_up_to(path, most::BINARY) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == ErrorKind::FileTooLarge => {
                self.leave_out(path, &format!("larger than {} bytes", most::BINARY));
                Ok(None)
            }
            Err(error) => Err(Error::named(path)(error)),
        }
    }

    /// The copy of a file, after a search for anything forbidden that is left in it.
    fn file(
        &mut self,
        path: &Path,
        name: PathBuf,
        kind: Kind,
        bytes: &[u8],
    ) -> Result<Vec<u8>, Error> {
        let input = |cause: String| Error::input(path.to_path_buf(), cause);
        let before = std::mem::take(&mut self.scrubber.removed);
        let clean = match kind {
            Kind::Report => {
                let launches = |bytes: &[u8]| {
                    let read = report::read(bytes).map_err(|error| input(error.to_string()));
                    read.map(|report| report.launches.len())
                };
                // A copy of a damaged report could be read, and would lack launches.
                let all = launches(bytes)?;
                let copy = report::strip(bytes, &mut self.scrubber, self.keep_machine_code);
                let copy = copy.map_err(|error| input(error.to_string()))?;
                if launches(&copy)? != all {
                    return Err(input("its copy would lack launches".to_owned()));
                }
                copy
            }
            Kind::Csv => csv::strip(bytes, &mut self.scrubber).map_err(input)?,
            Kind::Profile => self.profile(bytes).map_err(input)?.into_bytes(),
            Kind::Json => json(&mut self.scrubber, &lossy(bytes)).into_bytes(),
            Kind::Text => {
                let text = lossy(bytes);
                self.scrubber.text(&text).unwrap_or(text).into_bytes()
            }
        };
        if let Some(left) = self.scrubber.forbidden_in(&clean) {
            let code = match self.keep_machine_code {
                true => ": it may be in the machine code; run without --keep-machine-code",
                false => ": please report this",
            };
            return Err(input(format!(
                "its copy would still contain `{left}`, and is not written{code}"
            )));
        }
        // NVIDIA's tools decide by the ending whether a report is compressed.
        let is_compressed = kind == Kind::Report && name.extension() == Some("ncu-repz".as_ref());
        let clean = match is_compressed {
            true => report::compress(&clean),
            false => clean,
        };
        self.hashes.insert(sha256_hex(bytes), sha256_hex(&clean));
        let removed = std::mem::replace(&mut self.scrubber.removed, before);
        for (kind, count) in &removed {
            *self.scrubber.removed.entry(kind).or_default() += count;
        }
        self.stripped.files.push(StrippedFile {
            file: name,
            kind: kind.as_str(),
            removed,
        });
        Ok(clean)
    }

    fn profile(&mut self, bytes: &[u8]) -> Result<String, String> {
        let mut profile = Profile::parse(bytes)?;
        if profile.provenance.stripped {
            return Err("it is a stripped copy already, and can be published as it is".to_owned());
        }
        let scrubber = &mut self.scrubber;
        let lines = |scrubber: &mut Scrubber, lines: &mut Vec<String>| {
            for line in lines {
                *line = scrubber.whole(line);
            }
        };
        lines(scrubber, &mut profile.identity.workload);
        let provenance = &mut profile.provenance;
        provenance.stripped = true;
        lines(scrubber, &mut provenance.build_argv);
        lines(scrubber, &mut provenance.overrides);
        let pseudonym = |scrubber: &mut Scrubber, uuid: &mut Option<String>| {
            if let Some(uuid) = uuid {
                *uuid = scrubber.gpu(uuid);
            }
        };
        pseudonym(scrubber, &mut provenance.gpu_uuid);
        provenance.sources = std::mem::take(&mut provenance.sources)
            .into_iter()
            .map(|(path, hash)| (scrubber.whole(&path), hash))
            .collect();
        for capture in &mut provenance.captures {
            pseudonym(scrubber, &mut capture.gpu_uuid);
            lines(scrubber, &mut capture.argv);
            for tuned in &mut capture.tuned {
                lines(scrubber, &mut tuned.chosen);
            }
            for process in capture
                .device
                .iter_mut()
                .flat_map(|s| &mut s.other_processes)
            {
                if process.name.take().is_some() {
                    scrubber.count("name of another process");
                }
            }
            for file in std::iter::once(&mut capture.report).chain(&mut capture.csv) {
                if let Some(hash) = self.hashes.get(&file.sha256) {
                    file.sha256.clone_from(hash);
                }
            }
        }
        // All other texts: messages of the compiler, the versions found for the pins.
        Ok(json(scrubber, &profile.to_json()))
    }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Scrubs every text of a JSON document in place: numbers and order stay as they are written.
fn json(scrubber: &mut Scrubber, document: &str) -> String {
    let mut clean = String::with_capacity(document.len());
    let mut rest = document;
    while let Some(start) = rest.find('"') {
        clean.push_str(&rest[..start]);
        let literal = literal(&rest[start..]);
        let text: String = serde_json::from_str(literal).unwrap_or_default();
        let scrubbed = scrubber.whole(&text);
        if scrubbed == text {
            clean.push_str(literal);
        } else {
            clean.push_str(&serde_json::to_string(&scrubbed).unwrap_or_default());
        }
        rest = &rest[start + literal.len()..];
    }
    clean + rest
}

/// The text at the start of a JSON document, with its quotes.
fn literal(document: &str) -> &str {
    let mut escaped = false;
    for (at, c) in document.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return &document[..=at],
            _ => {}
        }
    }
    document
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_a_document_change_and_nothing_else_does() {
        let document = "{ \"a\\\"/b/c\": [1.50, \"/home/x/y\", null, \"\\u0041\"] }\n";
        assert_eq!(
            json(&mut Scrubber::default(), document),
            "{ \"a\\\"c\": [1.50, \"y\", null, \"\\u0041\"] }\n"
        );
    }
}
