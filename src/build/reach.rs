//! Which files a compilation may read: those of the checkout, the toolkit, the host compiler, the
//! system's headers and libraries, and the folders that flags and the environment list. A message of
//! the compiler quotes what it reads, and a source includes any path.

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::LazyLock;

use regex::Regex;

use super::flags::FlagInputs;
use super::inputs::spliced;
use crate::disk::{self, leads_to};
use crate::files::{most, open_regular, read_regular_up_to};
use crate::git;
use crate::toolchain::{Nvcc, install_folder};

/// Folders of the system, which anybody may read.
const SYSTEM: [&str; 6] = [
    "/usr/include", "/usr/lib", "/usr/lib64", "/lib", "/lib64", "/nix/store",
];

/// The places that a compilation may read.
pub(super) struct Reach<'a> {
    nvcc: &'a Nvcc,
    root: PathBuf,
    /// The checkout around the project; the project, where there is none.
    top: PathBuf,
    /// Where headers are searched for that flags list.
    searched: Vec<PathBuf>,
    /// Those, files that flags name, and the folders of tools and system.
    listed: Vec<PathBuf>,
    /// What nvcc adds; asked for where the others are not enough.
    own: OnceCell<Vec<PathBuf>>,
}

impl<'a> Reach<'a> {
    /// `store` has what is compiled from.
    pub(super) fn of(root: &Path, store: &Path, nvcc: &'a Nvcc, named: &FlagInputs) -> Reach<'a> {
        let real = leads_to(root);
        let top = disk::checkout_of(&real).unwrap_or(&real).to_path_buf();
        // A link that a change brought lists nothing.
        let around = top.clone();
        let is_listed =
            |path: &PathBuf| !path.starts_with(&around) || git::real_input(path).is_ok();
        let below = |path: &String| real.join(path);
        let searched: Vec<PathBuf> = named.folders.iter().map(below).filter(is_listed).collect();
        let stated = named.headers.iter().chain(&named.objects);
        let stated = stated.map(below).filter(is_listed);
        let tools = nvcc
            .roots()
            .into_iter()
            .chain([install_folder(&nvcc.host.path)]);
        let tools = tools.filter(|folder| is_of_compiler(folder));
        let environment = Nvcc::folders_of_environment().into_iter();
        let environment = environment
            .map(PathBuf::from)
            .filter(|path| path.is_absolute());
        let listed = searched
            .iter()
            .cloned()
            .chain(stated)
            .chain(tools)
            .chain(environment)
            .chain([store.to_path_buf()]);
        let listed = listed.chain(SYSTEM.map(PathBuf::from));
        Reach {
            nvcc,
            own: OnceCell::new(),
            root: root.to_path_buf(),
            top,
            listed: listed.flat_map(in_both_spellings).collect(),
            searched,
        }
    }

    /// Whether a file may be read. What is below a listed folder may be a link.
    pub(super) fn allows(&self, file: &Path) -> bool {
        let path = self.root.join(file);
        let real = leads_to(&path);
        let plain = !path.components().any(|part| part == Component::ParentDir);
        let listed =
            |folder: &PathBuf| real.starts_with(folder) || (plain && path.starts_with(folder));
        match real.starts_with(&self.top) || (plain && path.starts_with(&self.top)) {
            true => git::real_input(&path).is_ok(),
            false => self.listed.iter().any(listed) || self.own().iter().any(listed),
        }
    }

    fn own(&self) -> &[PathBuf] {
        self.own.get_or_init(|| {
            let folders = self.nvcc.own_folders().into_iter();
            let folders = folders.filter(|folder| leads_to(folder).parent().is_some());
            folders.flat_map(in_both_spellings).collect()
        })
    }

    /// What sources and the headers that they name include in plain words, and may not.
    ///
    /// # Errors
    /// Those of a file that cannot be read.
    pub(super) fn refused_include(
        &self,
        sources: &[String],
        flags: &FlagInputs,
    ) -> io::Result<Option<String>> {
        let mut to_read: Vec<PathBuf> = sources
            .iter()
            .map(|source| self.root.join(source))
            .collect();
        for file in &flags.headers {
            to_read.extend(
                self.find(&self.root, file, true)
                    .filter(|path| disk::is_file(path)),
            );
        }
        let mut seen = BTreeSet::new();
        while let Some(file) = to_read.pop() {
            let real = git::real_input(&file)?;
            if !seen.insert(real.clone()) {
                continue;
            }
            // What is too large for a source is in the lists of the tools.
            let Ok(text) = read_regular_up_to(&real, most::BINARY) else {
                continue;
            };
            let folder = disk::folder_of(&file);
            for (name, quoted) in includes(&String::from_utf8_lossy(&text)) {
                match self.find(folder, &name, quoted) {
                    Some(path) if !self.allows(&path) => return Ok(Some(name)),
                    Some(path) if leads_to(&path).starts_with(&self.top) => to_read.push(path),
                    _ => {}
                }
            }
        }
        Ok(None)
    }

    /// The file that an include names, where it is beside the text or in a listed folder.
    fn find(&self, folder: &Path, name: &str, quoted: bool) -> Option<PathBuf> {
        let beside = quoted.then(|| folder.to_path_buf());
        let folders = beside.iter().chain(&self.searched).chain(&self.listed);
        let mut paths = folders.map(|folder| folder.join(name));
        paths.find(|path| path.canonicalize().is_ok_and(disk::is_file))
    }

    /// The first file in a log of the compiler that may not be read.
    pub(super) fn refused_in_log(&self, log: &str) -> Option<String> {
        static PLACE: LazyLock<Option<Regex>> = LazyLock::new(|| {
            Regex::new(r"(?m)^(?:In file included from |\s+from )?([^\s:(][^:(\n]*)[:(]\d").ok()
        });
        let files = PLACE
            .iter()
            .flat_map(|place| place.captures_iter(log))
            .map(|found| found[1].to_owned());
        files
            .into_iter()
            .find(|file| is_found(&self.root.join(file)) && !self.allows(Path::new(file)))
    }
}

/// The names of files that a text includes, in C++ or in assembler, and whether they are quoted.
fn includes(text: &str) -> Vec<(String, bool)> {
    static INCLUDE: LazyLock<Option<Regex>> = LazyLock::new(|| {
        let blank = r"(?:\s|/\*.*?\*/)*";
        let word = "(?:include|include_next|import|embed)";
        let begin = format!(r"(?m)^{blank}(?:#|%:|\?\?=){blank}{word}{blank}");
        let text =
            format!(r#"{begin}(?:"([^"\n]+)"|<([^>\n]+)>)|\.inc(?:bin|lude)\s*\\?"([^"\\\n]+)"#);
        Regex::new(&text).ok()
    });
    let text = spliced(text);
    let found = INCLUDE
        .iter()
        .flat_map(|include| include.captures_iter(&text))
        .map(|found| {
            let quoted = found.get(1).or(found.get(3));
            let name = quoted.or(found.get(2)).map_or("", |name| name.as_str());
            (name.to_owned(), quoted.is_some())
        });
    found.collect()
}

/// Whether a compiler finds something there, as the system follows links.
pub(super) fn is_found(path: &Path) -> bool {
    path.canonicalize().is_ok()
}

/// Whether a compiler is installed there, and not only a script that calls one, as in `~/bin`.
fn is_of_compiler(folder: &Path) -> bool {
    let of_compilers = ["include", "targets", "nvvm", "lib/gcc"];
    folder.parent().is_some()
        && of_compilers
            .iter()
            .any(|name| folder.join(name).canonicalize().is_ok())
}

/// Whether no message quotes a file: it is an object, a library or an archive of these.
pub(super) fn is_object(path: &Path) -> bool {
    let start = path.canonicalize().and_then(|real| first_bytes(&real));
    start.is_ok_and(|start| start.starts_with(b"\x7fELF") || &start == b"!<arch>\n")
}

/// The beginning of a file, by which its kind is known.
pub(super) fn first_bytes(file: &Path) -> io::Result<[u8; 8]> {
    let mut start = [0; 8];
    io::Read::read(&mut open_regular(file)?, &mut start)?;
    Ok(start)
}

fn in_both_spellings(path: PathBuf) -> [PathBuf; 2] {
    [leads_to(&path), path]
}
