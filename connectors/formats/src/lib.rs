//! Bytes to profiles: each format is a file here behind [`Decode`], and none of them knows what carried the bytes.
//!
//! What the transport knows about a record (whose it is, when, of which type) comes as [`Labels`]; a format adds what
//! the bytes themselves say. Every count that leaves here is a number of raw samples, never bytes or nanoseconds, unless a
//! comparison of files asks for times ([`Values`]).
//! A bad record becomes a [`Rejection`](fleetdiff_schemas::rejected::Rejection); nothing here panics, and memory is bounded by
//! [`Options::max_bytes`] and [`Options::max_built_bytes`]. Which attributes name a pod is known to [`identity`], for formats that carry attributes and for
//! transports alike.

pub mod attributes;
mod budget;
mod chrome_trace;
mod collected;
pub mod compression;
mod counts;
mod cpuprofile;
mod decode;
mod delta;
mod float;
pub mod folded;
mod foreign;
mod format;
mod gecko;
mod heapprofile;
pub mod identity;
mod jfr;
mod json;
mod labels;
pub mod names;
mod observed;
mod one_profile;
pub mod otlp;
mod parts;
mod perf_data;
pub mod perf_script;
mod period;
pub mod pprof;
mod pyroscope;
pub mod reading;
mod recognition;
mod record;
mod seconds;
mod sink;
mod speedscope;
mod stackprof;
mod threads;
mod tick;
mod ticks;
mod unencodable;
mod v8;
mod values;
mod wire;

pub use decode::{Decode, Options};
pub use foreign::Foreign;
pub use format::Format;
pub use labels::{Labels, Unit};
pub use perf_data::Symbols;
pub use period::Period;
pub use recognition::format_of;
pub use ticks::FoundPeriod;
pub use unencodable::Unencodable;
pub use values::Values;
