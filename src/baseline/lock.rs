//! The lock: hashes of what was accepted, and a ledger of who accepted it, when and why.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::files::most;
use crate::git;
use crate::hash::sha256_hex;
use crate::terms::VariantId;

/// `<variant>.lock.toml`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lock {
    /// Version of this format.
    pub schema: u32,
    /// Which variant.
    pub variant: VariantId,
    /// Whether the variant's sources, headers and flags are locked too.
    pub immutable: bool,
    /// Hash of the last entry of the ledger, which shows whether that entry was edited.
    pub head: String,
    /// Flags of an immutable variant.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<String>,
    /// Path to sha256 of an immutable variant's source and headers.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sources: BTreeMap<String, String>,
    /// Every acceptance, the oldest first.
    pub ledger: Vec<Entry>,
}

/// One acceptance of a baseline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// RFC 3339, UTC.
    pub time: String,
    /// Who locked.
    pub who: String,
    /// Why.
    pub reason: String,
    /// sha256 of `<variant>.norm.txt`.
    pub norm_sha256: String,
    /// sha256 of `<variant>.profile.json`.
    pub profile_sha256: String,
    /// sha256 over flags and sources, of an immutable variant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code_sha256: Option<String>,
    /// Hash of the entry before; 64 zeros for the first.
    pub previous: String,
}

impl Entry {
    /// `previous` of the first entry.
    pub const GENESIS: &'static str =
        "0000000000000000000000000000000000000000000000000000000000000000";

    /// sha256 of the entry's JSON form, fields in the order of the type.
    pub fn hash(&self) -> String {
        sha256_hex(&serde_json::to_vec(self).unwrap_or_default())
    }
}

impl Lock {
    /// Version of the format.
    pub const SCHEMA: u32 = 1;

    /// Reads a lock.
    ///
    /// # Errors
    /// Says what is wrong with the text.
    pub fn parse(text: &str) -> Result<Lock, String> {
        if text.len() as u64 > most::CONFIG {
            return Err(format!("it is larger than {} MiB", most::CONFIG >> 20));
        }
        // A text that is no lock may be a secret, which no message quotes.
        let table: toml::Table = toml::from_str(text).map_err(|error| {
            if let Some(line) = git::conflict(text.as_bytes()) {
                return format!("git left a conflict of a merge in line {line}");
            }
            let before = error.span().and_then(|span| text.get(..span.start));
            let line = before.map_or(0, |before| before.matches('\n').count()) + 1;
            format!("it is no TOML: line {line}")
        })?;
        let lock: Lock = table.try_into().map_err(|error: toml::de::Error| {
            let what = error
                .message()
                .split(['`', '"', ':'])
                .next()
                .unwrap_or_default();
            format!("it is no lock: {}", what.trim())
        })?;
        if lock.schema != Self::SCHEMA {
            return Err(format!(
                "lock schema {} (this version reads {})",
                lock.schema,
                Self::SCHEMA
            ));
        }
        Ok(lock)
    }

    /// The TOML form.
    pub fn to_toml(&self) -> String {
        toml::to_string_pretty(self).unwrap_or_default()
    }

    /// sha256 over flags and sources.
    pub fn code_sha256(&self) -> Option<String> {
        self.immutable.then(|| {
            let text = serde_json::to_vec(&(&self.flags, &self.sources)).unwrap_or_default();
            sha256_hex(&text)
        })
    }

