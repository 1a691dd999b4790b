//! Events that wait for a webhook, in order; a bounded number of them.

use std::collections::VecDeque;

use super::event::Event;

/// What waits, oldest first.
#[derive(Debug)]
pub(super) struct Queue {
    capacity: usize,
    waiting: VecDeque<Event>,
}

impl Queue {
    /// A queue for this many events, at least one.
    pub(super) fn new(capacity: usize) -> Self {
        Self { capacity: capacity.max(1), waiting: VecDeque::new() }
    }

    /// Lets this many events wait, at least one; those that wait stay.
    pub(super) fn resize(&mut self, capacity: usize) {
        self.capacity = capacity.max(1);
    }

    /// Adds an event at the end. If the queue is full, another is given up and returned: the last one with the same key, which
    /// the new one replaces, or else the oldest.
    pub(super) fn push(&mut self, event: Event) -> Option<Event> {
        let given_up = if self.waiting.len() < self.capacity {
            None
        } else {
            let before = self.waiting.iter().rposition(|other| other.alert.key == event.alert.key);
            self.waiting.remove(before.unwrap_or(0))
        };
        self.waiting.push_back(event);
        given_up
    }

    /// The oldest event.
    pub(super) fn pop(&mut self) -> Option<Event> {
        self.waiting.pop_front()
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }
}
