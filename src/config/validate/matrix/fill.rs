//! The placeholders of a matrix, filled in for one variant.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeArray, DeString, DeTable, DeValue};

use super::axis::{Axis, KEY, StandsFor, Value, is_axis_name};
use crate::config::error::{ConfigError, suggest};
use crate::config::validate::variant::PLACEHOLDERS;

/// What a value counts besides its text: about what it takes in memory.
pub(super) const VALUE_BYTES: usize = 64;

/// Fills in one combination of values.
pub(super) struct Filler<'a> {
    pub chosen: &'a [(&'a Axis, &'a Value)],
    /// Which axes were used, by any combination.
    pub used: &'a mut [bool],
    /// What all matrices of the file may still produce.
    pub bytes_left: &'a mut usize,
    pub most_bytes: usize,
}

impl<'a> Filler<'a> {
    /// The table of the variant, without its matrix.
    pub(super) fn variant<'i>(
        &mut self,
        template: &DeTable<'i>,
    ) -> Result<DeTable<'i>, ConfigError> {
        let mut table = DeTable::new();
        for (key, value) in template {
            let is_description = key.get_ref() == "description";
            let before = is_description.then(|| self.used.to_vec());
            if key.get_ref() != KEY {
                table.insert(key.clone(), self.value(value)?);
            }
            // A description alone makes no two variants differ.
            if let Some(before) = before {
                self.used.copy_from_slice(&before);
            }
        }
        Ok(table)
    }

    fn value<'i>(
        &mut self,
        value: &Spanned<DeValue<'i>>,
    ) -> Result<Spanned<DeValue<'i>>, ConfigError> {
        let span = value.span();
        let filled = match value.get_ref() {
            DeValue::String(text) => {
                DeValue::String(DeString::from(self.text(text, span.clone())?))
            }
            DeValue::Array(list) => DeValue::Array(self.list(list)?),
            DeValue::Table(table) => {
                let mut filled = DeTable::new();
                for (key, value) in table {
                    self.spend(key.get_ref().len(), key.span())?;
                    filled.insert(key.clone(), self.value(value)?);
                }
                DeValue::Table(filled)
            }
            other => other.clone(),
        };
        self.spend(0, span.clone())?;
        Ok(Spanned::new(span, filled))
    }

    /// A list, with all arguments of an axis in the place of its placeholder.
    fn list<'i>(&mut self, list: &DeArray<'i>) -> Result<DeArray<'i>, ConfigError> {
        let mut filled = DeArray::new();
        for item in list {
            let arguments = match item.get_ref() {
                DeValue::String(text) => self.arguments(text),
                _ => None,
            };
            let Some(arguments) = arguments else {
                filled.push(self.value(item)?);
                continue;
            };
            for argument in arguments {
                self.spend(argument.len(), item.span())?;
                let argument = DeValue::String(DeString::from(argument.clone()));
                filled.push(Spanned::new(item.span(), argument));
            }
        }
        Ok(filled)
    }

    /// The arguments that an item of a list stands for as a whole.
    fn arguments(&mut self, text: &str) -> Option<&'a [String]> {
        let name = text.strip_prefix('{')?.strip_suffix('}')?;
        let index = self.axis(name)?;
        match &self.chosen[index].1.stands_for {
            StandsFor::Text(_) => None,
            StandsFor::Arguments(arguments) => {
                self.used[index] = true;
                Some(arguments)
            }
        }
    }

    fn axis(&self, name: &str) -> Option<usize> {
        self.chosen.iter().position(|(axis, _)| axis.name == name)
    }

    /// A text, with values in the place of their placeholders. A value is not searched again.
    fn text(&mut self, text: &str, at: Range<usize>) -> Result<String, ConfigError> {
        let mut filled = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            filled.push_str(before);
            let name = after.split_once('}').map(|(name, _)| name);
            let Some(name) = name.filter(|name| is_axis_name(name)) else {
                filled.push('{');
                rest = after;
                continue;
            };
            match self.axis(name) {
                Some(index) => {
                    let (axis, value) = self.chosen[index];
                    let StandsFor::Text(value) = &value.stands_for else {
                        return Err(alone(axis, text, at));
                    };
                    self.used[index] = true;
                    filled.push_str(value);
                }
                None if PLACEHOLDERS.contains(&name) => {
                    filled.extend(["{", name, "}"]);
                }
                None => return Err(self.unknown(name, at)),
            }
            self.spend(filled.len(), at.clone())?;
            rest = &after[name.len() + 1..];
        }
        filled.push_str(rest);
        self.spend(filled.len(), at)?;
        Ok(filled)
    }

    fn unknown(&self, name: &str, at: Range<usize>) -> ConfigError {
        let axes = self.chosen.iter().map(|(axis, _)| axis.name.as_str());
        let known: Vec<&str> = axes.chain(PLACEHOLDERS).collect();
        ConfigError::at(
            at,
            format!("`{{{name}}}` is neither an axis of the matrix nor a placeholder of the tool"),
            format!(
                "{}; a text of the program's own in braces belongs to an axis: `{name} = {{ {name} = \"{{{name}}}\" }}`",
                suggest(name, &known)
            ),
        )
    }

    /// Counts what is produced.
    fn spend(&mut self, bytes: usize, at: Range<usize>) -> Result<(), ConfigError> {
        let cost = bytes.saturating_add(VALUE_BYTES);
        match self.bytes_left.checked_sub(cost) {
            Some(left) => {
                *self.bytes_left = left;
                Ok(())
            }
            None => Err(ConfigError::at(
                at,
                format!(
                    "the matrices produce more than {} MiB of settings",
                    self.most_bytes >> 20
                ),
                "leave out values, or state what the variants share in their suite",
            )),
        }
    }
}

/// A list of arguments within a text.
fn alone(axis: &Axis, text: &str, at: Range<usize>) -> ConfigError {
    let name = &axis.name;
    let text: String = text.chars().take(40).collect();
    ConfigError::at(
        at,
        format!("`{{{name}}}` is a list of arguments, and cannot stand in the text `{text}`"),
        format!("write \"{{{name}}}\" as an item of its own in a list such as `args`"),
    )
}
