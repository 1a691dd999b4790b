//! The call tree of a file, whose nodes hold each other, as a list.

use std::borrow::Cow;
use std::fmt;

use fleetdiff_schemas::rejected::{Reason, Rejection};
use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::json;
use crate::v8::CallFrame;

/// Most callers of a node. V8 looks at no more than 128 frames of a stack.
const DEEPEST: usize = 512;

/// A function where it was called from.
pub(super) struct Node<'a> {
    pub(super) id: u32,
    pub(super) call_frame: CallFrame<'a>,
    self_size: f64,
    /// Its caller, by its place in the list, which is before its own.
    pub(super) parent: Option<usize>,
}

impl Node<'_> {
    /// The bytes that its samples stand for.
    ///
    /// # Errors
    /// `negative_value`, or `too_large` from 2^53 on.
    pub(super) fn bytes(&self) -> Result<u64, Rejection> {
        /// 2^53, to which each whole number has its own float.
        const EXACT: f64 = 9_007_199_254_740_992.0;
        let size = self.self_size;
        if size < 0.0 {
            return Err(Rejection::new(Reason::NegativeValue, format!("node {} of {size} bytes", self.id)));
        }
        if size > EXACT {
            return Err(Rejection::new(Reason::TooLarge, format!("node {} of {size} bytes", self.id)));
        }
        #[expect(clippy::as_conversions, clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0..=2^53")]
        Ok(libm::round(size) as u64)
    }
}

/// The nodes, callers before those that they call.
pub(super) struct Tree<'a>(Vec<Node<'a>>);

impl<'a> Tree<'a> {
    pub(super) fn nodes(&self) -> &[Node<'a>] {
        &self.0
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Tree<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let mut nodes = Vec::new();
        from.deserialize_map(OneNode { nodes: &mut nodes, parent: None, depth: 0 })?;
        Ok(Self(nodes))
    }
}

/// The keys of a node.
#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "camelCase")]
enum Key {
    Id,
    CallFrame,
    SelfSize,
    Children,
    #[serde(other)]
    Other,
}

/// Reads a node and what is below it to the end of the list.
struct OneNode<'n, 'a> {
    nodes: &'n mut Vec<Node<'a>>,
    parent: Option<usize>,
    /// How many callers it has.
    depth: usize,
}

impl<'de: 'a, 'a> DeserializeSeed<'de> for OneNode<'_, 'a> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de: 'a, 'a> Visitor<'de> for OneNode<'_, 'a> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a node of the call tree")
    }

    /// V8 writes what a node is before those that it calls; others may write it in any order, so that a node has its place first.
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self { nodes, parent, depth } = self;
        if depth > DEEPEST {
            return Err(A::Error::custom(format!("a node with more than {DEEPEST} callers")));
        }
        let place = nodes.len();
        let nameless = CallFrame { function_name: Cow::Borrowed(""), url: Cow::Borrowed("") };
        json::push(nodes, Node { id: 0, call_frame: nameless, self_size: 0.0, parent })?;
        let (mut id, mut call_frame, mut self_size) = (None, None, None);
        while let Some(key) = map.next_key()? {
            match key {
                Key::Id => id = Some(map.next_value()?),
                Key::CallFrame => call_frame = Some(map.next_value()?),
                Key::SelfSize => self_size = Some(map.next_value()?),
                Key::Children => map.next_value_seed(Called { nodes, parent: place, depth: depth + 1 })?,
                Key::Other => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        // V8 wrote none before it wrote samples, whose absence is told.
        let id = id.unwrap_or_default();
        let call_frame = call_frame.ok_or_else(|| A::Error::missing_field("callFrame"))?;
        let self_size = self_size.ok_or_else(|| A::Error::missing_field("selfSize"))?;
        if let Some(node) = nodes.get_mut(place) {
            *node = Node { id, call_frame, self_size, parent };
        }
        Ok(())
    }
}

/// Reads the list of those that a node calls.
struct Called<'n, 'a> {
    nodes: &'n mut Vec<Node<'a>>,
    parent: usize,
    depth: usize,
}

impl<'de: 'a, 'a> DeserializeSeed<'de> for Called<'_, 'a> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_seq(self)
    }
}

impl<'de: 'a, 'a> Visitor<'de> for Called<'_, 'a> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of nodes")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let Self { nodes, parent, depth } = self;
        while list.next_element_seed(OneNode { nodes, parent: Some(parent), depth })?.is_some() {}
        Ok(())
    }
}
