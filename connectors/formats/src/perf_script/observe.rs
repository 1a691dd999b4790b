//! All that a text says of its events: thread, processor, time, period, and the files and lines of its frames.
//!
//! A lone number before the time is the thread's, as `perf script` prints it unless asked for the process (`-F +pid`).

use fleetdiff_schemas::profile::Stack;
use fleetdiff_schemas::rejected::Rejection;

use super::frame::FrameLine;
use super::header::Header;
use super::{Reader, Sink};
use crate::compression::decompress;
use crate::reading::{About, FrameKind, Observed, Said, nanoseconds};
use crate::{Labels, Options};

/// Gives what a text says.
pub(crate) fn observe(
    bytes: &[u8],
    labels: &Labels,
    options: &Options,
    observed: &mut Observed<'_>,
) -> Result<(), Rejection> {
    let text = decompress(bytes, options.max_bytes)?;
    let event = Reader::new(observed).read(&text)?.finish(labels.profile_type)?;
    // A text without events does not say what its periods are of.
    observed.unit = event.map(|event| if event.is_empty() { "period" } else { event }.into());
    Ok(())
}

impl Sink for Observed<'_> {
    fn thread(&mut self, name: &str) -> Result<u32, Rejection> {
        Observed::frame(self, name, Said { kind: FrameKind::Thread, ..Said::default() })
    }

    fn frame(&mut self, name: &str, line: Option<&FrameLine<'_>>) -> Result<u32, Rejection> {
        match line {
            Some(line) => Observed::frame(self, name, said(line, name)),
            None => Observed::frame(self, name, Said { kind: FrameKind::Nameless, ..Said::default() }),
        }
    }

    fn source(&mut self, frame: u32, line: &str) -> Result<u32, Rejection> {
        self.with_line(frame, line)
    }

    fn event(&mut self, frames: Vec<u32>, header: &Header<'_>) -> Result<(), Rejection> {
        let comm = Some(self.text(header.comm)?);
        let (pid, tid) = header.thread.split_once('/').map_or((None, header.thread), |(pid, tid)| (Some(pid), tid));
        let number = |text: &str| text.parse::<i64>().ok();
        let about = About {
            comm,
            pid: pid.and_then(number),
            tid: number(tid),
            cpu: header.cpu.and_then(|cpu| number(cpu.trim_matches(['[', ']']))),
            at: header.time.and_then(|time| nanoseconds(time.trim_end_matches(':'))),
            weight: header.period.and_then(|period| period.parse().ok()),
        };
        self.push(Stack { frames, count: 1, cohort: None }, about)
    }

    fn keep(&mut self, wanted: impl FnMut(usize) -> bool) {
        Observed::keep(self, wanted);
    }
}

fn said<'a>(line: &'a FrameLine<'_>, name: &'a str) -> Said<'a> {
    let marked = name.strip_suffix("_[i]").unwrap_or(name);
    let symbol = Some(marked.strip_suffix("_[k]").unwrap_or(marked));
    match line.module() {
        _ if line.has_no_symbol() => Said { symbol, dso: line.dso(), kind: FrameKind::Nameless, ..Said::default() },
        Some("inlined") => Said { symbol, kind: FrameKind::Inlined, ..Said::default() },
        _ => Said { symbol, dso: line.dso(), ..Said::default() },
    }
}
