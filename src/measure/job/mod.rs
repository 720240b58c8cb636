//! The processes of one variant: in rounds, again where the machine failed.

pub(in crate::measure) mod retry;
pub(in crate::measure) mod rounds;
pub(in crate::measure) mod seeds;
pub(in crate::measure) mod subject;
pub(in crate::measure) mod window;
