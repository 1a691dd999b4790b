//! The static picture, and the colours that it shares with the page.
#![expect(
    clippy::unwrap_used,
    clippy::float_cmp,
    reason = "a test fails by panicking, and means exact numbers by floats"
)]

#[path = "support/reports.rs"]
mod reports;

use fleetdiff_diff::flame::{CallTree, Run};
use fleetdiff_diff::page::{FrameClass, Report};
use fleetdiff_diff::paint::{Colours, Paint, Painter, Palette, STEPS, Scheme, changes};
use fleetdiff_diff::svg::svg;
use fleetdiff_schemas::verdict::Verdict;

/// The small report with each side recorded `base` and `head` times.
fn repeated(base: usize, head: usize, head_weight: f64) -> Report {
    let (base_run, head_run) = (reports::run_of(reports::BASE), reports::run_of(reports::HEAD));
    let base_runs = vec![Run { names: &base_run.0, stacks: &base_run.1 }; base];
    let head_runs = vec![Run { names: &head_run.0, stacks: &head_run.1 }; head];
    Report { tree: CallTree::merge(&base_runs, &head_runs), head_weight, ..reports::small() }
}

/// Place and colour of each frame's rectangle.
fn rectangles(picture: &str) -> Vec<String> {
    let frames = picture.lines().filter(|line| line.starts_with("<g>"));
    frames.map(|frame| frame.split("<rect ").nth(1).unwrap().split("/>").next().unwrap().to_owned()).collect()
}

fn paint(report: &Report, path_end: &str) -> Paint {
    let changes = changes(report, &report.tree.totals());
    let painter = Painter::new(report, &changes);
    let at = report.tree.nodes().iter().position(|node| report.tree.name(node) == path_end).unwrap();
    painter.paint(painter.function(report, &report.tree.nodes()[at]), changes[at])
}

#[test]
fn a_change_is_a_share_of_the_base() {
    let report = reports::small();
    let changes = changes(&report, &report.tree.totals());
    let of = |name: &str| changes[report.tree.nodes().iter().position(|node| report.tree.name(node) == name).unwrap()];
    assert_eq!(["encode", "compress", "legacy", "parse", "poll"].map(of), [0.16, 0.05, -0.08, 0.0, -0.13]);
}

/// `poll` changed by more than `legacy` and is not significant: the fullest colour is that of a significant function.
#[test]
fn strength_is_linear_in_the_change_of_what_is_significant() {
    let report = reports::small();
    assert_eq!(paint(&report, "encode"), Paint::More(STEPS - 1));
    assert_eq!(paint(&report, "legacy"), Paint::Less(16));
    assert_eq!(paint(&report, "compress"), Paint::More(10));
    assert_eq!(paint(&report, "parse"), Paint::Quiet(FrameClass::User));
    assert_eq!(paint(&report, "runtime.sweep"), Paint::Quiet(FrameClass::Runtime));
    assert_eq!(paint(&report, "poll"), Paint::Unknown(FrameClass::User));
    assert_eq!(paint(&report, "serve"), Paint::Unknown(FrameClass::User));
}

/// A frame that grew by sixteen percent of everything is grey as long as it is not significant.
#[test]
fn what_is_not_significant_has_no_colour_however_much_it_moved() {
    let mut report = reports::small();
    for row in report.functions.iter_mut().filter(|row| ["encode", "legacy"].contains(&&*row.name)) {
        (row.significant, row.verdict) = (false, Verdict::Inconclusive);
    }
    assert_eq!(paint(&report, "encode"), Paint::Unknown(FrameClass::User));
    assert_eq!(paint(&report, "legacy"), Paint::Unknown(FrameClass::User));
    // The strongest is then the one that is still significant.
    assert_eq!(paint(&report, "compress"), Paint::More(STEPS - 1));
}

