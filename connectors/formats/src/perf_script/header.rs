//! The line that begins an event: `comm pid/tid [cpu] time: period event:`, of which tools print what they were asked for.

/// What the first line of an event says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Header<'a> {
    /// Name of the thread; may hold spaces.
    pub(super) comm: &'a str,
    /// The thread, or `pid/tid`.
    pub(super) thread: &'a str,
    /// The processor in its brackets.
    pub(super) cpu: Option<&'a str>,
    /// The time with its colon.
    pub(super) time: Option<&'a str>,
    pub(super) period: Option<&'a str>,
    /// The event as it was printed, without its last colon; empty if none was.
    pub(super) event: &'a str,
    /// What follows: nothing, the only frame, or the fields of a tracepoint.
    pub(super) rest: &'a str,
}

/// Reads a header; nothing if it is none.
///
/// The thread's name may hold spaces and numbers, so each number in the line is tried as the pid, from the left, until
/// what follows it has the form of what follows a pid. A time or an event must be among that, or any text with a
/// number in it would be a header.
pub(super) fn header(line: &str) -> Option<Header<'_>> {
    let mut rest = line;
    while let Some((word, after)) = first_word(rest) {
        rest = after;
        let Some(header) = Some(after).filter(|_| is_pid(word)).and_then(after_pid) else { continue };
        let comm = line.get(..line.len() - after.len() - word.len()).unwrap_or_default().trim();
        if !comm.is_empty() {
            return Some(Header { comm, thread: word, ..header });
        }
    }
    None
}

/// Reads a header of fields that hold neither a time nor an event (`perf script -F comm,pid,tid,ip,sym`): thread and numbers alone.
///
/// Much is of that form that is no header, so it is one only where nothing else can stand and a frame follows.
pub(super) fn bare_header(line: &str) -> Option<Header<'_>> {
    let mut rest = line;
    while let Some((word, after)) = first_word(rest) {
        rest = after;
        let (cpu, end) = take(after, is_cpu);
        let (period, end) = take(end, is_number);
        if is_pid(word) && end.trim().is_empty() {
            let comm = line.get(..line.len() - after.len() - word.len()).unwrap_or_default().trim();
            return (!comm.is_empty()).then_some(Header { comm, thread: word, cpu, period, ..Header::default() });
        }
    }
    None
}

/// What stands behind the pid: `[cpu] time: period event: rest`, of which parts may be missing.
fn after_pid(text: &str) -> Option<Header<'_>> {
    let (cpu, text) = take(text, is_cpu);
    let (time, text) = take(text, is_time);
    let (period, text) = take(text, is_number);
    let header = Header { cpu, time, period, ..Header::default() };
    match first_word(text) {
        Some((word, rest)) if is_event(word) => {
            Some(Header { event: word.strip_suffix(':')?, rest: rest.trim(), ..header })
        }
        _ => time.map(|_| Header { rest: text.trim(), ..header }),
    }
}

/// The event without what says how it was asked for: modifiers (`cycles:uppp`), the unit of the processor
/// (`cpu_core/cycles/P`), and `cpu-cycles`, which is another name of `cycles`.
pub(super) fn plain_event(event: &str) -> &str {
    let name = event.split('/').nth(1).map_or(event, |within| within.split(',').next().unwrap_or(within));
    let modifiers = |text: &str| text.bytes().all(|byte| b"ukhIGHpPSDWeb".contains(&byte));
    let name = name.rsplit_once(':').filter(|(_, text)| modifiers(text)).map_or(name, |(name, _)| name);
    if name == "cpu-cycles" { "cycles" } else { name }
}

/// The first word, if it is of a kind, and what follows it.
fn take(text: &str, kind: fn(&str) -> bool) -> (Option<&str>, &str) {
    match first_word(text) {
        Some((word, rest)) if kind(word) => (Some(word), rest),
        _ => (None, text),
    }
}

/// The first word and what follows it.
fn first_word(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start();
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

fn is_number(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit())
}

/// A pid, a tid, or `pid/tid`; -1 where the thread was gone.
fn is_pid(word: &str) -> bool {
    let number = |word: &str| is_number(word.strip_prefix('-').unwrap_or(word));
    match word.split_once('/') {
        Some((pid, tid)) => number(pid) && number(tid),
        None => number(word),
    }
}

fn is_cpu(word: &str) -> bool {
    word.strip_prefix('[').and_then(|word| word.strip_suffix(']')).is_some_and(is_number)
}

/// `seconds.fraction:`
fn is_time(word: &str) -> bool {
    let parts = word.strip_suffix(':').and_then(|word| word.split_once('.'));
    parts.is_some_and(|(seconds, fraction)| is_number(seconds) && is_number(fraction))
}

