//! What must hold of everything that a reader returns.

use std::collections::BTreeSet;

use ncu_report::{Launch, ReadError, Recording, Value, report};

/// The numbers of a launch, in an order of their own.
#[derive(Debug, PartialEq)]
pub struct Numbers {
    /// Grid and block.
    pub shape: [[u64; 3]; 2],
    /// Name and bits of each metric that is a number.
    pub metrics: BTreeSet<(String, u64)>,
}

impl Numbers {
    /// The numbers without the names of metrics, which may contain what a copy must not.
    pub fn values(&self) -> ([[u64; 3]; 2], Vec<u64>) {
        let mut values: Vec<u64> = self.metrics.iter().map(|(_, bits)| *bits).collect();
        values.sort_unstable();
        (self.shape, values)
    }

    /// All of them, but not what identifies a GPU, which copies for publication lack.
    pub fn of(launch: &Launch) -> Numbers {
        let metrics = launch.metrics.iter().filter_map(|(name, measurement)| {
            let bits = match measurement.value {
                Value::Integer(number) => number,
                Value::Float(number) => number.to_bits(),
                _ => return None,
            };
            (!report::identifies_the_gpu(name)).then(|| (name.to_string(), bits))
        });
        Numbers {
            shape: [launch.grid, launch.block],
            metrics: metrics.collect(),
        }
    }

    pub fn of_all(recording: &Recording) -> Vec<Numbers> {
        recording.launches.iter().map(Numbers::of).collect()
    }

    /// Whether each of these numbers is also in `whole`. Zeros stand for what is not stated.
    pub fn are_in(&self, whole: &Numbers) -> bool {
        let sides = self.shape.iter().flatten();
        let known = sides.zip(whole.shape.iter().flatten());
        known
            .into_iter()
            .all(|(part, whole)| *part == 0 || part == whole)
            && self.metrics.is_subset(&whole.metrics)
    }
}

/// Holds of what any reader of captures returns.
pub fn recording(input: &[u8], read: &Result<Recording, ReadError>) {
    match read {
        Err(error) => {
            // That of a compressed report counts in the report in it.
            let is_compressed = report::ending(input) == Some(report::ENDINGS[1]);
            if let (ReadError::Report { offset, .. }, false) = (error, is_compressed) {
                assert!(*offset <= input.len(), "{error}");
            }
            let message = error.to_string();
            assert!(!message.is_empty());
        }
        Ok(recording) => {
            for launch in &recording.launches {
                for (name, measurement) in launch.metrics.iter() {
                    if let Value::Float(number) = measurement.value {
                        assert!(number.is_finite(), "{name} is {number}");
                    }
                    assert_eq!(launch.metrics.get(name), Some(measurement), "{name}");
                }
                for label in &launch.labels {
                    if let Value::Float(number) = label.measurement.value {
                        assert!(number.is_finite(), "{} is {number}", label.name);
                    }
                }
            }
        }
    }
}

/// The first number of a GPU in a text that stands as a word of its own.
pub fn gpu_uuid(text: &[u8]) -> Option<&[u8]> {
    const FORM: &[u8] = b"GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
    let fits = |part: &[u8]| {
        let mut pairs = part.iter().zip(FORM);
        pairs.all(|(byte, form)| match form {
            b'x' => byte.is_ascii_hexdigit(),
            form => byte == form,
        })
    };
    let in_word =
        |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    let mut places = 0..text.len();
    let place = places.find(|at| {
        let end = at + FORM.len();
        text.get(*at..end).is_some_and(fits)
            && !in_word(at.checked_sub(1).and_then(|at| text.get(at)))
            && !in_word(text.get(end))
    })?;
    text.get(place..place + FORM.len())
}

/// A JSON document without what is in its texts.
pub fn outside_texts(document: &[u8]) -> Vec<u8> {
    let (mut outside, mut in_text, mut escaped) = (Vec::new(), false, false);
    for byte in document {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => {
                in_text = !in_text;
                outside.push(*byte);
            }
            _ if in_text => {}
            _ => outside.push(*byte),
        }
    }
    outside
}
