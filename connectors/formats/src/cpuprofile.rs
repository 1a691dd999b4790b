//! `.cpuprofile`, the JSON of V8: what Node (`--cpu-prof`) and Chrome's developer tools write.
//!
//! A call tree of `nodes` and the list `samples` of the node that each tick of the profiler met: each entry is a sample.
//! `timeDeltas` say how long ago the tick before was, and are not needed. A file without `samples` has `hitCount`, the
//! number of ticks at a node, which is then taken.
//!
//! Its own root is no frame. `(idle)` is the engine waiting: a sample of `wall`, none of `cpu`. `(program)` and
//! `(garbage collector)` are functions like others. A function is its name and its file, since names repeat, and one
//! without a name is `(anonymous)`. Times count from the start of the machine, so the labels must say when it was taken.

mod observe;

use std::borrow::Cow;
use std::collections::HashMap;

use fleetdiff_schemas::profile::{Profile, ProfileType};
use fleetdiff_schemas::rejected::{Reason, Rejection};
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::collected::{Collected, Collector};
use super::labels::{Contents, one_profile};
use super::{Decode, Labels, Options, json};

pub(super) use observe::observe;

/// Decodes `.cpuprofile` files.
#[derive(Debug)]
pub struct Decoder(Collector);

impl Decoder {
    /// A decoder that reads at most [`Options::max_bytes`] a record.
    pub fn new(options: &Options) -> Self {
        Self(Collector::new(options))
    }
}

impl Decode for Decoder {
    fn decode(&mut self, bytes: &[u8], labels: &Result<Labels, Rejection>) -> Vec<Result<Profile, Rejection>> {
        let part = one_profile(labels, None, |kind, _| {
            check_type(kind)?;
            let text = self.0.text(bytes)?;
            let document: Document<'_> = json::read("cpuprofile", &text)?;
            let tree = Tree::new(&document)?;
            let ticks = document.ticks(&tree)?;
            tree.stacks(&ticks, kind, self.0.begin())
        });
        vec![part]
    }
}

fn check_type(kind: ProfileType) -> Result<(), Rejection> {
    match kind {
        ProfileType::Cpu | ProfileType::Wall => Ok(()),
        _ => {
            let detail = format!("a cpuprofile labelled {}, expected cpu or wall", kind.name());
            Err(Rejection::new(Reason::UnsupportedType, detail))
        }
    }
}

/// The file.
#[derive(Deserialize)]
struct Document<'a> {
    #[serde(borrow)]
    nodes: Option<Vec<Node<'a>>>,
    samples: Option<Vec<u32>>,
    /// The tree of the form before 2016.
    head: Option<IgnoredAny>,
}

/// A function where it was called from.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Node<'a> {
    id: u32,
    #[serde(borrow)]
    call_frame: CallFrame<'a>,
    #[serde(default)]
    hit_count: u64,
    #[serde(default)]
    children: Vec<u32>,
    /// In files made from traces, instead of `children`.
    parent: Option<u32>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CallFrame<'a> {
    #[serde(borrow)]
    function_name: Cow<'a, str>,
    #[serde(borrow, default)]
    url: Cow<'a, str>,
}

impl Document<'_> {
    /// How often each node was met, by its place.
    fn ticks(&self, tree: &Tree<'_>) -> Result<Vec<u64>, Rejection> {
        let Some(samples) = &self.samples else {
            return Ok(tree.nodes.iter().map(|node| node.hit_count).collect());
        };
        let mut ticks = vec![0; tree.nodes.len()];
        for (id, number) in samples.iter().zip(1u64..) {
            let place = tree
                .place(*id)
                .map_err(|fault| Rejection { detail: format!("sample {number}: {}", fault.detail), ..fault })?;
            ticks.get_mut(place).into_iter().for_each(|count| *count += 1);
        }
        Ok(ticks)
    }
}

/// The nodes and who called whom, by their places in the list.
struct Tree<'a> {
    nodes: &'a [Node<'a>],
    places: HashMap<u32, usize, foldhash::fast::RandomState>,
    parents: Vec<Option<usize>>,
}

