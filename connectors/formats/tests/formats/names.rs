//! Names through whole decoders: what differs between builds and processes though the functions do not, and the page of the rules.

#[path = "../../examples/names/page.rs"]
mod page;

use std::collections::BTreeMap;

use fleetdiff_formats::names::NameRules;
use fleetdiff_formats::{Format, Options};
use fleetdiff_schemas::profile::ProfileType;

use super::fixtures::{labels, part, written_out};

/// The page in `docs` is what the rules say.
#[test]
fn the_page_of_rules_is_up_to_date() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/names.md");
    let page = std::fs::read_to_string(path).unwrap();
    assert!(
        page == page::rules_of_names(),
        "docs/names.md is not what the rules say; write it anew with \
         `cargo run --release -p fleetdiff-formats --example names > docs/names.md`"
    );
}

/// A service on the JVM that calls a program in Node: profiles of two builds that differ in a comment, and so in lines, hashes of
/// bundles and what each process numbers.
const BUILDS: [&str; 2] = [
    "java.lang.Thread.run:829;shop.Cart$$Lambda$4.0x00007f8a1c000a00.run;shop.Cart.lambda$total$0:41;com.sun.proxy.$Proxy12.price 30
java.lang.Thread.run:829;shop.Cart$$Lambda$9/0x00007f8a1c001218.run;shop.Cart.lambda$total$1:57 20
java.lang.Thread.run:829;jdk.internal.reflect.GeneratedMethodAccessor17.invoke;shop.Cart$$EnhancerBySpringCGLIB$$1a2b3c4d.total 10
java.lang.Thread.run:829;libjvm.so+0x7d29f 5
(anonymous) (/srv/dist/main.4f3a2b1c.js:1:10);price (/srv/dist/main.4f3a2b1c.js:12:34);LazyCompile:~round /srv/dist/money.js:3:9 25
(anonymous) (/srv/dist/main.4f3a2b1c.js:1:10);(anonymous:L#2:C#81) 7
(anonymous) (/srv/dist/main.4f3a2b1c.js:1:10);next (/srv/node_modules/.pnpm/express@4.18.2/node_modules/express/lib/router.js:10:3) 3
",
    "java.lang.Thread.run:829;shop.Cart$$Lambda$11.0x00007fb2d4000400.run;shop.Cart.lambda$total$0:43;com.sun.proxy.$Proxy31.price 30
java.lang.Thread.run:829;shop.Cart$$Lambda$7/0x00007fb2d4000818.run;shop.Cart.lambda$total$1:59 20
java.lang.Thread.run:829;jdk.internal.reflect.GeneratedMethodAccessor9.invoke;shop.Cart$$EnhancerBySpringCGLIB$$9f8e7d6c.total 10
java.lang.Thread.run:829;libjvm.so+0x7d31b 5
(anonymous) (/srv/dist/main.9d8e7f60.js:1:10);price (/srv/dist/main.9d8e7f60.js:13:34);JS:*round /srv/dist/money.js:4:9 25
(anonymous) (/srv/dist/main.9d8e7f60.js:1:10);(anonymous:L#3:C#81) 7
(anonymous) (/srv/dist/main.9d8e7f60.js:1:10);next (/srv/node_modules/.pnpm/express@4.18.3/node_modules/express/lib/router.js:10:3) 3
",
];

fn stacks(text: &str, name_rules: NameRules) -> BTreeMap<Vec<String>, u64> {
    let mut decoder = Format::Folded.decoder(&Options { name_rules, ..Options::default() });
    let profile = part(decoder.as_mut(), text.as_bytes(), &Ok(labels(ProfileType::Cpu))).unwrap();
    let mut sums = BTreeMap::new();
    for (frames, count, _) in written_out(&profile) {
        *sums.entry(frames).or_default() += count;
    }
    sums
}

#[test]
fn regression_builds_that_differ_in_comments_and_processes_have_the_same_functions() {
    let [base, head] = BUILDS.map(|text| stacks(text, NameRules::default()));
    assert_eq!(base, head);
    assert_eq!(base.len(), 7, "functions that differ stay apart: {base:?}");
}

/// The twin: it is the rules that make them one.
#[test]
fn rules_that_are_switched_off_leave_names_as_they_came() {
    let [base, head] = BUILDS.map(|text| stacks(text, NameRules::without(&["jvm", "v8", "native", "any"]).unwrap()));
    let in_both = base.keys().filter(|frames| head.contains_key(*frames)).count();
    assert_eq!((base.len(), in_both), (7, 0));
    assert!(base.keys().flatten().any(|name| name == "libjvm.so+0x7d29f"));
}
