//! The sealed records in a folder of measured variants, changed as by somebody who can seal them again.

use serde_json::Value as Json;
use sparsek_gate::hash::sha256_hex;
use sparsek_gate::measure::sealed;

use super::Project;

/// What a record says.
#[track_caller]
pub fn content(project: &Project, path: &str) -> Json {
    project.json(path)["content"].take()
}

/// Changes a record, and returns the hash that it has then.
#[track_caller]
pub fn edit(project: &Project, path: &str, change: impl FnOnce(&mut Json)) -> String {
    let mut record = content(project, path);
    change(&mut record);
    project.write(path, sealed(&record));
    sha256_hex(&serde_json::to_vec(&record).unwrap())
}

/// Changes the record of a variant in a slice, whose own record then names that.
#[track_caller]
pub fn edit_variant(project: &Project, slice: &str, name: &str, change: impl FnOnce(&mut Json)) {
    let sha256 = edit(project, &format!("{slice}/{name}/variant.json"), change);
    edit(project, &format!("{slice}/run.json"), |run| {
        run["found"]["variants"][name] = sha256.into();
    });
}

/// Whether the run of a folder measured everything.
pub fn is_whole(project: &Project, folder: &str) -> bool {
    let path = format!("{folder}/run.json");
    project.path(&path).is_file() && content(project, &path)["state"] != "measuring"
}
