//! The colour of a frame, and what it means.
//!
//! Only significant functions are saturated. The strength is linear in the change of that frame, `(head x weight -
//! base) / total of the base`, each the average of the runs of its side, up to the largest change of any significant
//! frame. What stands out between single runs is pale violet and green, since it is not known to be a change of the program. Everything else is grey,
//! and paler if it is not known whether it changed; hatching says that replicates of a side disagree. The page and the static picture
//! share these colours.

use std::collections::HashMap;
use std::fmt;

use fleetdiff_schemas::verdict::Verdict;
use foldhash::fast::FixedState;
use serde::{Serialize, Serializer};

use crate::flame::Node;
use crate::report::{FrameClass, Function, Report};
use crate::sides::Sides;

/// Steps of a ramp from the faintest colour of a significant frame to the fullest.
pub const STEPS: u8 = 32;

/// A colour of the screen: red, green, blue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rgb(pub u8, pub u8, pub u8);

impl fmt::Display for Rgb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{:02x}{:02x}{:02x}", self.0, self.1, self.2)
    }
}

impl Serialize for Rgb {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Rgb {
    /// A colour given as 0xRRGGBB.
    fn of(code: u32) -> Self {
        let [_, red, green, blue] = code.to_be_bytes();
        Self(red, green, blue)
    }

    /// A mixture of two colours with `step` of `steps` parts of the second; `step` is at most `steps`, and `steps` is
    /// above 0.
    fn mixed(self, full: Self, step: u8, steps: u8) -> Self {
        let channel = |from: u8, to: u8| {
            let (from, to, step, steps) = (u32::from(from), u32::from(to), u32::from(step), u32::from(steps));
            u8::try_from((from * (steps - step) + to * step + steps / 2) / steps).unwrap_or(u8::MAX)
        };
        Self(channel(self.0, full.0), channel(self.1, full.1), channel(self.2, full.2))
    }

    /// Relative luminance, 0 to 1, as WCAG 2 defines it.
    fn luminance(self) -> f64 {
        let linear = |channel: u8| {
            let channel = f64::from(channel) / 255.0;
            if channel <= 0.04045 { channel / 12.92 } else { libm::pow((channel + 0.055) / 1.055, 2.4) }
        };
        0.2126 * linear(self.0) + 0.7152 * linear(self.1) + 0.0722 * linear(self.2)
    }

    /// The colour of text on it: black or white, whichever has more contrast.
    pub(crate) fn ink(self) -> Self {
        let light = self.luminance() + 0.05;
        if 1.05 / light > light / 0.05 { Self(255, 255, 255) } else { Self(0, 0, 0) }
    }
}

/// A colour of a frame, and that of its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Fill {
    /// Of the frame.
    pub fill: Rgb,
    /// Of its name.
    pub ink: Rgb,
}

impl From<Rgb> for Fill {
    fn from(fill: Rgb) -> Self {
        Self { fill, ink: fill.ink() }
    }
}

/// All colours of a picture.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Colours {
    /// Known and not significant; user, runtime, system.
    pub quiet: [Fill; 3],
    /// Not known; user, runtime, system.
    pub unknown: [Fill; 3],
    /// The hatching of frames about which the replicates of a side disagree.
    pub hatch: Rgb,
    /// What stands out between single runs: more in the head, less in the head.
    pub apart: [Fill; 2],
    /// More in the head, faint to full, [`STEPS`] of them.
    pub more: Vec<Fill>,
    /// Less in the head.
    pub less: Vec<Fill>,
}

/// The background of the picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// Dark on light.
    Light,
    /// Light on dark.
    Dark,
}

/// The two hues that mean more and less.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Palette {
    /// Orange and blue, which no common colour blindness confuses.
    OrangeBlue,
    /// Red and green.
    RedGreen,
}

impl Colours {
    /// The colours of a scheme and a palette.
    pub fn of(scheme: Scheme, palette: Palette) -> Self {
        let (more, less) = match (scheme, palette) {
            (Scheme::Light, Palette::OrangeBlue) => (ramp(0xfcd7b6, 0xd9480f), ramp(0xc3def3, 0x1565b0)),
            (Scheme::Light, Palette::RedGreen) => (ramp(0xf9cbc5, 0xc92a2a), ramp(0xbdeabf, 0x138a2e)),
            (Scheme::Dark, Palette::OrangeBlue) => (ramp(0x74492e, 0xff7d36), ramp(0x2c4f73, 0x4dabff)),
            (Scheme::Dark, Palette::RedGreen) => (ramp(0x743c3c, 0xff6161), ramp(0x2f5c3a, 0x55d26e)),
        };
        let greys = |tones: [u8; 3]| tones.map(|tone| Fill::from(Rgb(tone, tone, tone)));
        let (quiet, unknown, hatch, apart) = match scheme {
            Scheme::Light => ([0xd6, 0xca, 0xbe], [0xee, 0xe7, 0xe0], 0xcf, [0xe3cdea, 0xc6e4da]),
            Scheme::Dark => ([0x58, 0x4e, 0x45], [0x35, 0x30, 0x2b], 0x4b, [0x5d4669, 0x35594e]),
        };
        let apart = apart.map(|code| Fill::from(Rgb::of(code)));
        Self { quiet: greys(quiet), unknown: greys(unknown), hatch: Rgb(hatch, hatch, hatch), apart, more, less }
    }
}

