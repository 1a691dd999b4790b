//! The counts that everything else is computed from: dense integer columns, added up as samples come and leave.
//!
//! A folded profile of one pod is a few hundred (function, self, total) entries. They travel as bytes
//! ([`encoding`]), are added to one column of bytes per (stratum, build, bucket) ([`plane`], [`bucket`]) and are remembered as the
//! same bytes until they leave the window, when they are added to what has left, or taken back ([`cell`]). Functions are numbered once a process
//! ([`functions`]) and once more, densely, in each cell. Where profiles come as stacks, [`paths`] numbers those and keeps the call
//! tree of each build. Of what has left the window, [`archive`] keeps a part by hour of the day.

pub(crate) mod archive;
pub mod bucket;
pub mod cell;
pub mod encoding;
pub mod functions;
pub mod ids;
pub(crate) mod paths;
pub(crate) mod plane;
