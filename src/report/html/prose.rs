//! Text of messages on a page.

use maud::{Markup, html};

use crate::report::print::one_line;

/// Text, in which the parts between backquotes are code.
pub(super) fn prose(text: &str) -> Markup {
    let text = one_line(text);
    let parts: Vec<&str> = text.split('`').collect();
    // A backquote without a second one is text.
    if parts.len().is_multiple_of(2) {
        return html! { (text) };
    }
    html! {
        @for (at, part) in parts.iter().enumerate() {
            @if at % 2 == 1 { code { (part) } } @else { (part) }
        }
    }
}
