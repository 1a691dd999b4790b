//! What a webhook gets: one request per event, in order.

use super::event::Event;
use super::parcel::Parcel;
use super::queue::Queue;
use super::template::Template;

/// The events of one webhook, and how they are written.
#[derive(Debug)]
pub(super) struct Messages {
    queue: Queue,
    /// The event that is being sent: it stays until it is delivered, so that none overtakes it.
    current: Option<Parcel>,
    template: Option<Template>,
}

impl Messages {
    /// Events as CloudEvents if there is no template.
    pub(super) fn new(capacity: usize, template: Option<Template>) -> Self {
        Self { queue: Queue::new(capacity), current: None, template }
    }

    /// From now on, so many events may wait, and those that are not being sent yet are written like this.
    pub(super) fn change(&mut self, capacity: usize, template: Option<Template>) {
        self.queue.resize(capacity);
        self.template = template;
    }

    /// Takes an event, and returns the one that was given up for it.
    pub(super) fn offer(&mut self, event: Event) -> Option<Event> {
        self.queue.push(event)
    }

    /// The next request.
    ///
    /// # Errors
    /// An event cannot be written, in words; it is given up.
    pub(super) fn next(&mut self) -> Result<Option<Parcel>, String> {
        if self.current.is_none() {
            let Some(event) = self.queue.pop() else { return Ok(None) };
            match self.written(&event) {
                Ok(parcel) => self.current = Some(parcel),
                Err(why) => return Err(format!("event {} cannot be written: {why}", event.alert.id)),
            }
        }
        Ok(self.current.clone())
    }

    fn written(&self, event: &Event) -> Result<Parcel, String> {
        let (body, content_type) = match &self.template {
            Some(template) => (template.render(event)?, "application/json"),
            None => (event.alert.line(), "application/cloudevents+json; charset=utf-8"),
        };
        Ok(Parcel {
            body,
            content_type,
            idempotency_key: Some(event.alert.id.clone()),
            events: vec![event.alert.id.clone()],
            alerts: Vec::new(),
        })
    }

    /// The current request is over: delivered, or given up.
    pub(super) fn settled(&mut self) {
        self.current = None;
    }

    /// How many events wait.
    pub(super) fn waiting(&self) -> usize {
        self.queue.len() + usize::from(self.current.is_some())
    }
}
