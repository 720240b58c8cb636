//! Files: read by their content, and named in every error.

use std::fs;

use ncu_report::{MAX_FILE_SIZE, ReadError, read_file, report};

use crate::common;

#[test]
fn a_file_is_read_by_its_content_and_every_error_names_it() {
    let folder = common::folder();
    let report = read_file(folder.join("four_metrics.ncu-rep")).unwrap();
    assert_eq!((report.launches.len(), report.format_version), (1, Some(7)));
    let page = read_file(folder.join("four_metrics.raw.csv")).unwrap();
    assert_eq!((page.launches.len(), page.format_version), (1, None));
    for (name, problem) in [
        ("README.md", "no CSV header of ncu"),
        ("absent.ncu-rep", "cannot read the file"),
    ] {
        let path = folder.join(name);
        let error = read_file(&path).unwrap_err();
        assert!(matches!(error, ReadError::InFile { .. }));
        let expected = format!("{}: {problem}", path.display());
        assert!(error.to_string().starts_with(&expected), "{error}");
    }
}

#[test]
fn a_file_above_the_limit_is_rejected_unread() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sparse.ncu-rep");
    let file = fs::File::create(&path).unwrap();
    file.set_len(MAX_FILE_SIZE + 1).unwrap();
    let error = read_file(&path).unwrap_err().to_string();
    assert!(
        error.ends_with("the file has 1073741825 bytes, the limit is 1073741824"),
        "{error}"
    );
}

#[test]
fn the_machine_code_has_the_functions_that_ran() {
    let bytes = common::bytes("four_metrics.ncu-rep");
    let codes = report::machine_code(&bytes).unwrap();
    assert_eq!(codes.len(), 1);
    assert!(codes[0].cubin.starts_with(b"\x7fELF"));
    let launched = report::read(&bytes).unwrap().launches.remove(0).kernel;
    let functions: Vec<&str> = codes[0].functions.values().map(|name| &**name).collect();
    assert_eq!(functions, [launched.mangled.clone().unwrap()]);
    assert!(report::machine_code(&bytes[..bytes.len() / 2]).is_err());
}
