//! What the environment of a run says.

use std::cell::OnceCell;
use std::path::Path;

use serde_json::Value;

use super::entry::Sign;
use crate::files::{json, read_regular};

/// The variable of the file with GitHub's event.
const EVENT_FILE: &str = "GITHUB_EVENT_PATH";

/// A commit that a service names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stated {
    /// The variable, or the field of the event.
    pub by: &'static str,
    /// The text, which should be a whole hash.
    pub commit: String,
}

/// What is wrong with the file of GitHub's event, where a variable names one, and the next step.
pub fn unread_event(variable: &dyn Fn(&str) -> Option<String>) -> Option<(String, &'static str)> {
    event(variable).err()
}

fn event(variable: &dyn Fn(&str) -> Option<String>) -> Result<Value, (String, &'static str)> {
    let Some(path) = variable(EVENT_FILE).filter(|path| !path.is_empty()) else {
        return Ok(Value::Null);
    };
    let unread = |why: String, next| {
        let what = format!("{EVENT_FILE} names {path}, which cannot be read: {why}");
        (what, next)
    };
    let bytes = read_regular(Path::new(&path)).map_err(|error| {
        let next = "let this step read the file, as by a mount of its folder into the container";
        unread(error.to_string(), next)
    })?;
    json(&bytes).map_err(|why| {
        let next = "let this step read the service's own file, as it was written";
        unread(why, next)
    })
}

/// The variables of a run, and the event that one of them names the file of.
pub(super) struct Environment<'a> {
    variable: &'a dyn Fn(&str) -> Option<String>,
    event: OnceCell<Value>,
}

impl<'a> Environment<'a> {
    pub fn of(variable: &'a dyn Fn(&str) -> Option<String>) -> Environment<'a> {
        Environment {
            variable,
            event: OnceCell::new(),
        }
    }

    /// A variable or a field of the event that is not empty.
    pub fn read(&self, name: &str) -> Option<String> {
        let value = match name.strip_prefix("event.") {
            None => (self.variable)(name)?,
            Some(field) => {
                let mut value = self
                    .event
                    .get_or_init(|| event(self.variable).unwrap_or_default());
                for key in field.split('.') {
                    value = value.get(key)?;
                }
                match value {
                    Value::String(text) => text.clone(),
                    Value::Bool(flag) => flag.to_string(),
                    Value::Number(number) => number.to_string(),
                    _ => return None,
                }
            }
        };
        Some(value.trim().to_owned()).filter(|value| !value.is_empty())
    }

    /// Whether a variable is set to a value that counts.
    pub fn shows(&self, sign: &Sign) -> bool {
        self.read(sign.name).is_some_and(|value| match sign.values {
            [] => !value.eq_ignore_ascii_case("false") && value != "0",
            values => values.contains(&value.as_str()),
        })
    }

    /// The branch in the first variable that is set, without the `refs/heads/` of GitHub. A tag stays
    /// `refs/tags/…`, and so is no branch.
    pub fn branch(&self, names: &[&'static str]) -> Option<String> {
        let (name, value) = names
            .iter()
            .find_map(|name| Some((*name, self.read(name)?)))?;
        // Elsewhere it would be the name of another branch.
        let is_reference = name == "GITHUB_REF" || name.starts_with("event.");
        let branch = value.strip_prefix("refs/heads/").filter(|_| is_reference);
        Some(branch.unwrap_or(&value).to_owned())
    }

    /// The commit in the first variable that is set; `None` of one that is all zeros.
    pub fn commit(&self, names: &[&'static str]) -> Option<Stated> {
        let (by, commit) = names
            .iter()
            .find_map(|name| Some((*name, self.read(name)?)))?;
        let known = commit.chars().any(|digit| digit != '0');
        known.then_some(Stated { by, commit })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_that_takes_too_much_memory_says_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("event.json");
        let variable = |name: &str| (name == EVENT_FILE).then(|| path.display().to_string());
        for (depth, found) in [(10, Some("main")), (110, None)] {
            let deep = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
            std::fs::write(&path, format!("{{\"ref\": \"main\", \"deep\": {deep}}}")).unwrap();
            let read = Environment::of(&variable).read("event.ref");
            assert_eq!(read.as_deref(), found, "{depth}");
        }
    }
}
