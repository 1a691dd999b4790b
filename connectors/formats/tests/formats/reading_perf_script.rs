//! `perf script` read as `perf diff` reads a recording.

use fleetdiff_formats::Format;
use fleetdiff_formats::reading::{Filters, Percentage, Reading, Run, Unread};
use fleetdiff_schemas::profile::ProfileType;
use fleetdiff_schemas::time::Nanos;

use super::reading::{leaves, listed, read_as, stacks};

/// Two processes on two processors; the kernel's line of source is not found.
const TEXT: &str = "\
shop 11/12 [000] 100.000000:    1000 cycles:P: 
\t    55d010 encode+0x10 (/srv/shop)
  encode.c:8
\t    55d020 serve+0x20 (/srv/shop)
  serve.c:4
\t    7f0010 __libc_start_call_main+0x7a (/usr/lib/libc.so.6)
  libc-start.c:74

shop 11/13 [001] 100.200000:    3000 cycles:P: 
\tffffffff81e63129 __x64_sys_write+0x9 ([kernel.kallsyms])
  [kernel.kallsyms][ffffffff81e63129]
\tffffffff81e63100 sys_entry+0x1 ([kernel.kallsyms])
  [kernel.kallsyms][ffffffff81e63100]
\t    55d020 serve+0x24 (/srv/shop)
  serve.c:6

GC Thread 21/21 [001] 100.500000:    5000 cycles:P: 
\t    7f0200 [unknown] (/usr/lib/libjemalloc.so.2)
\t    55d030 inner+0x2 (inlined)
\t    55d030 collect+0x2 (/srv/shop)
  gc.c:9

shop 11/12 [000] 101.000000:    2000 cycles:P: 
\t    55d012 encode+0x12 (/srv/shop)
  encode.c:9
\t    55d020 serve+0x20 (/srv/shop)
  serve.c:4

";

fn read(reading: &Reading) -> Result<Run, Unread> {
    read_as(reading, Format::PerfScript, TEXT.as_bytes(), ProfileType::Cpu)
}

fn by(keys: &str) -> Reading {
    Reading { keys: Some(keys.parse().unwrap()), ..Reading::default() }
}

fn only(filters: Filters) -> Reading {
    Reading { filters, ..Reading::default() }
}

fn names(list: &[&str]) -> Option<std::collections::BTreeSet<std::sync::Arc<str>>> {
    Some(list.iter().map(|name| (*name).into()).collect())
}

#[test]
fn periods_are_weights_of_the_event() {
    let run = read(&Reading::default()).unwrap();
    assert_eq!(run.profile.total(), 4);
    let weights = run.weights.unwrap();
    assert_eq!(&*weights.unit, "cycles");
    assert_eq!(
        listed(&leaves(&weights.profile)),
        [("[libjemalloc.so]", 5000), ("__x64_sys_write_[k]", 3000), ("encode", 3000)]
    );
}

#[test]
fn a_text_without_periods_has_no_weights() {
    let text = TEXT.replace("    1000 cycles", " cycles");
    let run = read_as(&Reading::default(), Format::PerfScript, text.as_bytes(), ProfileType::Cpu).unwrap();
    assert_eq!((run.profile.total(), run.weights), (4, None));
}

#[test]
fn keys_name_frames_in_their_order() {
    let of = |keys: &str| leaves(&read(&by(keys)).unwrap().profile);
    assert_eq!(listed(&of("dso")), [("[kernel.kallsyms]", 1), ("libjemalloc.so.2", 1), ("shop", 2)]);
    assert_eq!(
        listed(&of("dso,symbol")),
        [("[kernel.kallsyms]  __x64_sys_write_[k]", 1), ("libjemalloc.so.2  [unknown]", 1), ("shop  encode", 2)]
    );
    assert_eq!(
        listed(&of("symbol,dso")),
        [("[unknown]  libjemalloc.so.2", 1), ("__x64_sys_write_[k]  [kernel.kallsyms]", 1), ("encode  shop", 2)]
    );
    assert_eq!(listed(&of("symbol")), [("[libjemalloc.so]", 1), ("__x64_sys_write_[k]", 1), ("encode", 2)]);
    assert_eq!(
        listed(&of("srcline")),
        [("[libjemalloc.so]", 1), ("__x64_sys_write_[k]", 1), ("encode.c:8", 1), ("encode.c:9", 1)]
    );
    assert_eq!(listed(&of("comm")), [("GC Thread", 1), ("shop", 3)]);
    assert_eq!(listed(&of("pid")), [("11:shop", 3), ("21:GC Thread", 1)]);
    assert_eq!(listed(&of("tid")), [("12:shop", 2), ("13:shop", 1), ("21:GC Thread", 1)]);
    assert_eq!(listed(&of("cpu,comm")), [("000  shop", 2), ("001  GC Thread", 1), ("001  shop", 1)]);
}

