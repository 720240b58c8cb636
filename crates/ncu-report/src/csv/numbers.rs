//! The separators of a page's numbers. ncu prints numbers by the locale of its machine: `27,584.50`
//! is `27.584,50` under de_DE.
//!
//! Under each of eleven locales ncu 2024.1 prints two decimals or none; or six of them behind a point,
//! whatever the locale is, where it scales a unit. It never prints three. So `27.584` is not a number of
//! the locale C, but only another number of the page proves that it is 27,584.

use super::cell::{Cell, Number};
use super::marks::{
    COMMA, COMMA_GROUPS, INDIAN_GROUPS, LONE_COMMA, LONE_POINT, POINT, POINT_GROUPS, QUOTE_GROUPS,
    SPACE_GROUPS, USUAL,
};
use crate::error::ReadError;

/// The decimals of a number in a scaled unit, which are behind a point under every locale.
const SCALED_DECIMALS: usize = 6;

/// The numbers of one table.
#[derive(Default)]
pub(super) struct Numbers {
    /// Most decimals of any number.
    pub(super) decimals: u8,
    /// The decimal mark of the locale, where the usual reading does not understand its numbers.
    locale: Option<u8>,
    /// What was seen so far, and the first number with each mark, with its line.
    seen: u16,
    examples: Vec<(u16, String, u64)>,
}

impl Numbers {
    /// For a table of the locale with this decimal mark.
    pub(super) fn of(decimal: u8) -> Numbers {
        Numbers {
            locale: Some(decimal),
            ..Numbers::default()
        }
    }

