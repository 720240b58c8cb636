//! The doctor's checks for a terminal.

use anstyle::{AnsiColor, Style};

use super::print::one_line;
use crate::doctor::{Check, State};
use crate::terms::counted;

/// Aligned rows, each with its next step below, and a last line that sums up.
pub fn checks(checks: &[Check]) -> String {
    let width = checks
        .iter()
        .map(|check| check.what.len())
        .max()
        .unwrap_or(0);
    let mut text = String::new();
    for check in checks {
        let style = style(check.state);
        text.push_str(&format!(
            "{style}{:<7}{style:#}  {:<width$}  {}\n",
            check.state.as_str(),
            check.what,
            one_line(&check.detail),
        ));
        if let Some(next) = &check.next {
            text.push_str(&format!(
                "{:width$}  next: {}\n",
                "",
                one_line(next),
                width = width + 9
            ));
        }
    }
    let count = |state| checks.iter().filter(|check| check.state == state).count();
    let (failed, warned) = (count(State::Fail), count(State::Warn));
    let (style, answer) = match (failed, warned) {
        (0, 0) => (
            style(State::Ok),
            "everything that is configured works here".to_owned(),
        ),
        (0, warned) => (
            style(State::Warn),
            format!(
                "it works here, with {}",
                counted(warned, "warning", "warnings")
            ),
        ),
        (failed, _) => (
            style(State::Fail),
            format!("{} to fix first", counted(failed, "thing", "things")),
        ),
    };
    text.push_str(&format!(
        "\n{style}{answer}{style:#}: {} ok, {warned} warn, {failed} fail, {} skipped\n",
        count(State::Ok),
        count(State::Skipped)
    ));
    text
}

fn style(state: State) -> Style {
    let color = match state {
        State::Ok => AnsiColor::Green,
        State::Warn => AnsiColor::Yellow,
        State::Fail => AnsiColor::Red,
        State::Skipped => return Style::new().dimmed(),
    };
    Style::new().bold().fg_color(Some(color.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_aligned_and_the_next_step_is_below_its_row() {
        let check = |what, state, detail: &str, next: Option<&str>| Check {
            what,
            state,
            detail: detail.to_owned(),
            next: next.map(str::to_owned),
        };
        let text = checks(&[
            check("nvcc", State::Ok, "V13.0.88", None),
            check(
                "host compiler",
                State::Fail,
                "not\nthere\u{1b}",
                Some("install g++"),
            ),
            check("GPU", State::Skipped, "none", None),
        ]);
        let plain = anstream::adapter::strip_str(&text).to_string();
        assert_eq!(
            plain,
            "\
ok       nvcc           V13.0.88
fail     host compiler  not there\\u{1b}
                        next: install g++
skipped  GPU            none

1 thing to fix first: 1 ok, 0 warn, 1 fail, 1 skipped
"
        );
    }
}
