use std::collections::BTreeSet;

use fleetdiff_schemas::idle::idle_defaults;
use proptest::prelude::*;

use super::*;

fn counted(raw: &str) -> String {
    NameRules::default().apply(raw).into_owned()
}

/// Only the rule at this place.
fn only(place: usize) -> NameRules {
    NameRules { off: (0..rules().len()).filter(|other| *other != place).collect() }
}

#[test]
fn every_rule_does_what_its_examples_say_alone_and_with_all_others() {
    for (place, rule) in rules().iter().enumerate() {
        for [raw, expected] in &rule.examples {
            assert_eq!(only(place).apply(raw), *expected, "{} alone", rule.name);
            assert_eq!(counted(raw), *expected, "{}", rule.name);
            assert_eq!(counted(expected), *expected, "{}: what it gave is changed again", rule.name);
        }
    }
}

#[test]
fn every_rule_keeps_what_it_says() {
    for rule in rules() {
        for name in &rule.keeps {
            assert_eq!(counted(name), *name, "{}", rule.name);
        }
    }
}

#[test]
fn every_rule_that_is_switched_off_leaves_its_examples_to_others() {
    for rule in rules() {
        let without = NameRules::without(&[rule.runtime]).unwrap();
        let is_left = |[raw, expected]: &[String; 2]| without.apply(raw) != *expected;
        assert!(rule.examples.iter().any(is_left), "nothing shows that {} of {} is off", rule.name, rule.runtime);
    }
}

#[test]
fn every_rule_says_what_it_does_and_shows_it() {
    let named: BTreeSet<&str> = rules().iter().map(|rule| rule.name.as_str()).chain(RUNTIMES).collect();
    assert_eq!(named.len(), rules().len() + RUNTIMES.len(), "two have one name");
    for rule in rules() {
        let is_plain = rule.name.bytes().all(|byte| byte.is_ascii_lowercase() || b"-0123456789".contains(&byte));
        assert!(is_plain && rule.what.ends_with('.'), "{rule:?}");
        assert!(!rule.examples.is_empty() && !rule.keeps.is_empty(), "{rule:?}");
    }
}

/// The lists of functions that wait for work are of names as they are counted.
#[test]
fn functions_that_are_idle_by_default_keep_their_names() {
    for entry in idle_defaults() {
        assert_eq!(counted(entry), entry);
    }
}