    /// The content of a cell with a value of the metric `name`.
    #[inline]
    pub(super) fn parse<'a>(
        &mut self,
        name: &str,
        cell: &'a [u8],
        line: impl FnOnce() -> u64,
    ) -> Cell<'a> {
        match Cell::parse(cell) {
            // Nearly all cells: what they show of the locale was seen before.
            Cell::Number(number)
                if self.locale.is_none() && number.marks & (!self.seen | LONE_POINT) == 0 =>
            {
                self.decimals = number.decimals.max(self.decimals);
                Cell::Number(number)
            }
            parsed => self.note(name, cell, parsed, line),
        }
    }

    /// Notes what a cell shows of the locale, and reads it by the locale of the table.
    #[inline(never)]
    fn note<'a>(
        &mut self,
        name: &str,
        mut cell: &'a [u8],
        mut parsed: Cell<'a>,
        line: impl FnOnce() -> u64,
    ) -> Cell<'a> {
        if let Cell::Text(text) = parsed
            && let Some(whole) = without_instances(text)
        {
            (cell, parsed) = (whole, Cell::parse(whole));
        }
        let marks = match parsed {
            Cell::Number(number) => number.marks,
            Cell::Text(text) => marks_of(name, &runs(text)),
            Cell::Missing => 0,
        };
        let parsed = match self.locale {
            Some(decimal) if marks != 0 => of_locale(decimal, cell).map_or(parsed, Cell::Number),
            // The page will be refused or read once more: a text would take memory until then.
            None if marks & !USUAL != 0 => Cell::Missing,
            _ => parsed,
        };
        if let Cell::Number(number) = parsed {
            self.decimals = number.decimals.max(self.decimals);
        }
        let decides = marks == LONE_POINT && self.seen & POINT_GROUPS == 0 && is_whole(name);
        if marks & !self.seen != 0 || decides {
            let marks = if decides { POINT_GROUPS } else { marks };
            self.seen |= marks;
            let cell = String::from_utf8_lossy(cell).into_owned();
            self.examples.push((marks, cell, line()));
        }
        parsed
    }

    /// The decimal mark of the locale that the table must be read with instead; `None` if it was
    /// understood.
    ///
    /// # Errors
    /// [`ReadError::Line`] if its numbers contradict each other, or leave open what they are.
    pub(super) fn locale(&self) -> Result<Option<u8>, ReadError> {
        let has = |marks: u16| self.seen & marks != 0;
        if self.locale.is_some() || self.seen & !USUAL == 0 && !has(LONE_POINT) {
            return Ok(None);
        }
        let groups = [
            COMMA_GROUPS | INDIAN_GROUPS,
            POINT_GROUPS,
            SPACE_GROUPS,
            QUOTE_GROUPS,
        ];
        let of_comma = COMMA | POINT_GROUPS;
        let of_point = POINT | COMMA_GROUPS | INDIAN_GROUPS;
        let apart = SPACE_GROUPS | QUOTE_GROUPS;
        let contradict = groups.into_iter().filter(|&marks| has(marks)).count() > 1
            || has(of_comma) && has(of_point)
            // ncu prints no three decimals, and a group stands beside no decimal comma.
            || has(COMMA) && has(LONE_COMMA) && !has(apart | POINT_GROUPS)
            // A third kind of separator beside the two of the locale, or none of which is which.
            || has(apart) && has(LONE_POINT) && !has(POINT)
            || has(apart) && has(LONE_COMMA) && !has(COMMA);
        if contradict {
            let shown = self
                .examples
                .iter()
                .map(|(_, cell, line)| format!("{cell:?} on line {line}"));
            let shown: Vec<String> = shown.collect();
            return Err(self.refuse(format!(
                "the numbers have the separators of different locales: {}",
                shown.join(", ")
            )));
        }
        if has(of_comma) || has(apart | INDIAN_GROUPS) {
            return Ok(Some(match has(of_point) {
                true => b'.',
                false => b',',
            }));
        }
        if has(of_point) {
            return Ok(None);
        }
        let example = self
            .examples
            .iter()
            .find(|(marks, ..)| *marks == LONE_POINT);
        let cell = example.map_or("", |(_, cell, _)| cell);
        Err(self.refuse(format!(
            "{cell:?} is {} with numbers of the locale de_DE (`.` groups thousands, `,` is the \
             decimal mark) and {cell} with those of C, and no other number of the page decides",
            cell.replace('.', ",")
        )))
    }

    fn refuse(&self, problem: String) -> ReadError {
        let line = self.examples.iter().map(|(_, _, line)| *line).max();
        ReadError::line(
            line.unwrap_or_default(),
            format!("{problem}; print the page again with LC_ALL=C"),
        )
    }
}

/// Whether every value of a metric is a whole number, so that `1.024` is 1,024.
fn is_whole(name: &str) -> bool {
    const SIZES: [&str; 3] = [
        "launch__grid_size", "launch__block_size", "launch__thread_count",
    ];
    name.starts_with("device__attribute_") || SIZES.contains(&name)
}

/// The value before those of the instances, as `--print-metric-instances` prints them: `3 (1; 2)`,
/// `3 (0: 1; 16: 2)`. It is empty for a metric without a value of its own: `(1; 2)`.
fn without_instances(cell: &[u8]) -> Option<&[u8]> {
    let inner = cell.strip_suffix(b")")?;
    let open = inner.iter().position(|&byte| byte == b'(')?;
    let (whole, instances) = (inner.get(..open)?.trim_ascii_end(), inner.get(open + 1..)?);
    let is_value = |cell: &[u8]| {
        let cell = cell.trim_ascii();
        !matches!(Cell::parse(cell), Cell::Text(_)) || !runs(cell).is_empty()
    };
    let mut each = instances.split(|&byte| byte == b';');
    let first = each.next()?.rsplit(|&byte| byte == b':').next()?;
    // One number in parentheses may be a text.
    let is_list = each.next().is_some() || !whole.is_empty();
    (is_list && is_value(whole) && is_value(first)).then_some(whole)
}

