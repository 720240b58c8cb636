//! The GPUs in quarantine, as text.

use std::fmt::Write as _;

use crate::quarantine::{Lifting, Quarantined};

/// The GPUs in quarantine, and the one that was lifted now.
pub fn text(stored: &[Quarantined], lifted: Option<&Lifting>) -> String {
    let mut text = String::new();
    if let Some(lifted) = lifted {
        let _ = writeln!(text, "{} is no longer in quarantine", lifted.uuid);
    }
    if stored.is_empty() {
        text.push_str("no GPU is in quarantine\n");
        return text;
    }
    for one in stored {
        let _ = writeln!(text, "{}", one.uuid);
        match &one.entry {
            Ok(entry) => {
                let _ = writeln!(
                    text,
                    "  {} in {}, since {}\n  {}\n  captures: {}",
                    entry.gpu.name, entry.host, entry.since, entry.text, entry.run
                );
            }
            Err(_) => {
                let _ = writeln!(text, "  {}", one.words());
            }
        }
    }
    let _ = writeln!(
        text,
        "  next: once the GPU is repaired: sparsek-gate quarantine --lift UUID --reason '...'"
    );
    text
}
