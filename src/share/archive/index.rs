//! What an archive says of itself.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::build::Artifact;
use crate::config::{Selected, Selection};
use crate::files;
use crate::finding::Finding;
use crate::measure::{BaseProject, Prebuilt, SameProgram, Times};
use crate::terms::VariantId;
use crate::trust::Authority;

/// The name of the index in the archive.
pub(super) const INDEX: &str = "archive.json";
/// The folder of the contents.
pub(super) const BLOBS: &str = "blobs/";

/// What an archive may have at most.
pub(super) mod most {
    /// Contents, and files.
    pub const FILES: usize = 400_000;
    /// Bytes of all contents together, and of all files that are made of them: 32 GiB.
    pub const BYTES: u64 = 32 << 30;
    /// Bytes behind the end of the tar. One that this tool writes has none.
    pub const PADDING: u64 = 64 << 10;
    /// Parts of a path.
    pub const DEPTH: usize = 64;
    /// Bytes of a path.
    pub const PATH: usize = 4096;
}

/// What is packed.
#[derive(Clone, Copy)]
pub struct Packing<'a> {
    /// The variants, under the rules that count.
    pub plan: &'a Selected,
    /// The base that is measured beside them.
    pub base: Option<&'a BaseProject>,
    /// What was built of both.
    pub programs: &'a Prebuilt,
    /// The variants that need no measurement.
    pub same_programs: &'a [SameProgram],
    /// Whose rules they are.
    pub authority: &'a Authority,
    /// What was found before any measurement.
    pub findings: &'a [Finding],
    /// The folder of the locks that count.
    pub locks: &'a Path,
}

/// What an archive says of itself.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Index {
    pub tool: String,
    pub selected: Selection,
    pub authority: Authority,
    pub findings: Vec<Finding>,
    pub git: Option<String>,
    pub same_programs: Vec<SameProgram>,
    pub times: Times,
    pub current: PackedSide,
    pub base: Option<PackedBase>,
    /// sha256 of each lock, by its path in the folder of baselines.
    pub locks: BTreeMap<String, String>,
    /// Size of each content in bytes, by its sha256.
    pub blobs: BTreeMap<String, u64>,
}

/// The base.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PackedBase {
    pub commit: String,
    /// Its project, or why there is none.
    pub side: Result<PackedSide, String>,
}

/// A project, and what was built of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PackedSide {
    /// The configuration's file, from the top of the checkout.
    pub config_file: String,
    /// The configuration to judge and to measure by. It is the file's own text only where no change
    /// is under review.
    pub config: String,
    /// The files, by their paths from the top.
    pub files: BTreeMap<String, PackedFile>,
    pub artifacts: BTreeMap<VariantId, PackedArtifact>,
    /// Why the others could not be built.
    pub findings: Vec<Finding>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PackedFile {
    pub sha256: String,
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub executable: bool,
}

/// A program, and what is known of how it was built.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PackedArtifact {
    pub run: Vec<Word>,
    /// Where each file of the program is, and its sha256.
    pub programs: Vec<(Place, String)>,
    /// Without what depends on the machine.
    pub artifact: Artifact,
}

/// A word of a command line.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Word {
    Text(String),
    File(Place),
}

/// Where a file of a program is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Place {
    /// In the checkout, from its top.
    Checkout(String),
    /// A program that a compiler made: its sha256 and its name.
    Program(String, String),
}

/// Whether a path stays in its folder.
pub(super) fn is_below(path: &str) -> bool {
    files::is_below(path)
        && Path::new(path).components().count() <= most::DEPTH
        && path.len() <= most::PATH
}

/// Whether a text is a sha256 in hex.
pub(super) fn is_sha256(text: &str) -> bool {
    text.len() == 64
        && text
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}
