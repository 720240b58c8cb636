//! Which GPUs of this host a command line asks for.

use std::str::FromStr;

use super::gpu::Gpu;
use crate::finding::Error;

/// How every UUID of a GPU begins.
const UUID: &str = "GPU-";
/// The fewest characters of a UUID that name a GPU for people: the first group of digits.
pub const SHORTEST_UUID: usize = UUID.len() + 8;

/// Which GPUs of this host are asked for: those of these words, each an ordinal or the beginning of a UUID;
/// without words all that the driver shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GpusAsked(Option<Vec<String>>);

impl FromStr for GpusAsked {
    type Err = String;

    fn from_str(text: &str) -> Result<GpusAsked, String> {
        if text == "all" {
            return Ok(GpusAsked::default());
        }
        let is_uuid = |digits: &str| {
            let is_digit = |byte: u8| byte.is_ascii_hexdigit() || byte == b'-';
            !digits.is_empty() && digits.bytes().all(is_digit)
        };
        let named = |word: &str| match (word.parse::<u32>(), word.split_at_checked(UUID.len())) {
            // As `CUDA_VISIBLE_DEVICES` leaves the ordinals.
            (Ok(ordinal), _) if !word.starts_with('+') => Ok(ordinal.to_string()),
            (_, Some((begin, digits))) if begin.eq_ignore_ascii_case(UUID) && is_uuid(digits) => {
                Ok(format!("{UUID}{}", digits.to_ascii_lowercase()))
            }
            _ => Err(format!(
                "{word:?} names no GPU: write all, 0,2 or GPU-1a2b3c4d"
            )),
        };
        let words: Result<Vec<String>, String> = text.split(',').map(named).collect();
        Ok(GpusAsked(Some(words?)))
    }
}

impl GpusAsked {
    /// Those of all GPUs of this host that are asked for, each once, in the order of the command
    /// line.
    ///
    /// # Errors
    /// [`Error::Environment`] where this host has no such GPU; [`Error::Usage`] where a word names several,
    /// or one is named twice.
    pub fn of(&self, all: &[Gpu]) -> Result<Vec<Gpu>, Error> {
        let GpusAsked(Some(words)) = self else {
            return Ok(all.to_vec());
        };
        let mut found: Vec<Gpu> = Vec::new();
        for word in words {
            let is_named = |gpu: &&Gpu| match word.starts_with(UUID) {
                true => gpu.uuid.starts_with(word),
                false => gpu.ordinal.to_string() == *word,
            };
            let named: Vec<Gpu> = all.iter().filter(is_named).cloned().collect();
            let gpu = match named.as_slice() {
                [one] => one,
                [] => {
                    return Err(Error::environment(
                        format!("there is no GPU {word}: the driver shows {}", list(all)),
                        "name one of these, and check CUDA_VISIBLE_DEVICES",
                    ));
                }
                several => {
                    return Err(Error::Usage(format!(
                        "the beginning {word} is that of several GPUs: {}\n  next: write more of the UUID",
                        list(several)
                    )));
                }
            };
            if found.contains(gpu) {
                return Err(Error::Usage(format!(
                    "`--gpus` names {} twice\n  next: name each GPU once",
                    gpu.uuid
                )));
            }
            found.push(gpu.clone());
        }
        Ok(found)
    }
}

fn list(gpus: &[Gpu]) -> String {
    let words = gpus
        .iter()
        .map(|gpu| format!("{} ({})", gpu.ordinal, gpu.uuid));
    words.collect::<Vec<_>>().join(", ")
}

/// A name of each GPU that is short and that no other of them has: the beginning of its UUID.
pub fn short_names(gpus: &[Gpu]) -> Vec<String> {
    let longest = gpus.iter().map(|gpu| gpu.uuid.len()).max().unwrap_or(0);
    let cut = |length: usize| -> Vec<String> {
        let names = gpus.iter().map(|gpu| gpu.uuid.chars().take(length));
        names.map(Iterator::collect).collect()
    };
    let differ = |names: &[String]| {
        let mut sorted: Vec<&String> = names.iter().collect();
        sorted.sort_unstable();
        sorted.windows(2).all(|pair| pair[0] != pair[1])
    };
    let lengths = SHORTEST_UUID..longest;
    let mut names = lengths.map(cut).filter(|names| differ(names));
    names.next().unwrap_or_else(|| cut(longest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gpus() -> Vec<Gpu> {
        let uuids = [
            "GPU-1a2b3c4d-0000-0000-0000-000000000001",
            "GPU-1a2b3c4d-0000-0000-0000-000000000002",
            "GPU-5e6f7081-0000-0000-0000-000000000003",
        ];
        let gpu = |(ordinal, uuid): (u32, &str)| Gpu {
            ordinal,
            uuid: uuid.to_owned(),
            ..Gpu::default()
        };
        (0..).zip(uuids).map(gpu).collect()
    }

    fn ordinals(asked: &str) -> Result<Vec<u32>, String> {
        let found = asked.parse::<GpusAsked>()?.of(&gpus());
        let found = found.map_err(|error| error.to_string())?;
        Ok(found.iter().map(|gpu| gpu.ordinal).collect())
    }

    #[test]
    fn gpus_are_named_by_ordinal_or_by_the_beginning_of_the_uuid() {
        assert_eq!(ordinals("all").unwrap(), [0, 1, 2]);
        assert_eq!(ordinals("2,0").unwrap(), [2, 0]);
        assert_eq!(ordinals("gpu-5E6F,1").unwrap(), [2, 1]);
        for (asked, why) in [
            ("3", "there is no GPU 3: the driver shows 0 (GPU-1a2b3c4d-"),
            ("GPU-77", "there is no GPU GPU-77"),
            ("GPU-1a2b", "is that of several GPUs: 0 ("),
            (
                "1,1",
                "names GPU-1a2b3c4d-0000-0000-0000-000000000002 twice",
            ),
            ("", "names no GPU"),
            ("0,,1", "names no GPU"),
            ("GPU-", "names no GPU"),
            ("GPU-../x", "names no GPU"),
            ("ALL", "names no GPU"),
            ("99999999999", "names no GPU"),
            ("-1", "names no GPU"),
        ] {
            let said = ordinals(asked).unwrap_err();
            assert!(said.contains(why), "{asked}: {said}");
        }
    }

    #[test]
    fn a_short_name_is_as_long_as_it_must_be_to_differ() {
        let all = gpus();
        assert_eq!(short_names(&all[1..]), ["GPU-1a2b3c4d", "GPU-5e6f7081"]);
        let long: Vec<&str> = all[..2].iter().map(|gpu| gpu.uuid.as_str()).collect();
        assert_eq!(short_names(&all[..2]), long);
        assert_eq!(short_names(&[]), [""; 0]);
    }
}