#[test]
fn keys_of_a_sample_stand_in_all_of_its_frames_and_the_thread_is_no_frame() {
    let whole = stacks(&read(&by("cpu,symbol")).unwrap().profile);
    assert!(whole.contains_key("001  serve;001  sys_entry_[k];001  __x64_sys_write_[k]"), "{whole:?}");
    let plain = stacks(&read(&by("symbol")).unwrap().profile);
    assert_eq!(plain.get("serve;encode"), Some(&1), "{plain:?}");
}

/// What was inlined is of the library of its caller, and calls within a library are one frame of it.
#[test]
fn libraries_call_each_other_once() {
    let found = stacks(&read(&by("dso")).unwrap().profile);
    assert_eq!(
        listed(&found),
        [("libc.so.6;shop", 1), ("shop", 1), ("shop;[kernel.kallsyms]", 1), ("shop;libjemalloc.so.2", 1)]
    );
    let inlined = stacks(&read(&by("dso,symbol")).unwrap().profile);
    assert!(inlined.contains_key("shop  collect;shop  inner;libjemalloc.so.2  [unknown]"), "{inlined:?}");
}

#[test]
fn the_parent_is_the_innermost_caller_that_matches() {
    let default = leaves(&read(&by("parent")).unwrap().profile);
    assert_eq!(listed(&default), [("[other]", 3), ("sys_entry", 1)]);
    let other = Reading { parent: "^serve$|^encode$".parse().unwrap(), ..by("parent") };
    assert_eq!(listed(&leaves(&read(&other).unwrap().profile)), [("[other]", 1), ("encode", 2), ("serve", 1)]);
    assert!("(".parse::<fleetdiff_formats::reading::Parent>().is_err());
}

#[test]
fn a_filter_keeps_what_it_leaves_out_in_the_denominator_unless_shares_are_relative() {
    for filters in [
        Filters { symbols: names(&["encode"]), ..Filters::default() },
        Filters { tids: Some("12".parse().unwrap()), ..Filters::default() },
    ] {
        let absolute = read(&only(filters.clone())).unwrap();
        assert_eq!(listed(&leaves(&absolute.profile)), [("[filtered]", 2), ("encode", 2)], "{filters:?}");
        assert_eq!(absolute.weights.unwrap().profile.total(), 11_000);
        let relative = read(&Reading { percentage: Percentage::Relative, ..only(filters) }).unwrap();
        assert_eq!(listed(&leaves(&relative.profile)), [("encode", 2)]);
        assert_eq!(relative.weights.unwrap().profile.total(), 3_000);
    }
}

#[test]
fn filters_look_at_the_leaf() {
    let left = |filters: Filters| {
        let run = read(&Reading { percentage: Percentage::Relative, ..only(filters) });
        run.map(|run| run.profile.total())
            .map_err(|fault| assert!(matches!(fault, Unread::NothingLeft(_)), "{fault}"))
            .unwrap_or(0)
    };
    let by_symbol = |list: &[&str]| left(Filters { symbols: names(list), ..Filters::default() });
    assert_eq!(
        [
            by_symbol(&["encode"]),
            by_symbol(&["serve"]),
            by_symbol(&["__x64_sys_write"]),
            by_symbol(&["__x64_sys_write_[k]", "encode"])
        ],
        [2, 0, 1, 3]
    );
    let by_dso = |list: &[&str]| left(Filters { dsos: names(list), ..Filters::default() });
    assert_eq!(
        [
            by_dso(&["shop"]),
            by_dso(&["/srv/shop"]),
            by_dso(&["libc.so.6"]),
            by_dso(&["libjemalloc.so.2", "[kernel.kallsyms]"])
        ],
        [2, 2, 0, 2]
    );
    let by_comm = |list: &[&str]| left(Filters { comms: names(list), ..Filters::default() });
    assert_eq!([by_comm(&["shop"]), by_comm(&["GC Thread"]), by_comm(&["GC"])], [3, 1, 0]);
    assert_eq!(left(Filters { pids: Some("20-30".parse().unwrap()), ..Filters::default() }), 1);
    assert_eq!(
        left(Filters { pids: Some("11".parse().unwrap()), symbols: names(&["encode"]), ..Filters::default() }),
        2
    );
}

#[test]
fn samples_of_other_processors_are_not_read_at_all() {
    let of = |list: &str| read(&only(Filters { cpus: Some(list.parse().unwrap()), ..Filters::default() }));
    let run = of("0,7").unwrap();
    assert_eq!(listed(&leaves(&run.profile)), [("encode", 2)]);
    assert_eq!(run.weights.unwrap().profile.total(), 3_000);
    assert!(matches!(of("2-9"), Err(Unread::NothingLeft(_))));
}

