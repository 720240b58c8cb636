//! Every form of a report, of a check of 1,000 kernels with 30 metrics each.

use std::path::Path;
use std::sync::LazyLock;

use divan::Bencher;
use divan::counter::BytesCount;
use sparsek_gate::judge::Outcome;
use sparsek_gate::report::{form, read};

#[path = "../tests/common/outcome.rs"]
mod outcome;

const FORMS: [&str; 7] = [
    "text", "markdown", "json", "junit", "sarif", "github", "gitlab",
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
    outcome::large(&recorded, [20, 50, 30], true)
});

/// The large outcome in the form of this name.
fn rendered(name: &str) -> String {
    let mut text = Vec::new();
    if let Some(form) = form(name) {
        let _ = form.write(&LARGE, &mut text);
    }
    String::from_utf8(text).unwrap_or_default()
}

fn main() {
    for form in FORMS {
        let size = rendered(form).len();
        #[expect(clippy::print_stdout, reason = "the sizes are the result")]
        {
            println!("{form}: {size} bytes");
        }
    }
    divan::main();
}

#[divan::bench(args = FORMS, sample_count = 10)]
fn render_one(bencher: Bencher<'_, '_>, form: &str) {
    let size = rendered(form).len();
    bencher
        .counter(BytesCount::new(size))
        .bench(|| rendered(form));
}

#[divan::bench(sample_count = 5)]
fn render_all() -> usize {
    FORMS.iter().map(|form| rendered(form).len()).sum()
}
