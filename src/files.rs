//! The places of a variant's files, and atomic writes: a killed process leaves the old content or the
//! new.

use std::fs::{File, Metadata};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Component, Path, PathBuf};

use rustix::fs::OFlags;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::disk::{self, Entry};
use crate::finding::Error;
use crate::terms::{VariantId, words};

/// Name of the profile in a variant's folder.
pub const PROFILE_FILE: &str = "profile.json";
/// Name of the profile of the static tier beside it.
pub const STATIC_PROFILE_FILE: &str = "static.json";

/// Name of the record of a run in its folder.
pub const RUN_FILE: &str = "run.json";
/// Name of the record of a variant in its folder.
pub const VARIANT_FILE: &str = "variant.json";
/// Name of the file in the folder of a run that says that its GPU is sick.
pub const SICK_FILE: &str = "sick.json";
/// Files by which a run is resumed, which hold nothing else that is read.
pub const RECORDS: [&str; 3] = [RUN_FILE, VARIANT_FILE, SICK_FILE];

/// Writes beside the target and renames into place.
///
/// # Errors
/// Where the folder of the target cannot be written, or the target is a link in a checkout.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> io::Result<()> {
    disk::replace(path, |file| file.write_all(bytes), |_| ()).map(drop)
}

/// The same, with the lock of the file, which this process has before another one can see the file;
/// `None` on a file system without locks.
///
/// # Errors
/// As [`write_atomically`].
pub fn write_locked(path: &Path, bytes: &[u8]) -> io::Result<Option<File>> {
    let lock = |file: &File| file.try_lock().is_ok();
    let (file, (), locked) = disk::replace(path, |file| file.write_all(bytes), lock)?;
    Ok(locked.then_some(file))
}

/// Writes a file that the user named: outside of checkouts through a link to its target, into a device
/// or a pipe, and anything else as [`write_atomically`] does.
///
/// # Errors
/// Where it cannot be written.
pub fn write_named(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let fill = |file: &mut File| {
        let mut parts = BufWriter::new(file);
        write(&mut parts)?;
        parts.flush()
    };
    let atomically = |path: &Path, fill| disk::replace(path, fill, |_| ()).map(drop);
    match disk::metadata(path) {
        Ok(meta) if meta.is_file() => atomically(&disk::real(path)?, fill),
        Ok(meta) if !meta.is_symlink() => {
            let mut file = disk::open_as(path, OFlags::WRONLY, 0)?;
            // A reader may be slower.
            rustix::fs::fcntl_setfl(&file, OFlags::WRONLY)?;
            fill(&mut file)
        }
        // A link that leads to no file yet.
        Err(_) if disk::is_link(path) => fill(&mut disk::create(path)?),
        _ => atomically(path, fill),
    }
}

/// The largest files that are read whole, in bytes. Whatever is larger is refused, and a file that
/// grows while it is read is refused at its bound. Together with [`bounded_json`] they keep every
/// reader within 8 times its file and 64 MiB.
pub mod most {
    /// A configuration, a lock, a key file: TOML takes far more memory than JSON.
    pub const CONFIG: u64 = 1 << 20;
    /// A profile, a lock, a result, a log: a profile of a thousand kernels is a tenth of it.
    pub const TEXT: u64 = 64 << 20;
    /// An outcome: a thousand kernels of thirty metrics with their samples are a third of it.
    pub const OUTCOME: u64 = 256 << 20;
    /// What the library in the profiled processes records of one of them: a million launches.
    pub const RECORDS: u64 = 128 << 20;
    /// A program, a report, machine code.
    pub const BINARY: u64 = ncu_report::MAX_FILE_SIZE;
    /// Values of a JSON document that are inside one another.
    pub const NESTING: usize = 100;
}

/// Reads a regular file of at most [`most::TEXT`] bytes. A device or a pipe may not end, or keep its
/// reader waiting.
///
/// # Errors
/// Where it cannot be read, is not a regular file, or is too large.
pub fn read_regular(path: &Path) -> io::Result<Vec<u8>> {
    read_regular_up_to(path, most::TEXT)
}