/// What one function is called in two builds, or in two processes of one build.
#[test]
fn one_function_is_one_name() {
    let pairs = [
        ("shop.Cart$$Lambda$4.0x00007f8a1c000a00.run", "shop.Cart$$Lambda$7.0x00007fb2d4001218.run"),
        ("shop.Cart$$Lambda$4/1831932724.run", "shop.Cart$$Lambda$9/52.run"),
        ("shop/Cart$$Lambda$14+0x0000000800c03000.run_[j]", "shop/Cart$$Lambda+0x0000000801c03000.run_[j]"),
        ("jdk.proxy2.$Proxy12.total", "jdk.proxy3.$Proxy9.total"),
        ("shop.Cart$$SpringCGLIB$$0.total", "shop.Cart$$SpringCGLIB$$1.total"),
        ("shop.Cart.total(Cart.java:12)", "shop.Cart.total(Cart.java:13)"),
        ("shop/Cart.total:12", "shop/Cart.total:13"),
        ("LazyCompile:~total /srv/cart.js:12:34", "JS:*total /srv/cart.js:13:34"),
        ("~total /srv/cart.js:12:34", "*total /srv/cart.js:13:34"),
        ("(anonymous:L#2:C#81)", "(anonymous:L#3:C#81)"),
        ("total (/srv/main.4f3a2b1c.js:1:234)", "total (/srv/main.9d8e7f60.js:1:240)"),
        ("total (/srv/.pnpm/cart@1.0.0/cart.js:1:2)", "total (/srv/.pnpm/cart@1.0.1_react@18.2.0/cart.js:2:2)"),
        ("main.serve.gowrap1", "main.serve.gowrap2"),
        ("shop[8787f43e282added]::run::{closure#0}", "shop[1a2b3c4d5e6f7a8b]::run::{closure#0}"),
        ("shop::run::h0123456789abcdef.llvm.77", "shop::run::hfedcba9876543210"),
        ("read.isra.0.cold", "read.constprop.0"),
        ("shop::read(int) [clone .isra.0] [clone .cold.3]", "shop::read(int) (.part.1)"),
        ("/usr/lib/x86_64-linux-gnu/libc-2.31.so+0x29d8f", "libc.so.6+0x2a1b0"),
        ("[libssl.so.1.1]", "[/usr/lib/libssl.so.3]"),
        ("Shop.Cart+<>c__DisplayClass3_0.<Total>b__0", "Shop.Cart+<>c__DisplayClass4_0.<Total>b__0"),
        ("Shop.Cart+<>c.<Total>b__3_1[QuickJitted]", "Shop.Cart+<>c.<Total>b__4_1[OptimizedTier1]"),
        ("block in total (/srv/cart.rb:3)", "block in total (/srv/cart.rb:4)"),
        ("{closure:{closure:/srv/cart.php:3}:5}", "{closure:{closure:/srv/cart.php:4}:6}"),
        ("<lambda> (/usr/lib/python3.11/cart.py:12)", "<lambda> (/usr/lib/python3.12/cart.py:13)"),
        ("/srv/cart.py:total:12", "/srv/cart.py:total:14"),
        ("vfs_read+0x1f_[k]", "vfs_read+0x20_[k]"),
        ("_ZN4core3fmt5write17h0123456789abcdefE+0x1f", "_ZN4core3fmt5write17hfedcba9876543210E"),
        ("_ZN4shop4readEi.cold", "shop::read(int) [clone .isra.0]"),
        ("__ZN4shop4readEi", "shop::read(int)"),
        ("_RNvCs6GSVXm7oiwY_4shop3run", "_RNvCs1234_4shop3run"),
        ("_RNvCs6GSVXm7oiwY_4shop3run.llvm.77", "shop[8787f43e282added]::run"),
        ("_RNvNtC4core3fmt5write+0x1f_[k]", "core::fmt::write_[k]"),
        ("0x7f3a00c4+0x12", "[unknown]"),
    ];
    for (one, other) in pairs {
        assert_ne!(one, other);
        assert_eq!(counted(one), counted(other));
    }
}

/// What one build keeps apart stays apart, and as it is.
#[test]
fn two_functions_are_two_names() {
    let pairs = [
        ("main.serve.func1", "main.serve.func2"),
        ("main.serve.func1.1", "main.serve.func1.2"),
        ("main.serve-range1", "main.serve-range2"),
        ("main.init.0", "main.init.1"),
        ("shop::run::{closure#0}", "shop::run::{closure#1}"),
        ("shop::run::{{closure}}", "shop::run::{{closure}}::{{closure}}"),
        ("run::{lambda(int)#1}::operator()", "run::{lambda(int)#2}::operator()"),
        ("run::$_0::operator()", "run::$_1::operator()"),
        ("run::'lambda'(int)", "run::'lambda0'(int)"),
        ("Shop.Cart+<>c.<Main>b__0", "Shop.Cart+<>c.<Main>b__1"),
        ("Shop.Cart.<Main>g__Add|0", "Shop.Cart.<Main>g__Add|1"),
        ("shop.Cart.lambda$run$0", "shop.Cart.lambda$run$1"),
        ("shop.Cart$1.run", "shop.Cart$2.run"),
        ("shop.Cart$$anonfun$run$1.apply", "shop.Cart$$anonfun$run$2.apply"),
        (
            "std::vector<int, std::allocator<int> >::push_back(int const&)",
            "std::vector<int, std::allocator<int> >::push_back",
        ),
        ("slices.Sort[...]", "slices.SortFunc[...]"),
        ("block in total", "block (2 levels) in total"),
        ("sum.avx2.0", "sum.default.1"),
        ("work._omp_fn.0", "work._omp_fn.1"),
    ];
    for (one, other) in pairs {
        assert_eq!([counted(one), counted(other)], [one, other]);
        assert_ne!(one, other);
    }
}

