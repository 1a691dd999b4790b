//! The counts that everything else is computed from: dense integer columns, updated as samples enter and leave the
//! window.
//!
//! A folded profile of one pod is a few hundred (function, self, total) entries. They travel as bytes ([`encoding`])
//! and are added to one column of bytes per (stratum, build, bucket) ([`plane`], [`bucket`]). The same bytes are kept
//! until they leave the window; then they are added to the columns of what has left, or subtracted ([`cell`]).
//! Functions are numbered once per process ([`functions`]) and once more, densely, in each cell ([`places`]). If profiles come as
//! stacks, [`paths`] numbers the stacks and keeps the call tree of each build. [`archive`] keeps a part of what has
//! left the window, by hour of the day, and [`load`] what was sampled and served in each minute of it. What is not used any more is
//! forgotten, and its number goes to another ([`numbered`], [`rounds`]).

pub mod archive;
pub(crate) mod archived;
pub mod bucket;
pub mod cell;
pub mod encoding;
pub mod functions;
pub mod held;
pub mod ids;
pub mod load;
pub mod merged;
mod numbered;
pub(crate) mod numbers;
pub(crate) mod paths;
mod places;
pub(crate) mod plane;
mod rounds;
