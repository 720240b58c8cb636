//! The fields in which the messages of the four kinds of results differ.

use crate::launch::ResultKind;

/// Field numbers of a result message.
pub(super) struct Layout {
    pub(super) kind: ResultKind,
    /// ncu's name of the kind.
    pub(super) name: &'static str,
    pub(super) metrics: u64,
    pub(super) context: Option<u64>,
    pub(super) stream: Option<u64>,
    pub(super) clock: Option<u64>,
}

/// `ProfileResult`, `RangeResult`, `CmdlistResult` and `GraphResult`, in their order in a payload.
pub(super) const LAYOUTS: [Layout; 4] = [
    Layout {
        kind: ResultKind::Kernel,
        name: "kernel",
        metrics: 13,
        context: Some(22),
        stream: Some(23),
        clock: Some(25),
    },
    Layout {
        kind: ResultKind::Range,
        name: "range",
        metrics: 4,
        context: None,
        stream: None,
        clock: None,
    },
    Layout {
        kind: ResultKind::CommandList,
        name: "cmdlist",
        metrics: 4,
        context: None,
        stream: None,
        clock: None,
    },
    Layout {
        kind: ResultKind::Graph,
        name: "graph",
        metrics: 4,
        context: Some(11),
        stream: Some(12),
        clock: Some(13),
    },
];
