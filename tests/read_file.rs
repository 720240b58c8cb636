//! Files that a command is given: read by their content, and named in every error.

use std::fs;

use sparsek_gate::capture::{Format, read_file};

#[test]
fn a_file_is_read_by_its_content_and_errors_name_it() {
    let (format, recording) = read_file("tests/data/ncu/four_metrics.ncu-rep").unwrap();
    assert_eq!((format, recording.launches.len()), (Format::Report, 1));
    let (format, recording) = read_file("tests/data/ncu/four_metrics.raw.csv").unwrap();
    assert_eq!((format, recording.launches.len()), (Format::Csv, 1));
    let error = read_file("tests/data/ncu/README.md")
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("tests/data/ncu/README.md: no CSV header"),
        "{error}"
    );
    let error = read_file("tests/data/ncu/absent.ncu-rep")
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("tests/data/ncu/absent.ncu-rep: cannot read"),
        "{error}"
    );
}

#[test]
fn a_file_beyond_the_limit_is_refused_unread() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sparse.ncu-rep");
    let file = fs::File::create(&path).unwrap();
    file.set_len(ncu_report::MAX_FILE_SIZE + 1).unwrap();
    let error = read_file(&path).unwrap_err().to_string();
    assert!(error.contains("the limit is 1073741824"), "{error}");
}
