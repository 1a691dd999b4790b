//! A report as the JSON within its page. It is compact: a tree is five columns, not one object per node.

use std::sync::Arc;

use serde::Serialize;

use crate::flame::CallTree;
use crate::paint::{Colours, Palette, STEPS, Scheme, weights};
use crate::report::{Function, Report, ReportSide};

/// What the scripts of the page read.
#[derive(Serialize)]
pub(super) struct Embedded<'a> {
    title: &'a str,
    headline: &'a str,
    caution: &'a str,
    base: &'a ReportSide,
    head: &'a ReportSide,
    /// The factor for a count of a side, summed over its runs.
    weights: [f64; 2],
    functions: &'a [Function],
    tree: Columns<'a>,
    /// By scheme, then by palette.
    colours: [[Colours; 2]; 2],
    steps: u8,
}

/// The nodes of a call tree in the order of the picture. The caller of a node is the nearest previous node whose depth
/// is smaller by one.
#[derive(Serialize)]
struct Columns<'a> {
    names: &'a [Arc<str>],
    name: Vec<u32>,
    depth: Vec<u32>,
    base: Vec<u64>,
    head: Vec<u64>,
}

impl<'a> Embedded<'a> {
    pub(super) fn of(report: &'a Report) -> Self {
        let colours = |scheme| [Palette::OrangeBlue, Palette::RedGreen].map(|palette| Colours::of(scheme, palette));
        let weights = weights(report);
        Self {
            title: &report.title,
            headline: &report.headline,
            caution: &report.caution,
            base: &report.base,
            head: &report.head,
            weights: [weights.base, weights.head],
            functions: &report.functions,
            tree: Columns::of(&report.tree),
            colours: [Scheme::Light, Scheme::Dark].map(colours),
            steps: STEPS,
        }
    }
}

impl<'a> Columns<'a> {
    fn of(tree: &'a CallTree) -> Self {
        let nodes = tree.nodes();
        Self {
            names: tree.names(),
            name: nodes.iter().map(|node| node.name).collect(),
            depth: nodes.iter().map(|node| node.depth).collect(),
            base: nodes.iter().map(|node| node.own.base).collect(),
            head: nodes.iter().map(|node| node.own.head).collect(),
        }
    }
}
