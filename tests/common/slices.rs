//! Slices of a recording, as `profile --slice` leaves them, made without a GPU.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::{Value as Json, json};
use sparsek_gate::config::{Config, Selected, Selection};
use sparsek_gate::hash::sha256_file;
use sparsek_gate::measure::sealed;
use sparsek_gate::plan::shared_out;
use sparsek_gate::share::plan_sha256;
use sparsek_gate::terms::VariantId;

use super::Project;
use super::sealed::content;

/// Files of a variant that are profiles.
const PROFILES: [&str; 4] = [
    "profile.json", "static.json", "base/profile.json", "base/static.json",
];

/// Slices of a recording, in `slices/1` and so on: the folders.
pub fn made(project: &Project, recording: &str, count: u32, names: &[&str]) -> Vec<String> {
    let places = [recording, "slices"].map(|path| project.path(path));
    let config = project.path("config.toml");
    made_in(&config, &places[0], &places[1], count, names);
    (1..=count).map(|index| format!("slices/{index}")).collect()
}

/// The same for any configuration, in `into/1` and so on. A variant that the recording lacks has an empty
/// folder, as one that left nothing.
pub fn made_in(config: &Path, recording: &Path, into: &Path, count: u32, names: &[&str]) {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let selection = Selection {
        names,
        ..Selection::default()
    };
    let plan = Selected::new(Config::load(config).unwrap(), &selection, &[]).unwrap();
    let ids: Vec<VariantId> = plan.variants.iter().map(|one| one.id.clone()).collect();
    let slices = shared_out(&ids, count, |_| None);
    for (index, own) in (1..).zip(&slices) {
        let slice = into.join(index.to_string());
        // A copy over a link to the same content would empty both.
        if slice.exists() {
            fs::remove_dir_all(&slice).unwrap();
        }
        let mut variants = BTreeMap::new();
        for variant in own {
            let folder = slice.join(variant.to_string());
            copy(&recording.join(variant.to_string()), &folder);
            let path = folder.join("variant.json");
            fs::write(&path, sealed(&record(&folder, variant))).unwrap();
            variants.insert(variant.to_string(), seal(&path));
        }
        let run = json!({
            "id": "0123456789abcdef",
            "began": "2026-11-22T00:00:00Z",
            "state": "said",
            "slice": {
                "tool": env!("CARGO_PKG_VERSION"),
                "plan": plan_sha256(&plan).unwrap(),
                "place": {"index": index, "count": count},
                "revisions": [null, null],
                "slices": slices,
            },
            "found": {"captures": {}, "times": {}, "variants": variants},
        });
        fs::create_dir_all(&slice).unwrap();
        fs::write(slice.join("run.json"), sealed(&run)).unwrap();
    }
}

/// The record of a variant that was measured, with all files in its folder.
fn record(folder: &Path, variant: &VariantId) -> Json {
    let (mut profiles, mut files) = (BTreeMap::new(), BTreeMap::new());
    list(folder, "", &mut files);
    for name in PROFILES {
        profiles.extend(files.remove_entry(name));
    }
    json!({
        "run": "0123456789abcdef",
        "variant": variant,
        "key": null,
        "retries": [],
        "part": true,
        "done": {"captures": {}, "profiles": profiles, "files": files},
    })
}

fn list(folder: &Path, place: &str, files: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = format!("{place}{}", path.file_name().unwrap().display());
        match path.is_dir() {
            true => list(&path, &format!("{name}/"), files),
            false => drop(files.insert(name, sha256_file(&path).unwrap())),
        }
    }
}

/// Copies what links lead to.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).into_iter().flatten() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target);
            continue;
        }
        let path = path.canonicalize().unwrap();
        // Tests write files anew, so a link to the content does.
        fs::hard_link(&path, &target)
            .or_else(|_| fs::copy(&path, &target).map(drop))
            .unwrap();
    }
}

/// The sha256 that a file says of itself.
fn seal(path: &Path) -> String {
    let file: Json = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    file["sha256"].as_str().unwrap().to_owned()
}

/// The variants of each slice of the plan that a slice is of.
pub fn shared(project: &Project, slice: &str) -> Vec<Vec<String>> {
    let run = content(project, &format!("{slice}/run.json"));
    serde_json::from_value(run["slice"]["slices"].clone()).unwrap()
}
