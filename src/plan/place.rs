//! Which slice of a plan a machine measures: `2/8`, or as the engine that started it says.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The most slices of a plan.
pub const MOST_SLICES: u32 = 10_000;

/// One slice of a plan.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub struct SlicePlace {
    /// Which one, from 1.
    pub index: u32,
    /// How many there are.
    pub count: u32,
}

impl SlicePlace {
    /// The slice `index` of `count`.
    ///
    /// # Errors
    /// In words, where there is no such slice.
    pub fn new(index: u32, count: u32) -> Result<SlicePlace, String> {
        if !(1..=MOST_SLICES).contains(&count) {
            return Err(format!("a plan has 1 to {MOST_SLICES} slices, not {count}"));
        }
        if !(1..=count).contains(&index) {
            return Err(format!(
                "slices are counted from 1 to {count}: there is no slice {index}"
            ));
        }
        Ok(SlicePlace { index, count })
    }
}

impl fmt::Display for SlicePlace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.index, self.count)
    }
}

/// The slice that a command line asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SliceAsked {
    /// `2/8`.
    Place(SlicePlace),
    /// `auto`, or `auto/8` where only the number is known: the engine's variables say which.
    Auto(Option<u32>),
}

impl FromStr for SliceAsked {
    type Err = String;

    fn from_str(text: &str) -> Result<SliceAsked, String> {
        let number = |text: &str| {
            let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            let number = text.parse::<u32>().ok().filter(|_| digits);
            number.ok_or_else(|| "write it as 2/8, auto or auto/8".to_owned())
        };
        match text.split_once('/') {
            None if text == "auto" => Ok(SliceAsked::Auto(None)),
            None => Err("write it as 2/8, auto or auto/8".to_owned()),
            Some(("auto", count)) => {
                let count = number(count)?;
                SlicePlace::new(1, count).map(|_| SliceAsked::Auto(Some(count)))
            }
            Some((index, count)) => {
                SlicePlace::new(number(index)?, number(count)?).map(SliceAsked::Place)
            }
        }
    }
}

/// What an engine says of the process that it started, by its variables.
struct Engine {
    name: &'static str,
    /// Which one of the processes it is.
    index: &'static str,
    /// What the first one is called.
    first: First,
    /// How many there are; Kubernetes does not say it.
    count: Option<&'static str>,
}

