//! Every form of a report, of a check of 1,000 kernels with 30 metrics each.

use std::path::Path;
use std::sync::LazyLock;

use divan::Bencher;
use divan::counter::BytesCount;
use sparsek_gate::cli::ReportFormat;
use sparsek_gate::judge::Outcome;
use sparsek_gate::report::{read, render};

#[path = "../tests/common/outcome.rs"]
mod outcome;

const FORMS: [ReportFormat; 7] = [
    ReportFormat::Text,
    ReportFormat::Markdown,
    ReportFormat::Json,
    ReportFormat::Junit,
    ReportFormat::Sarif,
    ReportFormat::Github,
    ReportFormat::Gitlab,
];

static LARGE: LazyLock<Outcome> = LazyLock::new(|| {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/data/outcomes/every_verdict.json"
    );
    #[expect(
        clippy::unwrap_used,
        reason = "the recorded outcome is in the repository"
    )]
    let recorded = read(Path::new(path)).unwrap();
    outcome::large(&recorded, 1_000, 30, true)
});

fn main() {
    for form in FORMS {
        let size = render(&LARGE, form).len();
        #[expect(clippy::print_stdout, reason = "sizes are what is asked for")]
        {
            println!("{form:?}: {size} bytes");
        }
    }
    divan::main();
}

#[divan::bench(args = FORMS, sample_count = 10)]
fn render_one(bencher: Bencher<'_, '_>, form: ReportFormat) {
    let size = render(&LARGE, form).len();
    bencher
        .counter(BytesCount::new(size))
        .bench(|| render(&LARGE, form));
}

#[divan::bench(sample_count = 5)]
fn render_all() -> usize {
    FORMS.iter().map(|form| render(&LARGE, *form).len()).sum()
}
