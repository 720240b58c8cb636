//! Decoder of the `.ncu-rep` report file.
