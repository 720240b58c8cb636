//! In what two measurements differ, and how that is written.

/// What a profile states of the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Property {
    /// Model of the GPU.
    Gpu,
    /// Its compute capability.
    ComputeCapability,
    /// Arguments of the program.
    Workload,
    /// Tier of measurement.
    Tier,
    /// A condition that ncu measured under, by its name.
    Condition(&'static str),
    /// What the compiler made code for.
    Target,
    /// The compiler.
    Compiler,
}

impl Property {
    fn name(self) -> &'static str {
        match self {
            Property::Gpu => "the GPU",
            Property::ComputeCapability => "the compute capability",
            Property::Workload => "the workload",
            Property::Tier => "the tier of measurement",
            Property::Condition(name) => name,
            Property::Target => "the target",
            Property::Compiler => "the compiler",
        }
    }
}

/// One thing in which two measurements, or a measurement and the project, differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    /// Both profiles state it, or one does not know it.
    Stated {
        /// What.
        property: Property,
        /// In the reference.
        was: Option<String>,
        /// In the current profile.
        is: Option<String>,
    },
    /// Base and current were not measured on one and the same GPU: their UUIDs.
    Machines {
        /// Of the base.
        base: Vec<String>,
        /// Of the current profile.
        current: Vec<String>,
    },
    /// Base and current were measured in different numbers of processes.
    Processes {
        /// Of the base.
        base: usize,
        /// Of the current profile.
        current: usize,
    },
    /// Base and current name the same captures.
    SameCaptures,
    /// The base was imported.
    BaseImported,
    /// The base was measured with constants of a trial.
    BaseTrial(Vec<String>),
    /// The configuration states another value.
    Configured(Property),
    /// A file that the profile was made from changed.
    Source(String),
    /// A file that the configuration names is not in the profile's list.
    UnlistedSource(String),
    /// A file that only the current profile was made from.
    AddedSource(String),
    /// The configuration states other compiler flags.
    Flags,
    /// The configuration states another build command.
    BuildCommand,
    /// Profiles that are to be merged differ in this.
    Merged(&'static str),
    /// Profiles that are to be merged have different numbers of kernels.
    KernelCount(usize, usize),
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let unknown = |value: &Option<String>| value.clone().unwrap_or_else(|| "unknown".into());
        let named = |uuids: &[String]| match uuids {
            [] => "an unnamed GPU".to_owned(),
            uuids => uuids.join(" and "),
        };
        match self {
            Difference::Stated { property, was, is } => {
                let name = property.name();
                write!(f, "{name} was {}, is {}", unknown(was), unknown(is))
            }
            Difference::Machines { base, current } => {
                let (base, current) = (named(base), named(current));
                write!(f, "the base was measured on {base}, current on {current}")
            }
            Difference::Processes { base, current } => write!(
                f,
                "the base was measured in {base} processes, current in {current}"
            ),
            Difference::SameCaptures => f.write_str("base and current name the same captures"),
            Difference::BaseImported => f.write_str("the base was imported"),
            Difference::BaseTrial(overrides) => {
                let overrides = overrides.join(" ");
                write!(f, "the base was measured with --define {overrides}")
            }
            Difference::Configured(property) => {
                write!(f, "{} in the configuration", property.name())
            }
            Difference::Source(path) | Difference::AddedSource(path) => write!(f, "`{path}`"),
            Difference::UnlistedSource(path) => {
                write!(f, "`{path}`, which the profile does not list,")
            }
            Difference::Flags => f.write_str("the flags in the configuration"),
            Difference::BuildCommand => f.write_str("the build command in the configuration"),
            Difference::Merged(what) => f.write_str(what),
            Difference::KernelCount(one, other) => {
                write!(f, "the numbers of kernels ({one} and {other} kernels)")
            }
        }
    }
}

/// The differences in one line.
pub fn words(differences: &[Difference], separator: &str) -> String {
    let words: Vec<String> = differences.iter().map(Difference::to_string).collect();
    words.join(separator)
}