/// The same with another bound, in bytes.
///
/// # Errors
/// As [`read_regular`].
pub fn read_regular_up_to(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let file = open_regular(path)?;
    let too_large = || {
        let cause = match most >> 20 {
            0 => format!("larger than {most} bytes"),
            mebibytes => format!("larger than {mebibytes} MiB"),
        };
        io::Error::new(io::ErrorKind::FileTooLarge, cause)
    };
    let stated = file.metadata()?.len();
    if stated > most {
        return Err(too_large());
    }
    let mut bytes = Vec::with_capacity(usize::try_from(stated).unwrap_or(0).saturating_add(1));
    // The size is as of now, and files below /proc state none.
    file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > most {
        true => Err(too_large()),
        false => Ok(bytes),
    }
}

/// What can be read of a text of another program: a log, for people.
pub fn readable_text(path: &Path) -> String {
    String::from_utf8_lossy(&read_regular(path).unwrap_or_default()).into_owned()
}

/// The same for a text in UTF-8.
///
/// # Errors
/// As [`read_regular`], and where it is not UTF-8.
pub fn read_text_up_to(path: &Path, most: u64) -> io::Result<String> {
    String::from_utf8(read_regular_up_to(path, most)?)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "not a text in UTF-8"))
}

/// Opens a regular file to read it. Nothing else is opened in a way that waits or that acts on a
/// device.
///
/// # Errors
/// Where it cannot be opened, or is not a regular file.
pub fn open_regular(path: &Path) -> io::Result<File> {
    opened(path, OFlags::RDONLY)
}

/// The same to take its lock: on NFS that needs a file that is open for writing.
///
/// # Errors
/// As [`open_regular`].
pub fn open_to_lock(path: &Path) -> io::Result<File> {
    opened(path, OFlags::RDWR)
}

fn opened(path: &Path, flags: OFlags) -> io::Result<File> {
    // To open a device may already do something. A link in a checkout is refused by the opening.
    let meta = disk::metadata(path)?;
    if !meta.is_symlink() {
        regular(&meta)?;
    }
    // It may be replaced between the question and the opening, so what was opened is asked again.
    let file = disk::open_as(path, flags, 0)?;
    regular(&file.metadata()?)?;
    Ok(file)
}

fn regular(meta: &Metadata) -> io::Result<()> {
    use std::os::unix::fs::FileTypeExt;
    let kind = meta.file_type();
    let what = match () {
        () if kind.is_file() => return Ok(()),
        () if kind.is_dir() => "a folder",
        () if kind.is_fifo() => "a pipe",
        () if kind.is_socket() => "a socket",
        () => "a device",
    };
    Err(io::Error::new(
        io::ErrorKind::InvalidInput,
        format!("not a regular file but {what}"),
    ))
}

/// Refuses a JSON document whose values would take more memory than 8 times the document and 64 MiB,
/// or that are nested too deeply. One pass over the bytes, without memory of its own; whether it is
/// JSON is left to the reader.
///
/// # Errors
/// Says which of the two.
pub fn bounded_json(document: &[u8]) -> Result<(), String> {
    /// Bytes that a value takes at most in the structures of this program, also while it is printed.
    const VALUE: usize = 48;
    /// The same of an object without its members, of the place of a member in it, and of a text
    /// besides its own bytes.
    const OBJECT: usize = 160;
    const MEMBER: usize = 48;
    const TEXT: usize = 24;
    /// Bytes for values that a small document may have beyond 7 times its size.
    const SPARE: usize = 48 << 20;
    let (mut bytes, mut depth): (usize, usize) = (0, 0);
    let mut at = 0;
    while let Some(byte) = document.get(at) {
        at += 1;
        let takes = match byte {
            b'"' => {
                let start = at;
                at = end_of_text(document, at);
                TEXT + (at - start)
            }
            b'{' | b'[' => {
                depth += 1;
                if depth > most::NESTING {
                    return Err(format!(
                        "its values are nested deeper than {}",
                        most::NESTING
                    ));
                }
                if *byte == b'{' { OBJECT } else { VALUE }
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                0
            }
            b',' => VALUE,
            b':' => MEMBER,
            _ => 0,
        };
        bytes = bytes.saturating_add(takes);
    }
    match bytes > document.len().saturating_mul(7).saturating_add(SPARE) {
        true => Err(format!(
            "its values would take more than {} MiB of memory, far more than a file of this size has",
            bytes >> 20
        )),
        false => Ok(()),
    }
}

