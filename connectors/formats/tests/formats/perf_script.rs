//! The text of `perf script`, beside what inferno makes of it.

use std::collections::BTreeMap;

use fleetdiff_formats::{Format, Labels, Options, Unit};
use fleetdiff_schemas::profile::{Profile, ProfileType};
use fleetdiff_schemas::rejected::{Reason, Rejection};
use inferno::collapse::Collapse;
use inferno::collapse::perf::{Folder, Options as FolderOptions};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::examples::PERF_SCRIPT;
use super::fixtures::{labels, part, written_out};

fn decode_as(kind: ProfileType, text: &str) -> Result<Profile, Rejection> {
    part(&mut *Format::PerfScript.decoder(&Options::default()), text.as_bytes(), &Ok(labels(kind)))
}

fn decode(text: &str) -> Result<Profile, Rejection> {
    decode_as(ProfileType::Cpu, text)
}

/// Samples by stack, frames joined.
fn stacks(profile: &Profile) -> BTreeMap<String, u64> {
    let mut found = BTreeMap::new();
    for (frames, count, _) in written_out(profile) {
        *found.entry(frames.join(";")).or_insert(0) += count;
    }
    found
}

/// What `inferno-collapse-perf --kernel` makes of a text whose events all have this period.
fn by_inferno(text: &str, period: u64) -> BTreeMap<String, u64> {
    let mut options = FolderOptions::default();
    options.annotate_kernel = true;
    options.nthreads = 1;
    let mut folded = Vec::new();
    Folder::from(options).collapse(text.as_bytes(), &mut folded).unwrap();
    // Its names go through our table of names too, as they would in a fleet of folded files.
    let labels = Ok(Labels { unit: Some(Unit::Count), ..labels(ProfileType::Cpu) });
    let mut found = match part(Format::Folded.decoder(&Options::default()).as_mut(), &folded, &labels) {
        Ok(profile) => stacks(&profile),
        Err(fault) => {
            assert_eq!(fault.reason, Reason::Empty, "{fault:?}");
            BTreeMap::new()
        }
    };
    found.values_mut().for_each(|count| *count /= period);
    found
}

#[test]
fn oracle_the_example_is_what_inferno_makes_of_it() {
    let mut ours = stacks(&decode(PERF_SCRIPT).unwrap());
    // inferno drops an event without a stack.
    assert_eq!(ours.remove("shop-worker;_unsymbolised"), Some(1));
    let mut theirs = by_inferno(PERF_SCRIPT, 250_000);
    // inferno takes the first number for the pid, and knows classes of the JVM by a thread's name alone.
    let jitted = "GC_Thread;Interpreter;Lshop/Basket:::total;Lshop/Price:::add_[i]";
    assert_eq!(theirs.remove(jitted), Some(1), "{theirs:#?}");
    assert_eq!(ours.remove("GC_Thread_7;Interpreter;shop/Basket:::total;shop/Price:::add_[i]"), Some(1), "{ours:#?}");
    assert_eq!(ours, theirs);
    assert_eq!(ours.len(), 2);
}

/// Lines of stacks as programs of many languages have them.
const FRAMES: [&str; 22] = [
    "\tffffffff8103ce3b native_safe_halt ([kernel.kallsyms])",
    "\tffffffff816b8e18 vfs_write+0x108 ([kernel.kallsyms])",
    "\t             7d8 ipv4_conntrack_local+0x7f8f80b8 ([nf_conntrack_ipv4])",
    "\t          8c3453 tcp_sendmsg (/lib/modules/4.3.0-rc1-virtual/build/vmlinux)",
    "\t    7f2c000f838f __GI___libc_write+0x4f (/usr/lib/x86_64-linux-gnu/libc.so.6)",
    "\t    7f53389994d0 [unknown] ([unknown])",
    "\t    7f2c00011112 [unknown] (/usr/lib/x86_64-linux-gnu/libjemalloc.so.2)",
    "\tffffffff81000000 [unknown] ([kernel.kallsyms])",
    "\t               0 [unknown] ([unknown])",
    "\t          52f4b3 text/template.addValueFuncs+0x1f3 (/usr/lib/go/bin/go)",
    "\t          53d165 regexp/syntax.(*parser).maybeConcat+0x235 (/usr/lib/go/bin/go)",
    "\t          53d166 main.serve.func1.2+0x5 (/usr/lib/go/bin/go)",
    "\t          53d167 slices.SortFunc[...]+0x5 (/usr/lib/go/bin/go)",
    "\t    55d0a1c04410 shop::Basket::flush(std::ostream&)+0x30 (/srv/shop)",
    "\t    55d0a1c04411 std::vector<int, std::allocator<int> >::push_back(int const&) (/srv/shop)",
    "\t    55d0a1c04412 shop::(anonymous namespace)::run(int) (/srv/shop)",
    "\t    55d0a1c04413 main::{lambda(int)#1}::call(int) const (/srv/shop)",
    "\t    55d0a1c04414 <shop::Basket as core::fmt::Display>::fmt::h0123456789abcdef (/srv/shop)",
    "\t    55d0a1c04415 encode.llvm.8843167243218 (/srv/shop)",
    "\t    55d0a1c04416 read.part.0 (inlined)",
    "\t    7f1b88000040 Lshop/Basket;::total->Lshop/Price;::add+0x40 (/tmp/perf-2911.map)",
    "\t    7f1b88000010 Interpreter+0x10 (/tmp/perf-2911.map)",
];

