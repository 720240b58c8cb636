//! A plan as a dry run prints it.
