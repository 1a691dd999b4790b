//! Profiles of Firefox's profiler in its processed form, which it saves, and which samply and others write.
//!
//! Each thread has `samples`: of each the stack that was met, as a place in a tree of stacks, and what it weighs. Trees, frames,
//! functions and texts are tables of columns, of the thread or (since version 56, or 60) of the whole file. What a weight is says
//! `weightType`: a number of `samples`, a length of time, or bytes; only the first are samples.
//!
//! Firefox samples each of its threads whether that runs or not, so its samples are `wall`. Files of others hold what their sampler
//! met: `cpu` or `wall`, as labelled. Of these, samples of a thread that used no processor since its sample before
//! (`threadCPUDelta` of 0) are some of `wall` and none of `cpu`, but for the first of a thread, of which the form does not know it.
//!
//! A function of JavaScript is its name and its file, since names repeat; one without a symbol is its library. samply leaves
//! symbols out of the file unless the program's own JIT table names them: they are in what its viewer saves.
//!
//! Checked against `docs-developer/CHANGELOG-formats.md` of the profiler to version 70, and files of samply 0.13.1 (version 55).

mod document;
mod samples;
mod tables;

pub(crate) use samples::read;
