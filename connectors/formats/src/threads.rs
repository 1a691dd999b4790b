//! Functions by the thread that called them: in profiles of waiting, `poll` of a thread that serves requests is another row than
//! `poll` of one that waits for work.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use fleetdiff_schemas::profile::{AT_THREAD, ProfileType, Stack, UNSYMBOLISED};
use fleetdiff_schemas::rejected::Rejection;

use crate::budget::{ALLOCATION, Budget};
use crate::names::Names;

/// What a function of a thread is counted as besides its name.
const ENTRY: usize = 64;

/// Whether functions of this type of profile are those of one thread.
pub(crate) fn is_by_thread(kind: ProfileType) -> bool {
    matches!(kind, ProfileType::OffCpu | ProfileType::Wall)
}

/// The name of a thread without what numbers it among others of its pool: digits at the end, and those that follow a separator, become
/// `*`.
pub(crate) fn pool(thread: &str) -> Cow<'_, str> {
    let bytes = thread.as_bytes();
    let mut found = String::new();
    let (mut copied, mut place) = (0, 0);
    while let Some(start) = bytes.get(place..).and_then(|rest| rest.iter().position(u8::is_ascii_digit)) {
        let start = place + start;
        let length = bytes.get(start..).map_or(0, |rest| rest.iter().take_while(|byte| byte.is_ascii_digit()).count());
        place = start + length;
        let follows_separator = start > 0 && bytes.get(start - 1).is_some_and(|before| b"-_#/:. ".contains(before));
        if start > 0 && (follows_separator || place == bytes.len()) {
            found.push_str(thread.get(copied..start).unwrap_or_default());
            found.push('*');
            copied = place;
        }
    }
    if copied == 0 {
        return Cow::Borrowed(thread);
    }
    found.push_str(thread.get(copied..).unwrap_or_default());
    Cow::Owned(found)
}

/// Names of threads, and the functions of each.
#[derive(Debug, Default)]
pub(crate) struct Threads {
    /// By their pools.
    names: Vec<Arc<str>>,
    places: HashMap<Arc<str>, u32, foldhash::fast::RandomState>,
    /// The place of a function of a thread, by the places of both.
    functions: HashMap<(u32, u32), u32, foldhash::fast::RandomState>,
}

impl Threads {
    /// The place of a thread.
    ///
    /// # Errors
    /// `too_large` if there is no room for it.
    pub(crate) fn place(&mut self, thread: &str, budget: &Budget) -> Result<u32, Rejection> {
        let name = pool(thread);
        if let Some(known) = self.places.get(name.as_ref()) {
            return Ok(*known);
        }
        budget.take(ENTRY + 2 * ALLOCATION + name.len())?;
        // NB: there are fewer than 2^32, for a record is smaller than that; the last is a ceiling never reached.
        let place = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
        let name: Arc<str> = name.into();
        self.names.push(Arc::clone(&name));
        self.places.insert(name, place);
        Ok(place)
    }

    /// Makes the functions of a stack those of its thread. What has no symbol is of no thread.
    ///
    /// # Errors
    /// `too_large` if there is no room for a function.
    pub(crate) fn qualify(
        &mut self,
        frames: &mut [u32],
        thread: u32,
        names: &mut impl NameTable,
        budget: &Budget,
    ) -> Result<(), Rejection> {
        let Some(thread_name) = usize::try_from(thread).ok().and_then(|place| self.names.get(place)) else {
            return Ok(());
        };
        for frame in frames {
            if let Some(known) = self.functions.get(&(*frame, thread)) {
                *frame = *known;
                continue;
            }
            let function = names.name(*frame);
            let of_thread = if &*function == UNSYMBOLISED {
                *frame
            } else {
                budget.take(ENTRY)?;
                names.place(format!("{function}{AT_THREAD}{thread_name}"))?
            };
            self.functions.insert((*frame, thread), of_thread);
            *frame = of_thread;
        }
        Ok(())
    }
}

/// Names by place, to which those of functions of threads are added.
pub(crate) trait NameTable {
    /// The name at a place.
    fn name(&self, place: u32) -> Arc<str>;

    /// The place of a name, which is counted as it is.
    ///
    /// # Errors
    /// `too_large` if there is no room for it.
    fn place(&mut self, name: String) -> Result<u32, Rejection>;
}

impl NameTable for Names<'_> {
    fn name(&self, place: u32) -> Arc<str> {
        Names::name(self, place)
    }

    fn place(&mut self, name: String) -> Result<u32, Rejection> {
        self.index_of_counted(&name)
    }
}