/// How a file begins that Git LFS put in the place of another one.
pub const LFS_POINTER: &[u8] = b"version https://git-lfs";

/// Reads a JSON document of which nobody knows who wrote it: [`bounded_json`], and without its texts in what
/// is said to be wrong.
///
/// # Errors
/// In words, what is wrong, and where.
pub fn json<T: DeserializeOwned>(document: &[u8]) -> Result<T, String> {
    if document.starts_with(LFS_POINTER) {
        return Err("it is a pointer of Git LFS to the file: git lfs pull".to_owned());
    }
    bounded_json(document)?;
    serde_json::from_slice(document).map_err(|error| {
        if error.is_eof() {
            let line = error.line();
            return format!("it is cut, or empty: it ends in line {line}; copy the file again");
        }
        let text = error.to_string().replace("unknown variant", "unknown word");
        let own_words = ["missing field", "duplicate field"];
        if !error.is_data() || own_words.iter().any(|own| text.starts_with(own)) {
            return text;
        }
        // serde quotes the document after these.
        let what = text.split([':', '`', '"']).next().unwrap_or_default();
        let what = Some(what.trim())
            .filter(|what| !what.is_empty())
            .unwrap_or("a wrong value");
        format!("{what} at line {} column {}", error.line(), error.column())
    })
}

/// The place after the quote that ends a text.
fn end_of_text(document: &[u8], mut at: usize) -> usize {
    while let Some(byte) = document.get(at) {
        at += match byte {
            b'\\' => 2,
            b'"' => return at + 1,
            _ => 1,
        };
    }
    document.len()
}

/// The JSON form of a value, with the end of a line.
pub fn pretty_json(value: &impl Serialize) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default() + "\n"
}

/// Takes JSON in lines, and puts each list of numbers on one. A text in JSON has no line break, so what looks
/// like such a list over several lines is one.
#[derive(Debug)]
pub(crate) struct ListsInLines<W> {
    to: W,
    /// `[`, and what stands behind it in a list of numbers.
    list: Vec<u8>,
}

impl<W: Write> ListsInLines<W> {
    /// Hands on to a writer.
    pub fn new(to: W) -> ListsInLines<W> {
        let list = Vec::new();
        ListsInLines { to, list }
    }

    fn take(&mut self, byte: u8) -> io::Result<()> {
        match (byte, self.list.as_slice()) {
            (b']', [b'[', b'\n', numbers @ ..]) => {
                let words = numbers.split(u8::is_ascii_whitespace);
                let words: Vec<&[u8]> = words.filter(|word| !word.is_empty()).collect();
                self.to
                    .write_all(&[b"[", &words.join(&b' ')[..], b"]"].concat())?;
                self.list.clear();
            }
            (_, [_, ..]) if b" \n,.-+eE0123456789nul".contains(&byte) => self.list.push(byte),
            _ => {
                self.to.write_all(&self.list)?;
                self.list.clear();
                match byte {
                    b'[' => self.list.push(byte),
                    byte => self.to.write_all(&[byte])?,
                }
            }
        }
        Ok(())
    }
}