#[test]
fn stretches_of_time_are_read() {
    let at = |times: &str| {
        read(&Reading { times: Some(times.parse().unwrap()), ..Reading::default() }).map(|run| run.profile.total())
    };
    assert_eq!(at("100.2,100.5"), Ok(2));
    assert_eq!(at(",100.2 101,"), Ok(3));
    assert_eq!(at("0%-50%"), Ok(2));
    assert_eq!(at("50%/1,50%/2"), Ok(4));
    assert_eq!(at("50%-100%"), Ok(2));
    let nothing = Unread::OutOfTime { first: Nanos::from_seconds(100), last: Nanos::from_seconds(101) };
    assert_eq!(at("102,"), Err(nothing.clone()));
    assert!(nothing.to_string().contains("its first is at 100.000000 s and its last at 101.000000 s"), "{nothing}");
}

#[test]
fn a_warm_up_is_left_out() {
    let after = |crop: i64| {
        read(&Reading { crop: Some(Nanos(crop)), ..Reading::default() }).map(|run| (run.timed, run.profile.total()))
    };
    assert_eq!(after(0), Ok((true, 4)));
    assert_eq!(after(200_000_000), Ok((true, 3)));
    assert_eq!(after(200_000_001), Ok((true, 2)));
    assert!(matches!(after(2_000_000_000), Err(Unread::OutOfTime { .. })));
}

#[test]
fn whole_chains_are_compared() {
    let plain = read(&Reading { stream: true, ..Reading::default() }).unwrap();
    assert_eq!(plain.profile.names.len(), 4);
    assert_eq!(leaves(&plain.profile).get("shop;serve;sys_entry_[k];__x64_sys_write_[k]"), Some(&1));
    let keyed = read(&Reading { stream: true, ..by("symbol") }).unwrap();
    assert_eq!(leaves(&keyed.profile).get("serve;encode"), Some(&1));
    assert_eq!(keyed.weights.unwrap().profile.total(), 11_000);
}

/// What a text does not say is said: it is neither guessed nor left out.
#[test]
fn a_text_that_lacks_a_field_is_refused_with_its_name() {
    let fault = |text: &str, reading: &Reading| {
        read_as(reading, Format::PerfScript, text.as_bytes(), ProfileType::Cpu).unwrap_err().to_string()
    };
    let no_cpu = TEXT.replace(" [000]", "").replace(" [001]", "");
    assert!(fault(&no_cpu, &by("cpu")).contains("on which processor"));
    assert!(
        fault(&no_cpu, &only(Filters { cpus: Some("0".parse().unwrap()), ..Filters::default() }))
            .contains("on which processor")
    );
    let no_pid = TEXT.replace("11/", "").replace("21/", "");
    assert!(fault(&no_pid, &by("pid")).contains("of which process"));
    assert!(
        fault(&no_pid, &only(Filters { pids: Some("11".parse().unwrap()), ..Filters::default() }))
            .contains("of which process")
    );
    assert_eq!(
        listed(&leaves(&read_as(&by("tid"), Format::PerfScript, no_pid.as_bytes(), ProfileType::Cpu).unwrap().profile))
            .len(),
        3
    );
    let no_line: String = TEXT.lines().filter(|line| !line.starts_with("  ")).map(|line| format!("{line}\n")).collect();
    assert!(fault(&no_line, &by("srcline")).contains("of which line of the source"));
    let no_dso: String = TEXT
        .lines()
        .map(|line| format!("{}\n", if line.starts_with('\t') { line.split(" (").next().unwrap() } else { line }))
        .collect();
    assert!(fault(&no_dso, &by("dso")).contains("which program or library"));
    assert!(
        fault(&no_dso, &only(Filters { dsos: names(&["shop"]), ..Filters::default() }))
            .contains("which program or library")
    );
    let no_time = TEXT
        .replace("100.000000:", "")
        .replace("100.200000:", "")
        .replace("100.500000:", "")
        .replace("101.000000:", "");
    assert!(
        fault(&no_time, &Reading { times: Some("1,2".parse().unwrap()), ..Reading::default() })
            .contains("when its samples were taken")
    );
    assert!(
        fault(&no_time, &Reading { crop: Some(Nanos(1)), ..Reading::default() })
            .contains("when its samples were taken")
    );
}

/// perf prints the module and the address where it finds no line: that is no broken record.
#[test]
fn regression_lines_of_source_that_perf_did_not_find() {
    assert_eq!(leaves(&read(&Reading::default()).unwrap().profile).get("__x64_sys_write_[k]"), Some(&1));
}
