//! Profiles to the text of `perf script`.

use std::fmt::Write as _;

use fleetdiff_schemas::profile::{Profile, ProfileType, Samples, Stack, UNSYMBOLISED, function_and_thread};

use super::frame::FrameLine;
use super::header::header;
use crate::compression::gzip;
use crate::names::NameRules;
use crate::threads::{is_by_thread, pool};
use crate::unencodable::Unencodable;

/// MiB of text of one profile at most: half of what a decoder reads by default.
const MOST: usize = 128;

/// What stands for a process whose name says nothing.
const PROCESS: &str = "process";

/// How the format is called in messages.
const FORMAT: &str = "perf_script";

/// How names of the kernel's functions are marked, and the module that is printed for them.
const KERNEL: (&str, &str) = ("_[k]", "[kernel.kallsyms]");

/// Writes a profile as the gzipped text of `perf script`: an event for each sample, evenly spread over the window. The decoder
/// gives back the same samples if the names are as all [`NameRules`] leave them and the labels say that the first frame is
/// the thread ([`Labels::root_is_thread`](crate::Labels)). Requests, identity, what a sample stands for and the window are not
/// written. Equal profiles give equal bytes.
///
/// The command of each event is the service; in profiles whose functions are counted by thread, it is the thread. Process
/// and thread have the number 1, since profiles do not say it. The event is `cpu-clock` for cpu, `sched:sched_switch` for off_cpu;
/// perf has none for the other types, whose event is their name.
///
/// # Errors
/// [`Unencodable`] if the profile holds no stacks, a stack without frames or not of its names, cohorts of single samples, a
/// name that would be read as another, in off_cpu and wall a function of no thread, or more samples than 128 MiB of text hold.
pub fn encode(profile: &Profile) -> Result<Vec<u8>, Unencodable> {
    let Samples::Stacks(stacks) = &profile.samples else { return Err(Unencodable::Folded) };
    let total = profile.total();
    let mut events = Events { profile, total, number: 0, text: String::new() };
    let command = command(profile.identity.service.as_str());
    let frames = Frames::of(profile);
    for stack in stacks {
        if let Some(cohort) = &stack.cohort {
            return Err(Unencodable::Cohort { format: FORMAT, cohort: cohort.to_string() });
        }
        let thread = frames.thread(stack)?;
        let lines = frames.lines(stack)?;
        events.write(thread.unwrap_or(&command), &lines, stack.count)?;
    }
    Ok(gzip(events.text.as_bytes()))
}

/// The events as they are written.
struct Events<'p> {
    profile: &'p Profile,
    /// Samples of the profile.
    total: u64,
    /// Samples written so far.
    number: u64,
    text: String,
}

impl Events<'_> {
    /// Writes so many samples of one stack.
    fn write(&mut self, command: &str, lines: &str, count: u64) -> Result<(), Unencodable> {
        let most = MOST << 20;
        let first = self.header(command);
        let is_read = header(first.trim_end()).is_some_and(|header| header.comm == command);
        if !is_read || first.starts_with('#') || command.contains([' ', ';']) {
            return Err(Unencodable::Text { format: FORMAT, text: command.to_owned() });
        }
        let bytes = usize::try_from(count).ok().and_then(|count| count.checked_mul(first.len() + lines.len() + 1));
        if bytes.and_then(|bytes| bytes.checked_add(self.text.len())).is_none_or(|bytes| bytes > most) {
            return Err(Unencodable::TooLong { samples: self.total, most: MOST });
        }
        for _ in 0..count {
            let header = self.header(command);
            self.text.push_str(&header);
            self.text.push_str(lines);
            self.text.push('\n');
            self.number += 1;
        }
        Ok(())
    }

    /// The first line of the next event.
    fn header(&self, command: &str) -> String {
        let event = match self.profile.profile_type {
            ProfileType::Cpu => "cpu-clock",
            ProfileType::OffCpu => "sched:sched_switch",
            other => other.name(),
        };
        let at = self.at();
        let (second, rest) = (at / 1_000_000_000, at % 1_000_000_000);
        format!("{command:>16} {:>5}/{:<5} [000] {second:>5}.{rest:09}: {event}: \n", 1, 1)
    }

    /// When the next sample is said to be taken, in nanoseconds since the Unix epoch.
    fn at(&self) -> u128 {
        let window = self.profile.window;
        let length = u128::from(window.end.since(window.start).0.unsigned_abs());
        let start = u128::from(u64::try_from(window.start.0).unwrap_or(0));
        start + length * u128::from(self.number) / u128::from(self.total.max(1))
    }
}