/// What the first of an engine's processes is called.
enum First {
    Number(u32),
    /// As a variable says.
    Variable(&'static str),
}

/// Sources: "Job Array Support" of Slurm, "Predefined CI/CD variables reference" of GitLab,
/// "Environment variables" of Buildkite, "Indexed Job for Parallel Processing" of Kubernetes.
const ENGINES: [Engine; 4] = [
    Engine {
        name: "Slurm",
        index: "SLURM_ARRAY_TASK_ID",
        first: First::Variable("SLURM_ARRAY_TASK_MIN"),
        count: Some("SLURM_ARRAY_TASK_COUNT"),
    },
    Engine {
        name: "GitLab CI",
        index: "CI_NODE_INDEX",
        first: First::Number(1),
        count: Some("CI_NODE_TOTAL"),
    },
    Engine {
        name: "Buildkite",
        index: "BUILDKITE_PARALLEL_JOB",
        first: First::Number(0),
        count: Some("BUILDKITE_PARALLEL_JOB_COUNT"),
    },
    Engine {
        name: "Kubernetes",
        index: "JOB_COMPLETION_INDEX",
        first: First::Number(0),
        count: None,
    },
];

impl Engine {
    /// The slice that it asks for; `None` where it did not start this process as one of several.
    fn place(
        &self,
        stated: Option<u32>,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Option<Result<SlicePlace, String>> {
        let number = |name: &str| -> Option<Result<u32, String>> {
            let text = variable(name)?;
            let number = text.trim().parse::<u32>();
            Some(number.map_err(|_| format!("{name}={text} is no number")))
        };
        let needed = |name: &str| {
            number(name).unwrap_or_else(|| Err(format!("{} is set, and {name} is not", self.index)))
        };
        let index = number(self.index)?;
        Some((|| {
            let index = index?;
            let count = match (stated, self.count) {
                (Some(stated), _) => stated,
                (None, Some(name)) => needed(name)?,
                (None, None) => {
                    return Err(format!(
                        "{} does not say how many there are: write auto/N",
                        self.name
                    ));
                }
            };
            let first = match self.first {
                First::Number(first) => first,
                // Of an array that was started again for some of its tasks, the first is not the
                // first slice; with a stated number of slices, tasks are counted from 1.
                First::Variable(_) if stated.is_some() => 1,
                First::Variable(name) => needed(name)?,
            };
            let index = index.checked_sub(first).and_then(|at| at.checked_add(1));
            SlicePlace::new(index.unwrap_or(0), count).map_err(|why| {
                let said = variable(self.index).unwrap_or_default();
                format!("{}={said}: {why}", self.index)
            })
        })())
    }
}

impl SliceAsked {
    /// The slice: as written, or as the engine says that started this process.
    ///
    /// # Errors
    /// In words, where no engine says it, or two say different things.
    pub fn place(self, variable: &dyn Fn(&str) -> Option<String>) -> Result<SlicePlace, String> {
        let stated = match self {
            SliceAsked::Place(place) => return Ok(place),
            SliceAsked::Auto(stated) => stated,
        };
        let mut found: Option<(&Engine, SlicePlace)> = None;
        for engine in &ENGINES {
            let Some(place) = engine.place(stated, variable) else {
                continue;
            };
            let place = place?;
            match found {
                Some((first, other)) if other != place => {
                    return Err(format!(
                        "{} says slice {other}, and {} says {place}: write the one that is meant",
                        first.name, engine.name
                    ));
                }
                Some(_) => {}
                None => found = Some((engine, place)),
            }
        }
        found.map(|(_, place)| place).ok_or_else(|| {
            let names = ENGINES.map(|engine| engine.index).join(", ");
            format!("none of these is set: {names}; write the slice, such as 2/8")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(index: u32, count: u32) -> SlicePlace {
        SlicePlace { index, count }
    }

    #[test]
    fn a_slice_is_counted_from_one() {
        let asked: Result<SliceAsked, String> = "2/8".parse();
        assert_eq!(asked, Ok(SliceAsked::Place(place(2, 8))));
        assert_eq!("auto".parse(), Ok(SliceAsked::Auto(None)));
        assert_eq!("auto/8".parse(), Ok(SliceAsked::Auto(Some(8))));
        for wrong in [
            "",
            "2",
            "0/8",
            "9/8",
            "1/0",
            "-1/8",
            "+1/8",
            "1/8/2",
            "auto/0",
            "Auto",
            "1/10001",
            "a/b",
            " 1/8",
            "99999999999/8",
        ] {
            assert!(wrong.parse::<SliceAsked>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn engines_say_which_slice_a_process_measures() {
        for (asked, environment, expected) in [
            (
                "auto",
                &[
                    ("SLURM_ARRAY_TASK_ID", "3"),
                    ("SLURM_ARRAY_TASK_MIN", "1"),
                    ("SLURM_ARRAY_TASK_COUNT", "8"),
                ][..],
                Some(place(3, 8)),
            ),
            (
                "auto",
                &[
                    ("SLURM_ARRAY_TASK_ID", "0"),
                    ("SLURM_ARRAY_TASK_MIN", "0"),
                    ("SLURM_ARRAY_TASK_COUNT", "8"),
                ],
                Some(place(1, 8)),
            ),
            // An array of one task that was started again.
            (
                "auto/8",
                &[
                    ("SLURM_ARRAY_TASK_ID", "3"),
                    ("SLURM_ARRAY_TASK_MIN", "3"),
                    ("SLURM_ARRAY_TASK_COUNT", "1"),
                ],
                Some(place(3, 8)),
            ),
            // Tasks 1, 5 and 9 are no row of slices.
            (
                "auto",
                &[
                    ("SLURM_ARRAY_TASK_ID", "5"),
                    ("SLURM_ARRAY_TASK_MIN", "1"),
                    ("SLURM_ARRAY_TASK_COUNT", "3"),
                ],
                None,
            ),
            ("auto", &[("SLURM_ARRAY_TASK_ID", "3")], None),
            (
                "auto",
                &[("CI_NODE_INDEX", "2"), ("CI_NODE_TOTAL", "4")],
                Some(place(2, 4)),
            ),
            ("auto", &[("CI_NODE_INDEX", "2")], None),
            (
                "auto",
                &[
                    ("BUILDKITE_PARALLEL_JOB", "0"),
                    ("BUILDKITE_PARALLEL_JOB_COUNT", "4"),
                ],
                Some(place(1, 4)),
            ),
            (
                "auto/8",
                &[("JOB_COMPLETION_INDEX", "7")],
                Some(place(8, 8)),
            ),
            ("auto", &[("JOB_COMPLETION_INDEX", "7")], None),
            ("auto/8", &[("JOB_COMPLETION_INDEX", "8")], None),
            ("auto/8", &[("JOB_COMPLETION_INDEX", "seven")], None),
            (
                "auto",
                &[
                    ("CI_NODE_INDEX", "2"),
                    ("CI_NODE_TOTAL", "4"),
                    ("BUILDKITE_PARALLEL_JOB", "0"),
                    ("BUILDKITE_PARALLEL_JOB_COUNT", "4"),
                ],
                None,
            ),
            ("auto", &[], None),
            ("2/8", &[("CI_NODE_INDEX", "x")], Some(place(2, 8))),
        ] {
            let variable = |asked: &str| {
                let found = environment.iter().find(|(name, _)| *name == asked);
                found.map(|(_, value)| (*value).to_owned())
            };
            let parsed: SliceAsked = asked.parse().unwrap();
            let found = parsed.place(&variable);
            assert_eq!(found.clone().ok(), expected, "{environment:?}: {found:?}");
        }
    }
}