impl<'a> Tree<'a> {
    fn new(document: &'a Document<'a>) -> Result<Self, Rejection> {
        let nodes = match (&document.nodes, &document.head) {
            (Some(nodes), _) => nodes.as_slice(),
            (None, Some(_)) => {
                let detail = "a tree below \"head\", the form of V8 before 2016, expected \"nodes\"";
                return Err(Rejection::new(Reason::UnsupportedVersion, detail));
            }
            (None, None) => return Err(malformed("no \"nodes\"")),
        };
        let mut tree = Self { nodes, places: HashMap::default(), parents: vec![None; nodes.len()] };
        for (place, node) in nodes.iter().enumerate() {
            if tree.places.insert(node.id, place).is_some() {
                return Err(malformed(&format!("two nodes with the id {}", node.id)));
            }
        }
        for (place, node) in nodes.iter().enumerate() {
            node.parent.into_iter().try_for_each(|parent| tree.put(tree.place(parent)?, place))?;
            node.children.iter().try_for_each(|child| tree.put(place, tree.place(*child)?))?;
        }
        Ok(tree)
    }

    fn place(&self, id: u32) -> Result<usize, Rejection> {
        self.places.get(&id).copied().ok_or_else(|| {
            let detail = format!("node {id} is none of the {} nodes", self.nodes.len());
            Rejection::new(Reason::IndexOutOfRange, detail)
        })
    }

    /// Makes one node the parent of another, which may be said twice (by `parent` and by `children`).
    fn put(&mut self, parent: usize, child: usize) -> Result<(), Rejection> {
        match self.parents.get_mut(child) {
            Some(known) if known.is_none_or(|known| known == parent) => {
                *known = Some(parent);
                Ok(())
            }
            _ => Err(malformed(&format!("node {} has two parents", self.nodes.get(child).map_or(0, |node| node.id)))),
        }
    }

    fn stacks(&self, ticks: &[u64], kind: ProfileType, mut collected: Collected<'_>) -> Result<Contents, Rejection> {
        let names = self.nodes.iter().map(|node| collected.name(&node.full_name())).collect::<Result<Vec<_>, _>>()?;
        for (place, (node, &count)) in self.nodes.iter().zip(ticks).enumerate() {
            let idle = node.is_idle() && kind == ProfileType::Cpu;
            if count > 0 && !idle {
                collected.push(self.path(place, &names)?, count)?;
            }
        }
        Ok(collected.finish())
    }

    /// The names from the root, which is no frame itself, to a node.
    fn path(&self, leaf: usize, names: &[u32]) -> Result<Vec<u32>, Rejection> {
        let mut path = Vec::new();
        let mut next = Some(leaf);
        while let Some(place) = next {
            next = self.parents.get(place).copied().flatten();
            if path.len() > names.len() {
                return Err(malformed("a node is its own caller"));
            }
            let root = next.is_none() && self.nodes.get(place).is_some_and(Node::is_root);
            path.extend(names.get(place).filter(|_| !root));
        }
        path.reverse();
        Ok(path)
    }
}

impl Node<'_> {
    fn is_root(&self) -> bool {
        self.call_frame.function_name == "(root)"
    }

    /// Whether the engine was waiting.
    fn is_idle(&self) -> bool {
        self.call_frame.function_name == "(idle)"
    }

    fn name(&self) -> &str {
        let name = &self.call_frame.function_name;
        if name.is_empty() { "(anonymous)" } else { name }
    }

    /// The name with the file.
    fn full_name(&self) -> Cow<'_, str> {
        let CallFrame { url, .. } = &self.call_frame;
        match url.strip_prefix("file://").unwrap_or(url) {
            "" => Cow::Borrowed(self.name()),
            file => format!("{} ({file})", self.name()).into(),
        }
    }
}

fn malformed(detail: &str) -> Rejection {
    Rejection::new(Reason::Malformed, detail)
}
