//! The table of the forms. A new form is a new file with its `render`, and a line here.

use clap::builder::{PossibleValuesParser, TypedValueParser};

use super::form::Rendering::{InParts, Whole};
use super::form::{Capability, Form};
use super::{bencher, github, gitlab, html, json, junit, markdown, otava, sarif, terminal};

/// All forms, in the order of the help.
pub static FORMS: [Form; 10] = [
    Form::new("text", &[".txt"], Whole(terminal::render)).that(Capability::Terminal),
    Form::new("markdown", &[".md"], Whole(markdown::render)).that(Capability::StepSummary),
    Form::new("json", &[".json"], InParts(json::write)),
    Form::new("junit", &[".xml"], Whole(junit::render)),
    Form::new("sarif", &[".sarif", ".sarif.json"], Whole(sarif::render)),
    Form::new("github", &[], Whole(github::render)).that(Capability::Commands),
    Form::new(
        "gitlab",
        &[".codequality.json", "gl-code-quality-report.json"],
        Whole(gitlab::render),
    ),
    Form::new("html", &[".html"], Whole(html::render)),
    Form::new("bencher", &[".bmf.json"], Whole(bencher::render)),
    Form::new("otava", &[".otava.csv"], Whole(otava::render)),
];

/// The form of this name.
pub fn form(name: &str) -> Option<&'static Form> {
    FORMS.iter().find(|form| form.name == name)
}

/// The form that a file's name selects: that of the longest ending.
pub fn form_of_file(name: &str) -> Option<&'static Form> {
    let ending = |form: &&Form| {
        let endings = form
            .endings
            .iter()
            .filter(|ending| name.ends_with(**ending));
        endings.map(|ending| ending.len()).max()
    };
    let matching = FORMS.iter().filter(|form| ending(form).is_some());
    matching.max_by_key(ending)
}

/// The endings, each with its form: `.md (markdown)`.
pub(super) fn endings() -> String {
    let with_endings = FORMS.iter().filter(|form| !form.endings.is_empty());
    let named = with_endings.map(|form| format!("{} ({})", form.endings.join(" or "), form.name));
    named.collect::<Vec<_>>().join(", ")
}

/// Reads the name of a form from the command line.
pub fn form_parser() -> impl TypedValueParser<Value = &'static Form> {
    PossibleValuesParser::new(FORMS.map(|form| form.name))
        .try_map(|name| form(&name).ok_or_else(|| format!("`{name}` is not a form of a report")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_two_forms_share_a_name_or_an_ending() {
        let names: BTreeSet<&str> = FORMS.iter().map(|form| form.name).collect();
        assert_eq!(names.len(), FORMS.len());
        let endings: Vec<&str> = FORMS
            .iter()
            .flat_map(|form| form.endings)
            .copied()
            .collect();
        let own: BTreeSet<&str> = endings.iter().copied().collect();
        assert_eq!(own.len(), endings.len());
        for name in names {
            assert_eq!(form(name).unwrap().name, name);
        }
    }
}