impl<W: Write> Write for ListsInLines<W> {
    fn write(&mut self, json: &[u8]) -> io::Result<usize> {
        // Most of it is no list.
        if self.list.is_empty() && !json.contains(&b'[') {
            return self.to.write_all(json).map(|()| json.len());
        }
        json.iter().try_for_each(|byte| self.take(*byte))?;
        Ok(json.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// The same as [`pretty_json`], with each list of numbers in one line.
pub fn pretty_json_in_lines(value: &impl Serialize) -> String {
    let mut text = Vec::new();
    let _ = serde_json::to_writer_pretty(ListsInLines::new(&mut text), value);
    text.push(b'\n');
    String::from_utf8(text).unwrap_or_default()
}

/// What lies in a folder; nothing where it does not exist.
///
/// # Errors
/// [`Error::Io`].
pub fn entries(folder: &Path) -> Result<Vec<Entry>, Error> {
    let entries = if_there(disk::read_dir(folder)).map_err(Error::io("read", folder))?;
    Ok(entries.unwrap_or_default())
}

/// The answer of the system, `None` where a file or folder does not exist.
///
/// # Errors
/// Any other than that.
pub fn if_there<T>(answer: io::Result<T>) -> io::Result<Option<T>> {
    match answer {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        answer => answer.map(Some),
    }
}

/// Whether the name of a file has one of these endings.
pub fn ends_in(path: &Path, endings: &[&str]) -> bool {
    let own = path.extension();
    own.is_some_and(|own| endings.iter().any(|ending| own == *ending))
}

/// Whether a path stays below its folder, and is not the folder itself.
pub fn is_below(path: impl AsRef<Path>) -> bool {
    let mut parts = path.as_ref().components().peekable();
    parts.peek().is_some() && parts.all(|part| matches!(part, Component::Normal(_)))
}

/// The path without `.` and `..`. Only the text is used: the folder need not exist yet.
pub fn resolved(path: &Path) -> PathBuf {
    let mut parts = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts
}

/// Creates the work folder where it does not exist, and keeps it out of git.
///
/// # Errors
/// [`Error::Io`]; [`Error::Usage`] where it has files that are not of this tool.
pub fn create_work_folder(work: &Path) -> Result<(), Error> {
    let found = entries(work)?;
    if found.iter().any(|entry| entry.text() == ".gitignore") {
        return Ok(());
    }
    // A part of an earlier one, perhaps, that a pipeline kept.
    let is_own = |entry: &Entry| matches!(entry.text().as_str(), "builds" | "profiles");
    if let Some(entry) = found.first()
        && !work.ends_with(".sparsek-gate")
        && !found.iter().any(is_own)
    {
        return Err(Error::Usage(format!(
            "the work folder {} has a file of something else (`{}`), and no `.gitignore`\n  next: name a folder of its own in `paths.work`, or remove the files",
            work.display(),
            entry.text()
        )));
    }
    disk::create_dir_all(work).map_err(Error::io("create", work))?;
    let ignore = work.join(".gitignore");
    disk::write(&ignore, "*\n").map_err(Error::io("write", &ignore))
}

/// The folder of a variant's files below another.
pub fn variant_folder(base: &Path, variant: &VariantId) -> PathBuf {
    base.join(&variant.suite).join(&variant.variant)
}

/// In the folder of a variant: what an earlier run left, while a new run works beside it.
const EARLIER: &str = ".earlier";
/// The same, not complete yet.
const ASIDE: &str = ".earlier.next";
/// The same, no longer needed.
const DONE: &str = ".earlier.old";

/// The folder that the recorded files of a variant are read from: its own, or where a run was
/// killed, or is going on, the one with what the run before it left. It is one or the other as a
/// whole.
pub fn recorded_folder(base: &Path, variant: &VariantId) -> PathBuf {
    let folder = variant_folder(base, variant);
    let earlier = folder.join(EARLIER);
    if disk::is_dir(&earlier) {
        earlier
    } else {
        folder
    }
}

/// The folder of the base's recorded files beside them.
pub fn recorded_base_folder(base: &Path, variant: &VariantId) -> PathBuf {
    recorded_folder(base, variant).join("base")
}

/// Creates and empties the folder of a variant for a run, as [`empty_variant_folder`] does. What
/// earlier runs left in it is kept, and is what is read, until [`settle`].
///
/// # Errors
/// [`Error::Io`]; what was there is unchanged, or kept.
pub fn set_aside(base: &Path, variant: &VariantId) -> Result<PathBuf, Error> {
    keep_earlier(base, variant)?;
    empty_variant_folder(base, variant)
}

/// Keeps what earlier runs left in the folder of a variant, and lets it be what is read until
/// [`settle`]. The folder stays as it is.
///
/// # Errors
/// As [`set_aside`].
pub fn keep_earlier(base: &Path, variant: &VariantId) -> Result<(), Error> {
    let folder = variant_folder(base, variant);
    disk::create_dir_all(&folder).map_err(Error::io("create", &folder))?;
    let earlier = folder.join(EARLIER);
    // Otherwise a run was killed: what is beside it is incomplete.
    if !disk::is_dir(&earlier) {
        let aside = folder.join(ASIDE);
        remove_folder(&aside)?;
        let is_kept = link_both(&folder, &aside)?;
        disk::rename(&aside, &earlier).map_err(Error::io("create", &earlier))?;
        if is_kept {
            disk::sync(&folder).map_err(Error::io("write", &folder))?;
        }
    }
    Ok(())
}

/// From here on what the run left in the folder of a variant is what is read.
///
/// # Errors
/// [`Error::Io`].
pub fn settle(base: &Path, variant: &VariantId) -> Result<(), Error> {
    let folder = variant_folder(base, variant);
    let (earlier, done) = (folder.join(EARLIER), folder.join(DONE));
    remove_folder(&done)?;
    if disk::is_dir(&earlier) {
        disk::rename(&earlier, &done).map_err(Error::io("clear", &earlier))?;
        disk::sync(&folder).map_err(Error::io("write", &folder))?;
    }
    remove_folder(&done)
}

/// Least free space after a step that failed, in bytes. With less it may have failed because the
/// disk is full.
const ROOM: u64 = 1 << 20;

/// That the disk of a folder is not full: a full one may be why a run failed, and what that is to
/// replace would be lost for nothing.
///
/// # Errors
/// [`Error::Io`].
pub fn has_room(folder: &Path) -> Result<(), Error> {
    let free = rustix::fs::statvfs(folder).map(|disk| disk.f_bavail.saturating_mul(disk.f_frsize));
    match free {
        Ok(free) if free < ROOM => {
            let full = io::Error::from_raw_os_error(rustix::io::Errno::NOSPC.raw_os_error());
            Err(Error::io("write", folder)(full))
        }
        _ => Ok(()),
    }
}

/// Puts back what was there before a run that was killed.
fn restore(base: &Path, variant: &VariantId) -> Result<(), Error> {
    let earlier = variant_folder(base, variant).join(EARLIER);
    if disk::is_dir(&earlier) {
        let folder = empty_variant_folder(base, variant)?;
        link_both(&earlier, &folder)?;
    }
    settle(base, variant)
}

/// Links the files of a variant, and those of its base: whether there are any.
fn link_both(from: &Path, to: &Path) -> Result<bool, Error> {
    let is_own = link_files(from, to)?;
    let of_base = from.join("base");
    Ok(disk::is_dir(&of_base) && link_files(&of_base, &to.join("base"))? || is_own)
}

/// Makes the files of a run appear in another folder, too: whether there are any. Without one nothing
/// is synchronized, which takes milliseconds, and the first run of a thousand variants seconds.
fn link_files(from: &Path, to: &Path) -> Result<bool, Error> {
    disk::create_dir_all(to).map_err(Error::io("create", to))?;
    let files = left_in(from)?;
    for path in &files {
        let target = to.join(path.file_name().unwrap_or_default());
        // Some file systems have no links.
        disk::hard_link(path, &target)
            .or_else(|_| disk::copy(path, &target))
            .map_err(Error::io("write", &target))?;
    }
    if !files.is_empty() {
        disk::sync(to).map_err(Error::io("write", to))?;
    }
    Ok(!files.is_empty())
}

fn remove_folder(path: &Path) -> Result<(), Error> {
    let removed = if_there(disk::remove_dir_all(path)).map(drop);
    removed.map_err(Error::io("clear", path))
}

/// Creates the folder of a variant, and removes what earlier runs left in it and in its folder of the
/// base: a base of another run must not be taken for this one's. Other files stay.
///
/// # Errors
/// [`Error::Io`].
pub fn empty_variant_folder(base: &Path, variant: &VariantId) -> Result<PathBuf, Error> {
    let folder = variant_folder(base, variant);
    disk::create_dir_all(&folder).map_err(Error::io("create", &folder))?;
    clear(base, variant, &[])?;
    Ok(folder)
}

/// Removes what a run left of a variant and of its base, but files with these names.
fn clear(base: &Path, variant: &VariantId, kept: &[&str]) -> Result<(), Error> {
    for folder in [variant_folder(base, variant), base_folder(base, variant)] {
        for path in left_in(&folder)? {
            let name = path.file_name().unwrap_or_default();
            if !kept.iter().any(|kept| name == *kept) {
                remove_file(&path)?;
            }
        }
    }
    Ok(())
}

/// Removes what an interrupted run measured of a variant, where another one does not take it over.
/// Static profiles stay: they are of now. So does the record of the variant.
///
/// # Errors
/// [`Error::Io`].
pub fn clear_measured(base: &Path, variant: &VariantId) -> Result<(), Error> {
    clear(base, variant, &[STATIC_PROFILE_FILE, VARIANT_FILE])
}

/// Removes a file, where there is one.
///
/// # Errors
/// [`Error::Io`].
pub fn remove_file(path: &Path) -> Result<(), Error> {
    let removed = if_there(disk::remove_file(path)).map(drop);
    removed.map_err(Error::io("clear", path))
}

/// The files in a folder that a run leaves there; none where there is no folder.
fn left_in(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    const LEFT: [&str; 10] = words(
        "capture- counting. imported. imported- launches. profile.json program.log \
         result.json static.json sanitizer-",
    );
    let mut left = Vec::new();
    for entry in entries(folder)? {
        let name = entry.text();
        let mut left_names = LEFT.into_iter().chain([VARIANT_FILE, disk::UNFINISHED]);
        if left_names.any(|left| name.starts_with(left)) && !entry.is_dir() {
            left.push(entry.path);
        }
    }
    Ok(left)
}

/// Removes the static profiles that an earlier build left of a variant below `output`, and of its
/// base: a profile that is not made again must not be taken for a current one.
///
/// # Errors
/// [`Error::Io`].
pub fn clear_compiled(output: &Path, variant: &VariantId) -> Result<(), Error> {
    restore(output, variant)?;
    for folder in [
        variant_folder(output, variant),
        base_folder(output, variant),
    ] {
        remove_file(&folder.join(STATIC_PROFILE_FILE))?;
    }
    Ok(())
}

/// Folder of the base's profile, where base and current were measured side by side.
pub fn base_folder(output: &Path, variant: &VariantId) -> PathBuf {
    variant_folder(output, variant).join("base")
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::fs;

    /// A table in a text: a row a line, with ` |` between its cells.
    pub(crate) fn rows<const N: usize>(table: &str) -> Vec<[&str; N]> {
        let lines = table.lines().filter(|line| !line.trim().is_empty());
        let cells = lines.map(|line| line.split(" |").map(str::trim).collect::<Vec<_>>());
        cells.map(|row| row.try_into().unwrap()).collect()
    }

    #[test]
    fn no_message_on_a_json_document_quotes_a_text_of_it() {
        #[derive(Debug, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        #[expect(dead_code, reason = "it is only read")]
        struct Known {
            number: u32,
            kind: Kind,
        }
        #[derive(Debug, serde::Deserialize)]
        enum Kind {
            One,
        }
        let table = r#"
            {"number": "hunter2"} | invalid type at line 1 column 20
            {"hunter2": 1} | unknown field at line 1 column 10
            {"kind": "hunter2"} | unknown word at line 1 column 18
            hunter2 | expected value at line 1 column 1
            {"number": 1} | missing field `kind` at line 1 column 13"#;
        for [document, expected] in rows(table) {
            assert_eq!(json::<Known>(document.as_bytes()).unwrap_err(), expected);
        }
    }

    #[test]
    fn a_file_that_is_written_locked_is_locked_before_others_see_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let (_, (), unseen) = disk::replace(&path, |_| Ok(()), |_| !path.exists()).unwrap();
        assert!(unseen);
        let file = write_locked(&path, b"2").unwrap();
        let other = open_to_lock(&path).unwrap();
        assert!(file.is_some() && other.try_lock().is_err());
        drop(file);
        other.try_lock().unwrap();
        assert_eq!(read_regular(&path).unwrap(), b"2");
    }

    #[test]
    fn what_is_not_a_regular_file_is_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let made = std::process::Command::new("mkfifo")
            .arg(path("pipe"))
            .status();
        assert!(made.unwrap().success());
        let _socket = std::os::unix::net::UnixListener::bind(path("socket")).unwrap();
        for (name, target) in [
            ("zero", "/dev/zero"),
            ("to_pipe", "pipe"),
            ("to_folder", "."),
        ] {
            std::os::unix::fs::symlink(target, path(name)).unwrap();
        }
        for (path, what) in [
            (path("pipe"), "a pipe"),
            (path("to_pipe"), "a pipe"),
            (path("socket"), "a socket"),
            (path("zero"), "a device"),
            (PathBuf::from("/dev/null"), "a device"),
            (path("to_folder"), "a folder"),
        ] {
            let error = read_regular(&path).unwrap_err().to_string();
            assert_eq!(error, format!("not a regular file but {what}"));
        }
    }

    #[test]
    fn a_file_is_read_up_to_its_bound_and_no_further() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("text");
        fs::write(&path, "four").unwrap();
        assert_eq!(read_regular_up_to(&path, 4).unwrap(), b"four");
        let error = read_regular_up_to(&path, 3).unwrap_err();
        assert_eq!(error.to_string(), "larger than 3 bytes");
        // States no size, and has one.
        assert!(
            !read_regular(Path::new("/proc/self/status"))
                .unwrap()
                .is_empty()
        );
        let error = read_regular_up_to(Path::new("/proc/self/status"), 8).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
    }

