//! `.cpuprofile`, the JSON of V8: what Node (`--cpu-prof`) and Chrome's developer tools write.
//!
//! A call tree of `nodes` and the list `samples` of the node that each tick of the profiler met: each entry is a sample.
//! `timeDeltas` say how long ago the tick before was, and are not needed. A file without `samples` has `hitCount`, the
//! number of ticks at a node, which is then taken.
//!
//! Its own root is no frame. `(idle)` is the engine waiting: a sample of `wall`, none of `cpu`. `(program)` and
//! `(garbage collector)` are functions like others. A function is its name and its file, since names repeat, and one
//! without a name is `(anonymous)`. Times count from the start of the machine, so the labels must say when it was taken.

mod document;
mod ticks;
mod tree;

pub(crate) use document::{Node, times};
pub(crate) use ticks::{Ticked, check_type, read};