#[test]
fn the_mark_of_a_kind_stays_behind_what_is_taken_off() {
    assert_eq!(counted("vfs_read.isra.0+0x1f_[k]"), "vfs_read_[k]");
    assert_eq!(counted("shop.Cart.total:12_[j]"), "shop.Cart.total_[j]");
    assert_eq!(counted("libfoo.so+0x12_[i]"), "[libfoo.so]_[i]");
    assert_eq!(counted("x+0x1_[k].llvm.12"), "x_[k]");
    assert_eq!(counted("_[k]"), UNSYMBOLISED);
    assert_eq!(counted(""), UNSYMBOLISED);
    assert_eq!(counted("+0x12"), UNSYMBOLISED);
}

/// Each letter of a substitution may stand for all that came before it.
#[test]
fn a_mangled_name_that_would_explode_stays_and_costs_little() {
    let doubled = (0..24).fold("1a".to_owned(), |inside, _| format!("1pI{inside}S_E"));
    let nested = format!("_Z1fI{doubled}Evv");
    let pairs: String = (0..40).map(|number| format!("1bIS{number}_S{number}_E")).collect();
    for hostile in
        [nested, format!("_Z1f1aIiE{pairs}"), format!("_Z{}", "N".repeat(10_000)), format!("_R{}", "C".repeat(10_000))]
    {
        assert!(counted(&hostile).len() <= 64 * hostile.len(), "{hostile}");
    }
}

#[test]
fn a_name_without_end_stays_and_costs_little() {
    let nested = |parts: usize| format!("run{}", "+0x1f.cold.7 (.llvm.3)".repeat(parts));
    assert_eq!(counted(&nested(3)), "run");
    let long = nested(40_000);
    assert_eq!(counted(&long), long);
}

/// Parts of names that rules look for, and what may stand beside them.
fn parts() -> impl Strategy<Value = String> {
    let examples = rules().iter().flat_map(|rule| rule.examples.iter().flatten().chain(&rule.keeps));
    let examples: Vec<String> = examples.cloned().collect();
    let ends = [
        "::h0123456789abcdef",
        "+0x1f",
        ".llvm.12",
        ".cold",
        " [clone .isra.0]",
        "@@GLIBC_2.14",
        " (a.py:3)",
        ":4",
        ")",
        " (",
        "_[k]",
        "_[j]",
        "_ZN",
        "_Z",
        "3run",
        "Ev",
        "_RNvCs12_4shop",
        "17h0123456789abcdefE",
        "0x1234",
        "[unknown]",
        "[",
        "]",
        ".so",
        ".so.6",
        "/",
        ".",
        "$$Lambda$4",
        "/0x00007f8a1c000a00",
        ".js",
        ":1:2",
        "[Optimized]",
        "{closure:",
        "}",
        "<",
        ">",
        "*",
        "chunk-ABCD1234",
    ];
    prop_oneof![
        prop::sample::select(examples),
        prop::sample::select(ends.to_vec()).prop_map(str::to_owned),
        "[a-c0-9µ :.]{0,3}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4096, ..ProptestConfig::default() })]

    /// Applying the rules to what they gave changes nothing, whichever of them are applied.
    #[test]
    fn what_is_counted_stays(parts in prop::collection::vec(parts(), 0..6), off in prop::collection::btree_set(0..rules().len(), 0..30)) {
        for rules in [NameRules::default(), NameRules { off }] {
            let once = rules.apply(&parts.concat()).into_owned();
            prop_assert_eq!(rules.apply(&once), once.as_str());
        }
    }
}