    #[test]
    fn a_document_is_refused_for_its_values_and_its_nesting_not_for_its_texts() {
        let list = |of: &str, count: usize| format!("[{}0]", of.repeat(count));
        for dense in ["1,", "[],", "\"\",", "{},", "{\"a\":1},", "null,"] {
            assert!(bounded_json(list(dense, 100).as_bytes()).is_ok(), "{dense}");
            let error = bounded_json(list(dense, 4 << 20).as_bytes()).unwrap_err();
            assert!(error.contains("memory"), "{dense}: {error}");
        }
        let text = format!("\"{}\"", "[,{:\\\"".repeat(1 << 20));
        assert_eq!(bounded_json(text.as_bytes()), Ok(()));
        assert!(bounded_json("[".repeat(most::NESTING).as_bytes()).is_ok());
        let error = bounded_json("[".repeat(most::NESTING + 1).as_bytes());
        assert_eq!(
            error,
            Err("its values are nested deeper than 100".to_owned())
        );
    }

    #[test]
    fn a_disk_without_space_is_full() {
        // This file system has none.
        assert!(has_room(Path::new("/proc")).is_err());
        assert!(has_room(Path::new(".")).is_ok());
    }

    #[test]
    fn lists_of_numbers_stand_in_one_line_and_nothing_else_changes() {
        let value = serde_json::json!({
            "numbers": [1, -2.5e-300, null],
            "processes": [[1.0, 2.0], [3.0], []],
            "words": ["[", "1,", "]"],
            "objects": [{ "a": [1] }, {}],
            "none": [],
            "hostile": "[\n1,\n2\n]",
        });
        let text = pretty_json_in_lines(&value);
        let read: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(read, value);
        assert!(text.contains("\"numbers\": [1, -2.5e-300, null]"), "{text}");
        assert!(text.contains("    [1.0, 2.0],\n    [3.0],\n"), "{text}");
    }
}