fn is_event(word: &str) -> bool {
    word.len() > 1 && word.ends_with(':') && word.starts_with(|first: char| first.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_list_of_fields() {
        let cases = [
            ("java 25607 4794564.109216: cycles:", "java", "cycles", ""),
            ("java 12688 [002] 6544038.708352: cpu-clock:", "java", "cpu-clock", ""),
            ("V8 WorkerThread 25607 4794564.109216: cycles:", "V8 WorkerThread", "cycles", ""),
            ("java 24636/25607 [000] 4794564.109216: cycles:ppp: ", "java", "cycles:ppp", ""),
            ("Thread 7 24636/25607 [000] 94564.109216:     250000 cycles:uhH:", "Thread 7", "cycles:uhH", ""),
            ("            vote   913    72.176760:     257597 cycles:uppp:", "vote", "cycles:uppp", ""),
            ("redis  9755/9755  1795228080.481408354:    5025125 cpu-clock:pppH: ", "redis", "cpu-clock:pppH", ""),
            (
                "x 1 20110.539270:  34467 cycles:u:  ffffffff9aa3c8de f ([unknown])",
                "x",
                "cycles:u",
                "ffffffff9aa3c8de f ([unknown])",
            ),
            (
                "swapper     0 [001] 12.5: sched:sched_switch: prev_comm=a",
                "swapper",
                "sched:sched_switch",
                "prev_comm=a",
            ),
            ("java 24636/25607 cycles:", "java", "cycles", ""),
            ("java 25607 [001] 250000 cycles:", "java", "cycles", ""),
            ("java 25607 4794564.109216: ", "java", "", ""),
            (":-1 -1 [000] 1.5: cpu_core/cycles/P:", ":-1", "cpu_core/cycles/P", ""),
        ];
        for (line, comm, event, rest) in cases {
            let found = header(line).map(|header| (header.comm, header.event, header.rest));
            assert_eq!(found, Some((comm, event, rest)), "{line}");
        }
    }

    #[test]
    fn where_and_when_a_sample_was_taken() {
        let whole = header("Thread 7 24636/25607 [000] 94564.109216:     250000 cycles:uhH:").unwrap();
        assert_eq!(
            (whole.thread, whole.cpu, whole.time, whole.period),
            ("24636/25607", Some("[000]"), Some("94564.109216:"), Some("250000"))
        );
        let few = header("java 25607 cycles:").unwrap();
        assert_eq!((few.thread, few.cpu, few.time, few.period), ("25607", None, None, None));
        let bare = bare_header("Thread 7 25607 [002]    250000").unwrap();
        assert_eq!((bare.thread, bare.cpu, bare.time, bare.period), ("25607", Some("[002]"), None, Some("250000")));
    }

    #[test]
    fn fields_without_time_and_event() {
        let cases = [
            ("java 25607", Some("java")),
            ("   redis-server  9755/9756 ", Some("redis-server")),
            ("V8 WorkerThread 24636/25607 [002]", Some("V8 WorkerThread")),
            ("Thread 7 25607 [002]    250000", Some("Thread 7")),
            ("25607", None),
            ("java", None),
            ("\tffffffff8104f45a native_write_msr_safe ([kernel.kallsyms])", None),
        ];
        for (line, comm) in cases {
            assert_eq!(bare_header(line).map(|header| header.comm), comm, "{line}");
        }
    }

    #[test]
    fn other_lines_are_no_headers() {
        let lines = [
            "\tffffffff8104f45a native_write_msr_safe ([kernel.kallsyms])",
            "main;work 12",
            "main;work 12 13",
            "25607 4794564.109216: cycles:",
            "java 25607",
            "java cycles:",
            "java 25607 [001] 250000",
            "hello world",
            "",
        ];
        for line in lines {
            assert_eq!(header(line), None, "{line}");
        }
    }

    #[test]
    fn events_are_known_by_their_plain_name() {
        let cases = [
            ("cycles", "cycles"),
            ("cycles:uppp", "cycles"),
            ("cpu-cycles:P", "cycles"),
            ("cpu_core/cycles/P", "cycles"),
            ("cpu/cpu-cycles,period=99/u", "cycles"),
            ("cpu-clock:pppH", "cpu-clock"),
            ("sched:sched_switch", "sched:sched_switch"),
            ("block:block_rq_issue", "block:block_rq_issue"),
        ];
        for (event, plain) in cases {
            assert_eq!(plain_event(event), plain, "{event}");
        }
    }
}
