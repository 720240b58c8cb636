//! The reference of the findings, `docs/findings.md`.

use crate::finding::{Code, Reported};

const HEAD: &str = "\
# Findings

Every finding has a code, which scripts and waivers can match. This page is generated from the table \
in `src/finding/code.rs`.

*Fails* means that the finding fails the check with this exit code, *warns* that it is only a \
warning. *Fails or warns* depends on the case: on the metric's `level`, a waiver, another setting of \
the configuration, or consent (`--accept`). If several findings fail the check, its exit code is the \
first of 5, 3, 4, 1, 6 among theirs. `VARIANT` stands for the variant that the finding names. A \
finding prints the next step of this table, or a more precise one.

| code | severity | exit code | meaning | usual cause | next step |
|---|---|--:|---|---|---|
";

/// The page: one table of all codes, by name.
pub fn findings_page() -> String {
    let mut codes = Code::ALL.to_vec();
    codes.sort_by_key(|code| code.as_str());
    codes.into_iter().fold(HEAD.to_owned(), |mut page, code| {
        page.push_str(&row(code));
        page
    })
}

fn row(code: Code) -> String {
    let name = code.as_str();
    let severity = match code.reported() {
        Reported::Fails => "fails",
        Reported::Warns => "warns",
        Reported::Either => "fails or warns",
    };
    let exit_code = match code.reported() {
        Reported::Warns => "–".to_owned(),
        Reported::Fails | Reported::Either => (code.exit_code() as u8).to_string(),
    };
    format!(
        "| <a id=\"{name}\"></a>`{name}` | {severity} | {exit_code} | {} | {} | {} |\n",
        code.meaning(),
        code.cause(),
        code.next_step()
    )
}
