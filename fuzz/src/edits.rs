//! Edits of a report that change no number: parts are removed, repeated, exchanged, or cut off. The
//! bytes of an input are the edits.

use std::sync::LazyLock;

use ncu_report::report;

use crate::checks::Numbers;
use crate::wire::{Content, Message, Report};

/// Field numbers in the header of a block: the counts of its payload, and the names of metrics.
const COUNTS: [u64; 5] = [1, 2, 7, 8, 9];
const NAMES: u64 = 4;

struct Original {
    report: Report,
    numbers: Vec<Numbers>,
}

static ORIGINALS: LazyLock<Vec<Original>> = LazyLock::new(|| {
    let files: [&[u8]; 3] = [
        include_bytes!("../reports/graph_after_kernels.ncu-rep"),
        include_bytes!("../reports/instructions.ncu-rep"),
        include_bytes!("../reports/three_launches.ncu-rep"),
    ];
    let original = |bytes: &&[u8]| {
        let report = Report::read(bytes).expect("a report");
        let numbers = Numbers::of_all(&report::read(bytes).expect("a report"));
        // Otherwise the edits would not be the only difference.
        let written = report::read(&report.write()).expect("a report");
        assert_eq!(Numbers::of_all(&written), numbers);
        Original { report, numbers }
    };
    files.iter().map(original).collect()
});

/// Reads a report after the edits of an input, and panics where it then has a number that the
/// report did not have.
pub fn check(input: &[u8]) {
    let Some((first, edits)) = input.split_first() else {
        return;
    };
    let original = &ORIGINALS[usize::from(*first) % ORIGINALS.len()];
    let mut report = original.report.clone();
    let mut keep = None;
    for edit in edits.chunks_exact(6).take(16) {
        match edit[0] % 8 {
            0 => blocks(&mut report, edit),
            1 | 2 => payload(&mut report, edit),
            7 => keep = Some(u16::from_le_bytes([edit[1], edit[2]])),
            _ => fields(&mut report, edit),
        }
    }
    let mut bytes = report.write();
    if let Some(keep) = keep {
        bytes.truncate(bytes.len() * usize::from(keep) / usize::from(u16::MAX));
    }
    let read = report::read(&bytes);
    crate::checks::recording(&bytes, &read);
    let Ok(recording) = read else { return };
    for numbers in Numbers::of_all(&recording) {
        let known = original.numbers.iter().any(|whole| numbers.are_in(whole));
        assert!(known, "no launch of the original has all of {numbers:?}");
    }
}

/// Removes, repeats, exchanges or cuts off items of a list.
fn list<T: Clone>(items: &mut Vec<T>, edit: &[u8]) {
    if items.is_empty() {
        return;
    }
    let at = |byte: u8| usize::from(byte) % items.len();
    let (one, other) = (at(edit[3]), at(edit[4]));
    match edit[5] % 4 {
        0 => drop(items.remove(one)),
        1 => items.insert(one, items[one].clone()),
        2 => items.swap(one, other),
        _ => items.truncate(one),
    }
}

/// The order of the tables of names gives the numbers their names, and a report has no sign of the
/// right order. So blocks with names stay where they are.
fn blocks(report: &mut Report, edit: &[u8]) {
    let named = |header: &Message| header.iter().any(|field| field.number == NAMES);
    let at = |byte: u8| usize::from(byte) % report.blocks.len().max(1);
    let fixed = |byte: u8| {
        report
            .blocks
            .get(at(byte))
            .is_some_and(|block| named(&block.header))
    };
    if !fixed(edit[3]) && !fixed(edit[4]) {
        list(&mut report.blocks, edit);
    }
}

fn payload(report: &mut Report, edit: &[u8]) {
    let count = report.blocks.len().max(1);
    let Some(block) = report.blocks.get_mut(usize::from(edit[1]) % count) else {
        return;
    };
    let before = block.payload.len();
    list(&mut block.payload, edit);
    // Half of the edits leave a count that is wrong.
    if edit[2].is_multiple_of(2) {
        let counted = |field: &&mut crate::wire::Field| {
            COUNTS.contains(&field.number) && field.content != Content::Integer(0)
        };
        if let Some(field) = block.header.iter_mut().rfind(counted)
            && let Content::Integer(value) = &mut field.content
        {
            *value = value
                .wrapping_add(block.payload.len() as u64)
                .wrapping_sub(before as u64);
        }
    }
}

/// The fields of a message of a payload, at any depth.
fn fields(report: &mut Report, edit: &[u8]) {
    let count = report.blocks.len().max(1);
    let Some(block) = report.blocks.get_mut(usize::from(edit[1] >> 4) % count) else {
        return;
    };
    let count = block.payload.len().max(1);
    let Some(message) = block.payload.get_mut(usize::from(edit[1] & 15) % count) else {
        return;
    };
    let mut chosen = message;
    let mut path = edit[2];
    while path & 1 == 1 {
        path >>= 1;
        let nested = chosen
            .iter()
            .filter(|field| matches!(field.content, Content::Message(_)));
        let nested = nested.count();
        if nested == 0 {
            break;
        }
        let index = (usize::from(edit[4]) + usize::from(path)) % nested;
        let inner = chosen
            .iter_mut()
            .filter_map(|field| match &mut field.content {
                Content::Message(inner) => Some(inner),
                _ => None,
            });
        let Some(inner) = inner.into_iter().nth(index) else {
            return;
        };
        chosen = inner;
    }
    list(chosen, edit);
}