    /// Contradictions in the ledger: entries that were edited, removed or inserted.
    pub fn contradictions(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut previous = Entry::GENESIS.to_owned();
        let mut before = "";
        for (index, entry) in self.ledger.iter().enumerate() {
            if entry.previous != previous {
                found.push(format!(
                    "entry {} of the ledger ({}) does not follow the entry before it: the ledger was edited",
                    index + 1,
                    entry.time
                ));
            }
            if *entry.time < *before {
                found.push(format!(
                    "entry {} of the ledger ({}) is dated before the entry before it ({before})",
                    index + 1,
                    entry.time
                ));
            }
            (previous, before) = (entry.hash(), &entry.time);
        }
        if self.head != previous {
            found.push("the last entry of the ledger was edited after it was locked".to_owned());
        }
        match self.ledger.last() {
            None => found.push("the ledger is empty".to_owned()),
            Some(last) if last.code_sha256 != self.code_sha256() => {
                found.push(
                    "the sources or flags in the lock differ from those that its ledger accepted"
                        .to_owned(),
                );
            }
            Some(_) => {}
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lock() -> Lock {
        let mut lock = Lock {
            schema: 1,
            variant: VariantId {
                suite: "s".into(),
                variant: "v".into(),
            },
            immutable: true,
            head: String::new(),
            flags: vec!["-O3".into()],
            sources: BTreeMap::from([("a.cu".to_owned(), "00".to_owned())]),
            ledger: Vec::new(),
        };
        let mut previous = Entry::GENESIS.to_owned();
        for reason in ["first", "second", "third"] {
            let entry = Entry {
                time: "2026-11-21T00:00:00Z".into(),
                who: "a person".into(),
                reason: reason.into(),
                norm_sha256: "1".into(),
                profile_sha256: "2".into(),
                code_sha256: lock.code_sha256(),
                previous,
            };
            previous = entry.hash();
            lock.ledger.push(entry);
        }
        lock.head = previous;
        lock
    }

    #[test]
    fn no_message_on_what_is_no_lock_quotes_it() {
        for (text, expected) in [
            ("A=1\nTOKEN=hunter2\n", "it is no TOML: line 2"),
            ("PATH=/bin\0TOKEN=hunter2", "it is no TOML: line 1"),
            (
                "[registry]\ntoken = \"hunter2\"\n", "it is no lock: unknown field",
            ),
            ("schema = \"hunter2\"\n", "it is no lock: invalid type"),
        ] {
            assert_eq!(Lock::parse(text).unwrap_err(), expected);
        }
    }

    #[test]
    fn a_lock_survives_being_written_and_read() {
        assert_eq!(Lock::parse(&lock().to_toml()).unwrap(), lock());
        assert!(lock().contradictions().is_empty());
    }

    #[test]
    fn every_edit_of_the_ledger_is_found() {
        let edits: [fn(&mut Lock); 10] = [
            |lock| lock.head = "0".repeat(64),
            |lock| drop(lock.ledger.remove(0)),
            |lock| drop(lock.ledger.remove(1)),
            |lock| drop(lock.ledger.pop()),
            |lock| lock.ledger.clear(),
            |lock| lock.ledger.swap(0, 1),
            |lock| lock.ledger.insert(1, lock.ledger[1].clone()),
            |lock| lock.flags.push("-G".into()),
            |lock| lock.sources.clear(),
            |lock| lock.immutable = false,
        ];
        for (index, edit) in edits.iter().enumerate() {
            let mut lock = lock();
            edit(&mut lock);
            assert!(
                !lock.contradictions().is_empty(),
                "edit {index} was not found"
            );
        }
    }

    #[test]
    fn an_entry_that_is_dated_before_the_one_before_it_is_found() {
        let mut lock = lock();
        let last = lock.ledger.last_mut().unwrap();
        last.time = "2026-11-20T23:59:59Z".into();
        lock.head = last.hash();
        let found = lock.contradictions();
        assert!(
            found[0].contains("dated before the entry before it"),
            "{found:?}"
        );
        assert_eq!(found.len(), 1);
    }

    fn edited(edit: impl FnOnce(&mut toml::Table)) -> Result<Lock, String> {
        let mut table: toml::Table = lock().to_toml().parse().unwrap();
        edit(&mut table);
        Lock::parse(&table.to_string())
    }

    #[test]
    fn an_edit_of_any_field_of_any_entry_of_the_ledger_is_found() {
        for entry in 0..3 {
            let fields = edited(|_| ()).unwrap().ledger;
            let fields = toml::Table::try_from(&fields[entry]).unwrap();
            assert_eq!(fields.len(), 7);
            for field in fields.keys() {
                let lock = edited(|table| {
                    let value = &mut table["ledger"][entry][field];
                    *value = format!("{}x", value.as_str().unwrap()).into();
                });
                assert!(
                    !lock.unwrap().contradictions().is_empty(),
                    "{entry} {field}"
                );
            }
        }
        let more = |table: &mut toml::Table| drop(table.insert("more".to_owned(), true.into()));
        assert!(edited(more).is_err());
        assert!(edited(|table| table["schema"] = 2.into()).is_err());
    }
}