/// A side is the average of its runs: recording it again changes neither widths nor colours.
#[test]
fn more_runs_of_the_same_draw_the_same_picture() {
    let once = rectangles(&svg(&repeated(1, 1, 1.0), Palette::OrangeBlue));
    let often = rectangles(&svg(&repeated(4, 2, 1.0), Palette::OrangeBlue));
    assert_eq!(once.len(), 12);
    assert_eq!(once, often);
    let heavier = rectangles(&svg(&repeated(1, 1, 2.0), Palette::OrangeBlue));
    assert_ne!(once, heavier, "a weight of the head changes widths");
}

/// One sample in 2001 is a frame too narrow to see.
#[test]
fn narrow_frames_are_left_out_and_counted() {
    let mut report = reports::small();
    let (names, stacks) = reports::run_of(&[("main;wide", 1999), ("main;narrow", 1), ("main;seen", 2)]);
    report.tree = CallTree::merge(&[Run { names: &names, stacks: &stacks }], &[]);
    let picture = svg(&report, Palette::OrangeBlue);
    assert_eq!(rectangles(&picture).len(), 3);
    assert!(!picture.contains("narrow:"), "{picture}");
    assert!(picture.contains("2 of 5 frames are narrower than 0.1 % of the whole and left out."), "{picture}");
}

#[test]
fn names_and_titles_stay_text() {
    let mut report = reports::small();
    let (names, stacks) = reports::run_of(&[("<script>a & b</script>", 10)]);
    report.tree = CallTree::merge(&[Run { names: &names, stacks: &stacks }], &[]);
    let picture = svg(&report, Palette::OrangeBlue);
    assert!(!picture.contains("<script") && !picture.contains("<b>"), "{picture}");
    assert!(picture.contains("&lt;script&gt;a &amp; b&lt;/script&gt;: base 10 samples (100.00 %)"), "{picture}");
}

/// Only significant frames have a hue, whatever the scheme and the palette; and each ramp goes from faint to full.
#[test]
fn greys_are_grey_and_ramps_rise() {
    for scheme in [Scheme::Light, Scheme::Dark] {
        for palette in [Palette::OrangeBlue, Palette::RedGreen] {
            let colours = Colours::of(scheme, palette);
            let hue = |fill: &fleetdiff_diff::paint::Fill| {
                let rgb = fill.fill;
                rgb.0.max(rgb.1).max(rgb.2) - rgb.0.min(rgb.1).min(rgb.2)
            };
            assert!(colours.quiet.iter().chain(&colours.unknown).all(|fill| hue(fill) == 0));
            for ramp in [&colours.more, &colours.less] {
                assert_eq!(ramp.len(), usize::from(STEPS));
                assert!(hue(&ramp[ramp.len() - 1]) > 2 * hue(&ramp[0]), "{scheme:?} {palette:?}");
                // Even the faintest step is not grey.
                assert!(ramp.iter().all(|fill| hue(fill) >= 40), "{scheme:?} {palette:?}");
            }
        }
    }
}

/// Text is legible on every colour: a contrast of 4.5, as WCAG 2 requires.
#[test]
fn published_contrast_of_names() {
    let linear = |channel: u8| {
        let channel = f64::from(channel) / 255.0;
        if channel <= 0.040_45 { channel / 12.92 } else { ((channel + 0.055) / 1.055).powf(2.4) }
    };
    let luminance = |rgb: fleetdiff_diff::paint::Rgb| {
        0.2126 * linear(rgb.0) + 0.7152 * linear(rgb.1) + 0.0722 * linear(rgb.2) + 0.05
    };
    for (scheme, palette) in [Scheme::Light, Scheme::Dark]
        .into_iter()
        .flat_map(|scheme| [(scheme, Palette::OrangeBlue), (scheme, Palette::RedGreen)])
    {
        let colours = Colours::of(scheme, palette);
        for fill in colours.quiet.iter().chain(&colours.unknown).chain(&colours.more).chain(&colours.less) {
            let (ground, ink) = (luminance(fill.fill), luminance(fill.ink));
            let contrast = (ground / ink).max(ink / ground);
            assert!(contrast >= 4.5, "{scheme:?} {palette:?} {fill:?}: {contrast:.2}");
        }
    }
}
