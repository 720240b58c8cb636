//! Why a step could not go on.

use super::{Error, Finding};

/// Why a step of one variant could not go on.
#[derive(Debug)]
pub enum Stop {
    /// The variant cannot be measured or judged; the run goes on with the others.
    Finding(Box<Finding>),
    /// The run cannot go on.
    Error(Error),
}

impl Stop {
    /// The finding about the variant.
    ///
    /// # Errors
    /// The [`Error`], where the run cannot go on.
    pub fn finding(self) -> Result<Finding, Error> {
        match self {
            Stop::Finding(finding) => Ok(*finding),
            Stop::Error(error) => Err(error),
        }
    }
}

impl From<Finding> for Stop {
    fn from(finding: Finding) -> Stop {
        Stop::Finding(Box::new(finding))
    }
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        Stop::Error(error)
    }
}