/// Names that grow by those of functions of threads.
struct Grown<'b> {
    list: Vec<Arc<str>>,
    places: HashMap<Arc<str>, u32, foldhash::fast::RandomState>,
    budget: &'b Budget,
}

impl NameTable for Grown<'_> {
    fn name(&self, place: u32) -> Arc<str> {
        let found = usize::try_from(place).ok().and_then(|place| self.list.get(place));
        found.map_or_else(|| UNSYMBOLISED.into(), Arc::clone)
    }

    fn place(&mut self, name: String) -> Result<u32, Rejection> {
        if let Some(known) = self.places.get(name.as_str()) {
            return Ok(*known);
        }
        self.budget.take(ENTRY + 2 * ALLOCATION + name.len())?;
        let (place, name): (u32, Arc<str>) = (u32::try_from(self.list.len()).unwrap_or(u32::MAX), name.into());
        self.list.push(Arc::clone(&name));
        self.places.insert(name, place);
        Ok(place)
    }
}

/// The names of stacks whose threads are known, once the functions of each are those of its thread.
///
/// # Errors
/// `too_large` if there is no room for them.
pub(crate) fn by_thread(
    list: &[Arc<str>],
    stacks: &mut [Stack],
    of_stacks: &[Option<u32>],
    threads: &mut Threads,
    budget: &Budget,
) -> Result<Arc<[Arc<str>]>, Rejection> {
    budget.take(list.len().saturating_mul(ENTRY))?;
    let place_of = |place: usize| u32::try_from(place).unwrap_or(u32::MAX);
    let places = list.iter().enumerate().map(|(place, name)| (Arc::clone(name), place_of(place))).collect();
    let mut names = Grown { list: list.to_vec(), places, budget };
    for (stack, thread) in stacks.iter_mut().zip(of_stacks) {
        if let Some(thread) = thread {
            threads.qualify(&mut stack.frames, *thread, &mut names, budget)?;
        }
    }
    Ok(names.list.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_of_a_pool_are_one() {
        for (thread, expected) in [
            ("http-nio-8080-exec-12", "http-nio-*-exec-*"),
            ("pool-1-thread-3", "pool-*-thread-*"),
            ("worker7", "worker*"),
            ("C2 CompilerThread0", "C2 CompilerThread*"),
            ("G1 Main Marker", "G1 Main Marker"),
            ("kworker/3:1H-events", "kworker/*:*H-events"),
            ("Thread-5 (refresh)", "Thread-* (refresh)"),
            ("io_uring2", "io_uring*"),
            ("main", "main"),
            ("1234", "1234"),
            ("", ""),
            ("größe-4", "größe-*"),
        ] {
            assert_eq!(pool(thread), expected, "{thread}");
        }
    }

    #[test]
    fn functions_are_those_of_their_thread() {
        let list: Vec<Arc<str>> = ["main", "poll", UNSYMBOLISED].map(Arc::from).to_vec();
        let stack = |frames: &[u32]| Stack { frames: frames.to_vec(), count: 1, cohort: None, value: 0 };
        let mut stacks = [stack(&[0, 1]), stack(&[0, 1, 2]), stack(&[1])];
        let (mut threads, budget) = (Threads::default(), Budget::of(0, 1 << 20));
        let of = [Some(threads.place("w-1", &budget).unwrap()), Some(threads.place("w-2", &budget).unwrap()), None];
        let names = by_thread(&list, &mut stacks, &of, &mut threads, &budget).unwrap();
        let read = |stack: &Stack| -> Vec<String> {
            stack.frames.iter().map(|frame| names[usize::try_from(*frame).unwrap()].to_string()).collect()
        };
        assert_eq!(read(&stacks[0]), ["main @ w-*", "poll @ w-*"]);
        assert_eq!(read(&stacks[1]), ["main @ w-*", "poll @ w-*", UNSYMBOLISED]);
        assert_eq!(read(&stacks[2]), ["poll"]);
    }

    #[test]
    fn functions_of_threads_are_charged() {
        let list: Vec<Arc<str>> = vec!["f".repeat(1_000).into()];
        let (mut threads, budget) = (Threads::default(), Budget::of(0, 20_000));
        let mut refused = None;
        for number in 0..100 {
            let name = format!("thread{number}x");
            let mut stacks = [Stack { frames: vec![0], count: 1, cohort: None, value: 0 }];
            let place = threads.place(&name, &budget);
            let names = place.and_then(|place| by_thread(&list, &mut stacks, &[Some(place)], &mut threads, &budget));
            refused = refused.or_else(|| names.err().map(|_| number));
        }
        assert!(refused.is_some_and(|number| number < 20), "{refused:?}");
    }
}
