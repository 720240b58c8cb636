//! A table without lines, for a terminal.

use comfy_table::{ContentArrangement, Table, presets};

/// A table without lines, whose cells are never broken.
pub fn plain_table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(header);
    table
}

/// The lines of a table, without blanks at their ends.
pub fn lines(table: &Table) -> String {
    table.lines().fold(String::new(), |mut text, line| {
        text.push_str(line.trim_end());
        text.push('\n');
        text
    })
}