/// An event as one list of fields prints it: with or without pid, cpu and period.
fn header(comm: &str, fields: usize, period: bool) -> String {
    let thread = if fields & 1 == 0 { "2913" } else { "2911/2913" };
    let cpu = if fields & 2 == 0 { "" } else { " [001]" };
    let period = if period { "     250000" } else { "" };
    format!("{comm} {thread}{cpu} 77310.101010:{period} cpu-clock:pppH: \n")
}

fn events() -> impl Strategy<Value = Vec<(&'static str, usize, Vec<usize>)>> {
    let comm = select(vec!["java", "shop", "V8 WorkerThread", "GC Thread", "Web Content"]);
    vec((comm, 0..4usize, vec(0..FRAMES.len(), 1..12)), 1..20)
}

fn is_java(frame: usize) -> bool {
    FRAMES[frame].contains(" L")
}

proptest! {
    /// The same samples as inferno's, whatever fields and periods were printed.
    #[test]
    fn oracle_stacks_are_those_of_inferno(events in events(), period in any::<bool>(), comments in any::<bool>()) {
        let mut text = if comments { "# ========\n#\n".to_owned() } else { String::new() };
        for (comm, fields, frames) in &events {
            text.push_str(&header(comm, *fields, period));
            // inferno knows classes of the JVM by the thread's name, we by their form.
            for frame in frames.iter().filter(|frame| *comm == "java" || !is_java(**frame)) {
                text.push_str(FRAMES[*frame]);
                text.push('\n');
            }
            text.push('\n');
        }
        let mut ours = stacks(&decode(&text).unwrap());
        // inferno drops an event without a stack.
        ours.retain(|stack, _| !matches!(stack.split_once(';'), Some((_, "_unsymbolised"))));
        let mut theirs = by_inferno(&text, if period { 250_000 } else { 1 });
        theirs.retain(|stack, _| !matches!(stack.split_once(';'), Some((_, "_unsymbolised"))));
        prop_assert_eq!(ours, theirs);
    }

    /// Every event is one sample, in whatever order they come.
    #[test]
    fn order_of_events_does_not_matter(events in events()) {
        let block = |(comm, fields, frames): &(&str, usize, Vec<usize>)| {
            let lines: String = frames.iter().map(|frame| format!("{}\n", FRAMES[*frame])).collect();
            format!("{}{lines}\n", header(comm, *fields, true))
        };
        let there: String = events.iter().map(block).collect();
        let back: String = events.iter().rev().map(block).collect();
        let profile = decode(&there).unwrap();
        prop_assert_eq!(usize::try_from(profile.total()).unwrap(), events.len());
        prop_assert_eq!(stacks(&profile), stacks(&decode(&back).unwrap()));
    }
}

#[test]
fn an_event_is_a_sample_whatever_its_period() {
    let event = |period: u64| format!("shop 7 1.5: {period} cycles:\n\t55d0 work (/srv/shop)\n\n");
    let text: String = [1, 250_000, u64::MAX].map(event).concat();
    assert_eq!(stacks(&decode(&text).unwrap()), BTreeMap::from([("shop;work".to_owned(), 3)]));
}

#[test]
fn of_several_events_the_one_of_the_type_is_counted() {
    let event = |name: &str, leaf: &str| format!("shop 7 1.5: 1 {name}:\n\t55d0 {leaf} (/srv/shop)\n\n");
    let several = [
        event("cache-misses:u", "miss"),
        event("cpu_core/cycles/P", "a"),
        event("cpu_atom/cycles/P", "b"),
        event("cache-misses:u", "miss"),
    ]
    .concat();
    let expected = BTreeMap::from([("shop;a".to_owned(), 1), ("shop;b".to_owned(), 1)]);
    assert_eq!(stacks(&decode(&several).unwrap()), expected);
    let fault = decode_as(ProfileType::OffCpu, &several).unwrap_err();
    assert_eq!(fault.reason, Reason::UnitMismatch);
    assert!(fault.detail.contains("cache-misses, cycles"), "{fault:?}");
    let misses = [event("cache-misses:u", "miss"), event("branch-misses", "miss")].concat();
    assert_eq!(decode(&misses).unwrap_err().reason, Reason::UnitMismatch);
    assert_eq!(
        decode(&event("cache-misses", "miss")).unwrap().total(),
        1,
        "a single event is taken at the labels' word"
    );
    let added_up = decode_as(ProfileType::OffCpu, &event("offcpu-time", "wait")).unwrap_err();
    assert_eq!(added_up.reason, Reason::UnitMismatch);
}