/// The digits of a number with any separators, each behind its separator: `.`, `,`, a space or `'`, and 0
/// before the first; none for another text.
fn runs(cell: &[u8]) -> Vec<(u8, &[u8])> {
    /// Files of Windows and files that were converted have them in another encoding.
    const FORMS: [(u8, &[u8]); 11] = [
        (b'.', b"."),
        (b',', b","),
        (b' ', b" "),
        (b' ', "\u{a0}".as_bytes()),
        (b' ', "\u{202f}".as_bytes()),
        (b' ', "\u{2009}".as_bytes()),
        (b' ', "\u{fffd}".as_bytes()),
        (b' ', b"\xa0"),
        (b' ', b"\xff"),
        (b'\'', b"'"),
        (b'\'', "\u{2019}".as_bytes()),
    ];
    let text = cell.trim_ascii();
    let mut rest = text.strip_prefix(b"-").unwrap_or(text);
    let (mut runs, mut separator) = (Vec::new(), 0);
    // No number has more digits, and a cell of a list may be long.
    while runs.len() <= 16 {
        let length = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (digits, behind) = rest.split_at(length);
        runs.push((separator, digits));
        if behind.is_empty() && !digits.is_empty() {
            return runs;
        }
        let form = FORMS.iter().find(|(_, form)| behind.starts_with(form));
        let Some((next, form)) = form.filter(|_| !digits.is_empty()) else {
            break;
        };
        (separator, rest) = (*next, &behind[form.len()..]);
    }
    Vec::new()
}

/// What a number that the usual reading does not understand shows of the locale; zero if it is none.
fn marks_of(name: &str, runs: &[(u8, &[u8])]) -> u16 {
    let [(_, first), inner @ .., (end, last)] = runs else {
        return 0;
    };
    // Lists of processors and nodes: `0,1`.
    if name.starts_with("numa__") {
        return 0;
    }
    let begins = (1..=3).contains(&first.len()) && first.first() != Some(&b'0');
    let group = inner.first().map_or(*end, |(separator, _)| *separator);
    let of_groups = match group {
        b'.' => POINT_GROUPS,
        b',' => COMMA_GROUPS,
        b' ' => SPACE_GROUPS,
        _ => QUOTE_GROUPS,
    };
    let in_groups = inner.iter().all(|(_, digits)| digits.len() == 3);
    match *end {
        b',' if inner.is_empty() => match begins && last.len() == 3 {
            true => LONE_COMMA,
            false => COMMA,
        },
        b'.' if inner.is_empty() => POINT,
        _ if !begins || inner.iter().any(|(separator, _)| *separator != group) => 0,
        end if in_groups && end == group && last.len() == 3 => of_groups,
        b'.' if in_groups && group != b'.' => of_groups | POINT,
        b',' if in_groups && group != b',' => of_groups | COMMA,
        _ if group == b',' && is_indian(runs) => INDIAN_GROUPS,
        _ => 0,
    }
}

/// Whether commas separate a last group of three digits from groups of two before it.
fn is_indian(runs: &[(u8, &[u8])]) -> bool {
    let groups = runs.iter().filter(|(separator, _)| *separator == b',');
    let lengths: Vec<usize> = groups.map(|(_, digits)| digits.len()).collect();
    let end = lengths.split_last();
    end.is_some_and(|(last, others)| *last == 3 && others.iter().all(|length| *length == 2))
}

/// A number of the locale with this decimal mark.
fn of_locale(decimal: u8, cell: &[u8]) -> Option<Number> {
    let runs = runs(cell);
    let scaled = matches!(runs[..], [_, (b'.', last)] if last.len() == SCALED_DECIMALS);
    let mut plain = Vec::new();
    if cell.trim_ascii().starts_with(b"-") {
        plain.push(b'-');
    }
    for (separator, digits) in runs {
        if separator == decimal || scaled && separator > 0 {
            plain.push(b'.');
        }
        plain.extend_from_slice(digits);
    }
    match Cell::parse(&plain) {
        Cell::Number(number) => Some(number),
        Cell::Missing | Cell::Text(_) => None,
    }
}
