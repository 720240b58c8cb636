//! `matrix` of a variant: one table that stands for many variants.
//!
//! A matrix is replaced in the tree of the file, before anything else reads it: each produced variant
//! is an ordinary table, and its values keep their positions. So validation, errors, and the rules of
//! `trust` know no matrix. A variant that a change of the matrix no longer produces is a variant that
//! the change removes.

mod axis;
mod fill;

use std::collections::BTreeMap;

use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use crate::config::error::ConfigError;
use crate::config::layers::{table_of, tables};
use crate::terms::is_name;
use axis::{Axis, KEY, Value};
use fill::Filler;

/// The most variants that one matrix produces.
const MOST_VARIANTS: usize = 256;

/// The most bytes of text that all matrices of a file produce, with [`fill::VALUE_BYTES`] for each
/// value: a small file can state far more by a slip.
const MOST_BYTES: usize = 16 << 20;

/// Replaces each variant with a `matrix` by those that it produces.
pub(super) fn expand(tree: &mut DeTable<'_>) -> Result<(), ConfigError> {
    let mut bytes_left = MOST_BYTES;
    // What is no table is reported where the types are read.
    for (suite, table) in tables(tree, "suite") {
        let Some(variants) = table_of(table, "variant") else {
            continue;
        };
        let mut all = variants.iter();
        if all.any(|(_, variant)| variant.get_ref().get(KEY).is_some()) {
            *variants = expanded(suite, variants, &mut bytes_left)?;
        }
    }
    Ok(())
}

/// The variants of a suite, with those of its matrices in their place.
fn expanded<'i>(
    suite: &str,
    variants: &DeTable<'i>,
    bytes_left: &mut usize,
) -> Result<DeTable<'i>, ConfigError> {
    let mut all = DeTable::new();
    // The matrix that produced a name; `None` of a variant that is written out.
    let mut made_by: BTreeMap<String, Option<String>> = BTreeMap::new();
    for (key, value) in variants {
        let template = match value.get_ref() {
            DeValue::Table(table) if table.contains_key(KEY) => table,
            _ => {
                made_by.insert(key.get_ref().to_string(), None);
                all.insert(key.clone(), value.clone());
                continue;
            }
        };
        for (name, table) in produced(suite, key, template, bytes_left)? {
            let id = format!("{suite}/{name}");
            if !is_name(&name) {
                return Err(ConfigError::at(
                    key.span(),
                    format!("the matrix produces `{id}`, which cannot be a name"),
                    "a name has at most 64 letters, digits, `_` and `-`, and begins with a letter or digit; shorten the variant's name, its axes or their values",
                ));
            }
            let written = || variants.contains_key(name.as_str()).then_some(None);
            if let Some(other) = made_by.get(&name).cloned().or_else(written) {
                let other = match other {
                    Some(other) if other == *key.get_ref() => {
                        "two of its combinations have that name".to_owned()
                    }
                    Some(other) => format!("the matrix of `{suite}/{other}` produces it, too"),
                    None => "another variant has that name".to_owned(),
                };
                return Err(ConfigError::at(
                    key.span(),
                    format!(
                        "the matrix of `{suite}/{}` produces `{id}`, and {other}",
                        key.get_ref()
                    ),
                    "rename one of the variants, or give a value another name: `axis = { name = \"value\" }`",
                ));
            }
            let at = Spanned::new(key.span(), DeString::from(name.clone()));
            all.insert(at, Spanned::new(value.span(), DeValue::Table(table)));
            let own = Some(key.get_ref().to_string());
            made_by.insert(name, own);
        }
    }
    Ok(all)
}

/// The variants of one matrix, with their names, in the order of the axes' names and of their values.
fn produced<'i>(
    suite: &str,
    key: &Spanned<DeString<'i>>,
    template: &DeTable<'i>,
    bytes_left: &mut usize,
) -> Result<Vec<(String, DeTable<'i>)>, ConfigError> {
    let name = key.get_ref();
    let axes = match template.get(KEY) {
        Some(matrix) => axis::axes(matrix)?,
        None => Vec::new(),
    };
    let counts = axes.iter().map(|axis| axis.values.len());
    let count = counts.fold(1, usize::saturating_mul);
    if count > MOST_VARIANTS {
        return Err(ConfigError::at(
            key.span(),
            format!(
                "the matrix of `{suite}/{name}` produces {count} variants, and {MOST_VARIANTS} is the most"
            ),
            "leave out values, or write the combinations that you need as several variants, each with a smaller matrix",
        ));
    }
    let mut variants = Vec::with_capacity(count);
    let mut used = vec![false; axes.len()];
    for index in 0..count {
        let chosen = chosen(&axes, index);
        let mut filler = Filler {
            chosen: &chosen,
            used: &mut used,
            bytes_left,
            most_bytes: MOST_BYTES,
        };
        let table = filler.variant(template)?;
        variants.push((name_of(name, &chosen), table));
    }
    match axes.iter().zip(used).find(|(_, used)| !used) {
        None => Ok(variants),
        Some((axis, _)) => Err(ConfigError::at(
            axis.span.clone(),
            format!(
                "nothing uses the axis `{}`, so the matrix of `{suite}/{name}` repeats each variant",
                axis.name
            ),
            format!(
                "write `{{{}}}` where the variant uses it, such as in its own `args` or `defines` (those of the suite and a `description` do not count), or remove the axis",
                axis.name
            ),
        )),
    }
}

/// One value of each axis: the combination of this number. The last axis changes fastest.
fn chosen(axes: &[Axis], index: usize) -> Vec<(&Axis, &Value)> {
    let mut rest = index;
    let mut chosen: Vec<(&Axis, &Value)> = Vec::with_capacity(axes.len());
    for axis in axes.iter().rev() {
        chosen.push((axis, &axis.values[rest % axis.values.len()]));
        rest /= axis.values.len();
    }
    chosen.reverse();
    chosen
}

/// `gemm-dtype_f16-n_1024`. The order of the axes is that of their names, so that no baseline is lost
/// where somebody writes them in another order.
fn name_of(variant: &str, chosen: &[(&Axis, &Value)]) -> String {
    let parts = chosen
        .iter()
        .map(|(axis, value)| format!("-{}_{}", axis.name, value.name));
    std::iter::once(variant.to_owned()).chain(parts).collect()
}