/// Colours from faint to full, given as 0xRRGGBB.
fn ramp(faint: u32, full: u32) -> Vec<Fill> {
    (0..STEPS).map(|step| Fill::from(Rgb::of(faint).mixed(Rgb::of(full), step, STEPS - 1))).collect()
}

/// How a frame is painted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paint {
    /// Significant, and more in the head; the step of the ramp.
    More(u8),
    /// Significant, and less in the head.
    Less(u8),
    /// It stands out between single runs, and is more in the head.
    MoreApart,
    /// It stands out between single runs, and is less in the head.
    LessApart,
    /// Equivalent, or moved only because others did, or significant elsewhere and the same here.
    Quiet(FrameClass),
    /// Inconclusive, or not tested.
    Unknown(FrameClass),
}

impl Paint {
    /// Its colour among these.
    pub(crate) fn fill(self, colours: &Colours) -> Fill {
        let class = |class: FrameClass| match class {
            FrameClass::User => 0,
            FrameClass::Runtime => 1,
            FrameClass::System => 2,
        };
        let step = |step: u8| usize::from(step.min(STEPS - 1));
        match self {
            Self::More(strength) => colours.more[step(strength)],
            Self::Less(strength) => colours.less[step(strength)],
            Self::MoreApart => colours.apart[0],
            Self::LessApart => colours.apart[1],
            Self::Quiet(of) => colours.quiet[class(of)],
            Self::Unknown(of) => colours.unknown[class(of)],
        }
    }
}

/// The weights of the sides: the factor for a count summed over its runs.
pub(crate) fn weights(report: &Report) -> Sides<f64> {
    let runs = report.tree.runs();
    let one = |runs: u32| if runs == 0 { 0.0 } else { 1.0 / f64::from(runs) };
    Sides { base: one(runs.base), head: one(runs.head) * report.head_weight }
}

/// How each frame of a report is painted.
#[derive(Debug)]
pub struct Painter<'a> {
    functions: HashMap<&'a str, &'a Function, FixedState>,
    /// The largest change of a significant frame, as a share of the base.
    strongest: f64,
}

impl<'a> Painter<'a> {
    /// Finds the largest change of a significant frame; `changes` has one entry per node of the tree.
    pub fn new(report: &'a Report, changes: &[f64]) -> Self {
        let functions: HashMap<_, _, _> = report.functions.iter().map(|row| (&*row.name, row)).collect();
        let mut painter = Self { functions, strongest: 0.0 };
        for (node, change) in report.tree.nodes().iter().zip(changes) {
            if painter.function(report, node).is_some_and(|row| row.significant) {
                painter.strongest = painter.strongest.max(change.abs());
            }
        }
        painter
    }

    /// The row of a frame's function; the root is none.
    pub fn function(&self, report: &Report, node: &Node) -> Option<&'a Function> {
        if node.depth == 0 { None } else { self.functions.get(report.tree.name(node)).copied() }
    }

    /// The paint of a frame with this change.
    pub fn paint(&self, function: Option<&Function>, change: f64) -> Paint {
        let Some(row) = function else { return Paint::Unknown(FrameClass::User) };
        if row.significant && change > 0.0 {
            Paint::More(self.step(change))
        } else if row.significant && change < 0.0 {
            Paint::Less(self.step(-change))
        } else if row.verdict == Verdict::StandsOut && change > 0.0 {
            Paint::MoreApart
        } else if row.verdict == Verdict::StandsOut && change < 0.0 {
            Paint::LessApart
        } else if row.significant || is_known(row.verdict) {
            Paint::Quiet(row.class)
        } else {
            Paint::Unknown(row.class)
        }
    }

    /// The largest change of a significant frame, as a share of the base; 0 if nothing is significant.
    pub(crate) fn strongest(&self) -> f64 {
        self.strongest
    }

    fn step(&self, change: f64) -> u8 {
        let reached = change / self.strongest * f64::from(STEPS - 1);
        (0..STEPS).rev().find(|&step| f64::from(step) <= reached + 0.5).unwrap_or(0)
    }
}

/// Whether replicates of a side disagree about a function: the only thing that hatching says.
pub(crate) fn is_split(function: &Function) -> bool {
    function.verdict == Verdict::SomePodsOutlying
}

/// Whether a frame of this verdict, where it did not change itself, is plainly grey.
pub(crate) fn is_known(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::Equivalent | Verdict::Compositional | Verdict::Moved | Verdict::StandsOut)
}

/// `(head x weight - base) / total of the base` of each node, averages of the runs; all 0 where the base has no samples.
pub fn changes(report: &Report, totals: &[Sides<u64>]) -> Vec<f64> {
    let weights = weights(report);
    let whole = totals.first().map_or(0.0, |root| count(root.base)) * weights.base;
    let change = |total: &Sides<u64>| {
        let gained = count(total.head) * weights.head - count(total.base) * weights.base;
        if whole > 0.0 { gained / whole } else { 0.0 }
    };
    totals.iter().map(change).collect()
}

/// A count as a float: exact to 2^53, far more than a profile holds.
pub(crate) fn count(samples: u64) -> f64 {
    #[expect(
        clippy::as_conversions,
        reason = "no other conversion from u64 to f64; rounding beyond 2^53 does not show"
    )]
    let count = samples as f64;
    count
}