#[test]
fn frames_on_the_line_of_the_event_and_fields_of_tracepoints() {
    let text = "\
         vote   913    72.176760:     257597 cycles:  ffffffff9aa3c8de do_idle ([kernel.kallsyms])
         cafe   914    72.176761:     257597 cycles:  55d0 work+0x1 (/srv/shop)
";
    let expected = BTreeMap::from([("vote;do_idle_[k]".to_owned(), 1), ("cafe;work".to_owned(), 1)]);
    assert_eq!(stacks(&decode(text).unwrap()), expected);
    let text = "\
shop 7 [001] 1.5: sched:sched_switch: prev_comm=shop prev_pid=7 ==> next_comm=swapper
\tffffffff81 __schedule ([kernel.kallsyms])
\t  kernel/sched/core.c:6756
\t55d0 wait (/srv/shop)

";
    let profile = decode_as(ProfileType::OffCpu, text).unwrap();
    assert_eq!(stacks(&profile), BTreeMap::from([("wait @ shop;__schedule_[k] @ shop".to_owned(), 1)]));
}

#[test]
fn events_may_follow_each_other_without_a_blank_line() {
    let text = "shop 7 1.5: cycles:\nshop 7 1.6: cycles:\n\t55d0 work (/srv/shop)\nshop 7 1.7: cycles:\n";
    let expected = BTreeMap::from([("shop;_unsymbolised".to_owned(), 2), ("shop;work".to_owned(), 1)]);
    assert_eq!(stacks(&decode(text).unwrap()), expected);
    let records = "shop 7 1.4: PERF_RECORD_COMM: shop:7/7\nshop 7 1.5: cycles:\n\t55d0 work (/srv/shop)\n\n";
    assert_eq!(decode(records).unwrap().total(), 1);
}

/// `perf script -F comm,pid,tid,ip,sym,dso`, with and without the processor and the period.
#[test]
fn fields_may_hold_neither_time_nor_event() {
    let block =
        |header: &str| format!("{header}\n\t    55d0 inner+0x1 (/srv/shop)\n\t    55d8 main+0x9 (/srv/shop)\n\n");
    let text = ["shop  12/13 ", "    my shop  12/14 [001]", "shop 12 [001]  250000"].map(block).concat();
    let found = stacks(&decode(&text).unwrap());
    assert_eq!(found, BTreeMap::from([("shop;main;inner".to_owned(), 2), ("my_shop;main;inner".to_owned(), 1)]));
    // Folded stacks have lines of the same form, and are no such text.
    for text in ["main;work 12\n", "main;work 12\nmain;rest 5\n", "shop 12/13\n\n"] {
        assert_eq!(decode(text).unwrap_err().reason, Reason::Malformed, "{text:?}");
    }
}

#[test]
fn each_fault_has_its_reason_and_its_line() {
    let cases = [
        ("shop 7 1.5: cycles:\n\t55d0 work (/srv/sh", Reason::Truncated, "line 2: has no end"),
        ("main;work 12\n", Reason::Malformed, "line 1: \"main;work 12\", expected an event"),
        ("shop 7 1.5: cycles:\n\t55d0 work (m)\nxyz?\n", Reason::Malformed, "line 3: \"xyz?\", expected a frame"),
        ("\t55d0 work (m)\n", Reason::Malformed, "line 1"),
        ("# a comment\n\n", Reason::Empty, "no sample"),
    ];
    for (text, reason, detail) in cases {
        let fault = decode(text).unwrap_err();
        assert_eq!(fault.reason, reason, "{fault:?}");
        assert!(fault.detail.contains(detail), "{fault:?}");
    }
    let mut decoder = Format::PerfScript.decoder(&Options::default());
    let fault = part(&mut *decoder, b"shop 7 1.5: cycles:\n\xff\n", &Ok(labels(ProfileType::Cpu))).unwrap_err();
    assert_eq!((fault.reason, fault.detail.as_str()), (Reason::Malformed, "line 2: not UTF-8"));
}

/// A text cut anywhere is refused, or holds no more events than the whole.
#[test]
fn every_cut_is_refused_or_holds_no_more() {
    let whole = decode(PERF_SCRIPT).unwrap().total();
    for end in 0..PERF_SCRIPT.len() {
        match decode(&PERF_SCRIPT[..end]) {
            Ok(profile) => assert!(profile.total() <= whole && PERF_SCRIPT[..end].ends_with('\n'), "cut at {end}"),
            Err(fault) => assert!(matches!(fault.reason, Reason::Truncated | Reason::Empty), "{fault:?}"),
        }
    }
}
