//! Rules of names over whole profiles, and their documentation.

use std::collections::BTreeMap;

use fleetdiff_formats::names::{NameRule, NameRules};
use fleetdiff_formats::{Format, Options};
use fleetdiff_schemas::profile::{ProfileType, Samples};

use super::fixtures::{labels, part};

/// How a name stands in a table of Markdown.
fn cell(name: &str) -> String {
    let escaped = name.replace('|', "\\|");
    if name.contains('`') { format!("`` {escaped} ``") } else { format!("`{escaped}`") }
}

#[test]
fn every_rule_is_documented_by_its_first_example() {
    let written = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/names.md")).unwrap();
    let documented: Vec<&str> = written.lines().filter(|line| line.starts_with("| `")).collect();
    let row = |NameRule { name, what, examples, .. }: &NameRule| {
        let [raw, counted] = &examples[0];
        format!("| `{name}` | {what} | {} | {} |", cell(raw), cell(counted))
    };
    assert_eq!(documented, NameRules::list().iter().map(row).collect::<Vec<_>>());
}

/// One program, as two of its builds and processes name what it does: a comment was added, and the runtime numbered anew.
const BUILDS: [&str; 2] = [
    "main (app.js:1:1);serve (app.js:12:3);(anonymous:L#14:C#9) (app.js) 90\n\
     main (app.js:1:1);render (main.4f3a2b1c.js:1:20) 40\n\
     Work.main;Work$$Lambda$4.0x00007f3a1c0a1000.run;Work.lambda$main$0 70\n\
     Work.main;Work$$Lambda$5.0x00007f3a1c0a1218.run;Work.lambda$main$1 30\n\
     Work.main;jdk.proxy2.$Proxy12.find;jdk.internal.reflect.GeneratedMethodAccessor3.invoke 20\n\
     main.main;main.serve.gowrap1;main.serve.func1 60\n\
     main.main;main.serve.gowrap1;main.serve.func2 10\n\
     acme[8787f43e282added]::run;acme::read::h0123456789abcdef;copy.constprop.0 50\n",
    "main (app.js:2:1);serve (app.js:13:3);(anonymous:L#15:C#9) (app.js) 90\n\
     main (app.js:2:1);render (main.9e8d7c6b.js:1:24) 40\n\
     Work.main;Work$$Lambda$11.0x00007fe2800a3400.run;Work.lambda$main$0 70\n\
     Work.main;Work$$Lambda$9.0x00007fe2800a2c00.run;Work.lambda$main$1 30\n\
     Work.main;jdk.proxy3.$Proxy31.find;jdk.internal.reflect.GeneratedMethodAccessor17.invoke 20\n\
     main.main;main.serve.gowrap2;main.serve.func1 60\n\
     main.main;main.serve.gowrap2;main.serve.func2 10\n\
     acme[1c2b3a4d5e6f7a8b]::run;acme::read::hfedcba9876543210;copy.constprop.3 50\n",
];

/// Stacks by name, with their samples.
fn stacks(text: &str, options: &Options) -> BTreeMap<Vec<String>, u64> {
    let mut decoder = Format::Folded.decoder(options);
    let profile = part(decoder.as_mut(), text.as_bytes(), &Ok(labels(ProfileType::Cpu))).unwrap();
    let Samples::Stacks(stacks) = &profile.samples else { panic!("folded stacks are stacks") };
    let name = |frame: &u32| profile.names[usize::try_from(*frame).unwrap()].to_string();
    stacks.iter().map(|stack| (stack.frames.iter().map(name).collect(), stack.count)).collect()
}

#[test]
fn regression_builds_that_differ_in_lines_and_numbers_only_have_the_same_functions() {
    let [base, head] = BUILDS.map(|text| stacks(text, &Options::default()));
    assert_eq!(base, head);
    assert_eq!((base.len(), base.values().sum::<u64>()), (8, 370), "{base:?}");
    // The twin: without the rules of a runtime its functions are new and gone.
    for (runtime, fewest) in [("any", 2), ("jvm", 3), ("v8", 2), ("go", 2), ("rust", 1), ("native", 1)] {
        let options = Options { name_rules: NameRules::without(&[runtime]).unwrap(), ..Options::default() };
        let [base, head] = BUILDS.map(|text| stacks(text, &options));
        let new = head.keys().filter(|stack| !base.contains_key(*stack)).count();
        assert!(new >= fewest, "{runtime}: {new} stacks are new");
    }
}
