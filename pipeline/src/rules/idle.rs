//! Which stacks wait for work that has not come yet.
//!
//! A thread of a service spends most of its time parked: an event loop without events, a worker of a pool without a
//! task. In profiles of passing time these samples say nothing about the cost of a request, and they would be most of
//! what shares are measured against. They are taken out before stacks are folded, and counted for the ledger. The law:
//! what is left gives the rows of a profile that never had them.

use std::collections::HashSet;

use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::idle::idle_defaults;
use fleetdiff_schemas::number::index_of;
use fleetdiff_schemas::profile::{AT_THREAD, Profile, ProfileType, Samples, Stack, Temporality, function_and_thread};

use crate::counts::ids::FunctionId;

/// Suffixes by which tools say what kind of frame it is.
const KINDS: [&str; 3] = ["_[k]", "_[j]", "_[i]"];

/// What a function on a stack says about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Says {
    /// The stack is idle, unless another function keeps it.
    Idle,
    /// The stack is not idle.
    Kept,
    Nothing,
}

/// Which functions make a stack idle, and which keep it.
#[derive(Debug)]
pub(crate) struct Idle {
    idle: Entries,
    kept: Entries,
}

impl Idle {
    /// The lists that the configuration names.
    pub(crate) fn new(config: &Config) -> Self {
        let mut lists = Self { idle: Entries::default(), kept: Entries::default() };
        let mut entries: Vec<&str> = idle_defaults().filter(|_| config.idle_defaults).collect();
        entries.extend(config.idle.iter().map(|entry| &**entry));
        for entry in entries {
            match entry.strip_prefix('!') {
                Some(kept) => lists.kept.add(kept),
                None => lists.idle.add(entry),
            }
        }
        lists
    }

    /// Whether no stack is idle.
    fn is_empty(&self) -> bool {
        self.idle.of_functions.is_empty() && self.idle.of_threads.is_empty()
    }

    /// What a function says, by its name with and without the kind of frame.
    fn says(&self, name: &str) -> Says {
        let (function, thread) = function_and_thread(name);
        let plain = KINDS.into_iter().find_map(|kind| function.strip_suffix(kind)).unwrap_or(function);
        let is_in =
            |entries: &Entries| entries.have(plain, thread) || plain != function && entries.have(function, thread);
        if is_in(&self.kept) {
            Says::Kept
        } else if is_in(&self.idle) {
            Says::Idle
        } else {
            Says::Nothing
        }
    }
}

/// Whether a stack is idle for what its functions say: one says so, and none keeps it.
fn is_idle(functions: impl Iterator<Item = Says>) -> bool {
    let mut idle = false;
    for says in functions {
        match says {
            Says::Kept => return false,
            Says::Idle => idle = true,
            Says::Nothing => {}
        }
    }
    idle
}

/// Names of functions in any thread, and, with ` @ ` and a thread behind them, in that one.
#[derive(Debug, Default)]
struct Entries {
    of_functions: Patterns,
    of_threads: Patterns,
}

impl Entries {
    fn add(&mut self, entry: &str) {
        let patterns = if entry.contains(AT_THREAD) { &mut self.of_threads } else { &mut self.of_functions };
        patterns.add(entry);
    }

    fn have(&self, function: &str, thread: Option<&str>) -> bool {
        let in_thread = |thread| self.of_threads.have(&format!("{function}{AT_THREAD}{thread}"));
        self.of_functions.have(function) || !self.of_threads.is_empty() && thread.is_some_and(in_thread)
    }
}

/// Names, some with a `*` for any text.
#[derive(Debug, Default)]
struct Patterns {
    exact: HashSet<Box<str>>,
    /// The texts before, between and after each `*`: at least two.
    globs: Vec<Vec<Box<str>>>,
}

impl Patterns {
    fn is_empty(&self) -> bool {
        self.exact.is_empty() && self.globs.is_empty()
    }

    fn add(&mut self, entry: &str) {
        let parts: Vec<Box<str>> = entry.split('*').map(Box::from).collect();
        if parts.len() > 1 {
            self.globs.push(parts);
        } else {
            self.exact.insert(entry.into());
        }
    }

    fn have(&self, name: &str) -> bool {
        self.exact.contains(name) || self.globs.iter().any(|parts| has_parts(name, parts))
    }
}

/// Whether a name begins with the first part, ends with the last, and has the others in their order between them. The
/// first place of each is as good as any other.
fn has_parts(name: &str, parts: &[Box<str>]) -> bool {
    let [first, between @ .., last] = parts else { return false };
    let rest = name.strip_prefix(&**first);
    let rest = between.iter().fold(rest, |rest, part| Some(rest?.split_once(&**part)?.1));
    rest.is_some_and(|rest| rest.ends_with(&**last))
}

/// Takes idle stacks out of profiles. Remembers what each function says, since a profile may have 100,000 names.
#[derive(Debug)]
pub(crate) struct IdleStacks {
    lists: Idle,
    /// By number of the function.
    known: Vec<Option<Says>>,
}

impl IdleStacks {
    /// The lists that the configuration names.
    pub(crate) fn new(config: &Config) -> Self {
        Self { lists: Idle::new(config), known: Vec::new() }
    }

    /// Takes idle stacks out of a profile whose names have these numbers, and gives the number of their samples. Only
    /// passing time is looked at, within a window, and only whole stacks: counts that were folded cannot be separated.
    pub(crate) fn take_from(&mut self, profile: &mut Profile, ids: &[FunctionId]) -> u64 {
        let of_time = matches!(profile.profile_type, ProfileType::OffCpu | ProfileType::Wall);
        if !of_time || profile.temporality != Temporality::Delta || self.lists.is_empty() {
            return 0;
        }
        let Samples::Stacks(stacks) = &mut profile.samples else { return 0 };
        let names = profile.names.iter().zip(ids);
        let says: Vec<Says> = names.map(|(name, &id)| self.says(name, id)).collect();
        let of_frame = |&frame: &u32| says.get(index_of(frame)).copied().unwrap_or(Says::Nothing);
        let mut idle = 0;
        stacks.retain(|stack: &Stack| {
            let left_out = is_idle(stack.frames.iter().map(of_frame));
            idle += if left_out { stack.count } else { 0 };
            !left_out
        });
        idle
    }

    /// Forgets what functions say: their numbers may be those of others from now on.
    pub(crate) fn forget(&mut self) {
        self.known.clear();
    }

    fn says(&mut self, name: &str, id: FunctionId) -> Says {
        let place = index_of(id);
        if place >= self.known.len() {
            self.known.resize(place + 1, None);
        }
        match self.known.get_mut(place) {
            Some(known) => *known.get_or_insert_with(|| self.lists.says(name)),
            None => self.lists.says(name),
        }
    }
}

#[cfg(test)]
mod tests;