/// The names of a profile as lines of stacks.
struct Frames<'p> {
    profile: &'p Profile,
    by_thread: bool,
}

impl<'p> Frames<'p> {
    fn of(profile: &'p Profile) -> Self {
        Self { profile, by_thread: is_by_thread(profile.profile_type) }
    }

    /// Function and thread of a frame.
    fn name(&self, frame: u32) -> Result<(&'p str, Option<&'p str>), Unencodable> {
        let name = usize::try_from(frame).ok().and_then(|frame| self.profile.names.get(frame));
        let name = name.ok_or(Unencodable::OutOfRange)?;
        Ok(if self.by_thread { function_and_thread(name) } else { (name, None) })
    }

    /// The thread of a stack, if its functions are those of one.
    fn thread(&self, stack: &Stack) -> Result<Option<&'p str>, Unencodable> {
        let mut found = None;
        for &frame in stack.frames.iter().filter(|_| self.by_thread) {
            match self.name(frame)? {
                (UNSYMBOLISED, None) => {}
                (function, None) => return Err(Unencodable::Threadless { function: function.to_owned() }),
                (function, Some(thread)) => {
                    let known = *found.get_or_insert(thread);
                    if known != thread || pool(thread) != thread || NameRules::default().apply(thread) != thread {
                        let text = format!("{function} @ {thread}");
                        return Err(Unencodable::Text { format: FORMAT, text });
                    }
                }
            }
        }
        Ok(found)
    }

    /// The lines of a stack, the innermost frame first.
    fn lines(&self, stack: &Stack) -> Result<String, Unencodable> {
        if stack.frames.is_empty() {
            return Err(Unencodable::Stackless);
        }
        let mut lines = String::new();
        for &frame in stack.frames.iter().rev() {
            let (function, _) = self.name(frame)?;
            lines.push_str(&line(function, frame)?);
        }
        Ok(lines)
    }
}

/// The line of a function, whose address is made of its place.
///
/// # Errors
/// [`Unencodable::Text`] if it would be read as something else.
fn line(function: &str, place: u32) -> Result<String, Unencodable> {
    let address = u64::from(place) * 16;
    let mut line = String::new();
    // NB: writing to a text cannot fail.
    let _ = match function.strip_suffix(KERNEL.0) {
        _ if function == UNSYMBOLISED => writeln!(line, "\t{:16x} [unknown] ([unknown])", 0),
        Some(symbol) => writeln!(line, "\t{:16x} {symbol} ({})", 0xffff_ffff_8100_0000 + address, KERNEL.1),
        None => writeln!(line, "\t{:16x} {function} ([unknown])", 0x40_0000 + address),
    };
    if is_read_as(&line, function) {
        Ok(line)
    } else {
        Err(Unencodable::Text { format: FORMAT, text: function.to_owned() })
    }
}

/// Whether a line is read as one frame of this name.
fn is_read_as(line: &str, function: &str) -> bool {
    let mut names = Vec::new();
    let is_frame = line.lines().count() == 1 && header(line.trim_end()).is_none();
    let read = FrameLine::read(line).filter(|_| is_frame).map(|frame| {
        frame.each_name(|name| {
            names.push(NameRules::default().apply(name).into_owned());
            Ok::<(), Unencodable>(())
        })
    });
    read == Some(Ok(())) && names == [function]
}

/// A command that is read as one word.
fn command(service: &str) -> String {
    let word = |character: char| if character.is_whitespace() || character == ';' { '_' } else { character };
    let name: String = service.chars().map(word).take(15).collect();
    if name.is_empty() { PROCESS.to_owned() } else { name }
}
