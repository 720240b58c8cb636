//! One outcome, several forms, all from the same rows.
//!
//! A form is a file with a function `render`; the table of all is in `forms.rs`.

mod bencher;
mod checks;
mod code_table;
mod concern;
mod detail;
mod form;
mod forms;
mod github;
mod gitlab;
mod html;
mod json;
mod junit;
mod markdown;
mod otava;
mod places;
mod plot;
mod print;
mod profiles;
mod progress;
mod rows;
mod sarif;
mod screen;
mod table;
mod target;
mod terminal;
mod values;
mod weight;

pub use checks::checks as checks_text;
pub use code_table::of_profiles as code_table;
pub use detail::Detail;
pub use form::{Capability, Form, Rendering};
pub use forms::{FORMS, form, form_of_file, form_parser};
pub use json::{outcome_schema, parse, read};
pub use places::places;
pub use print::{
    Part, color, columns, is_plain, print, print_commands, print_error, print_json, print_parts,
    print_written, say,
};
pub(crate) use print::{clean, cut, json_for_terminals, one_line};
pub use profiles::text as profiles_text;
pub use progress::Progress;
pub(crate) use table::{lines as table_lines, plain_table};
pub use target::{Target, targets};
pub use terminal::{findings as findings_text, report as outcome_text};
