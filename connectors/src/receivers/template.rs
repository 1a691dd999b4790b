//! Messages by templates. What a template prints is written as JSON, so that no text of an event can leave its string.

use std::fmt;

use fleetdiff_schemas::tables::calendar::rfc3339;
use minijinja::value::{Serde, Value};
use minijinja::{AutoEscape, Environment, UndefinedBehavior, context};

use super::event::Event;
use super::settings::{ReceiverKind, ReceiverSettings};
use super::{sample, slack};

/// The name of the one template in its environment.
const NAME: &str = "message";

/// Writes messages.
pub(super) struct Template {
    environment: Environment<'static>,
    receiver: String,
}

impl fmt::Debug for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Template")
    }
}

impl Template {
    /// The template of a receiver: its own, or that of its kind; none for events as they are. It is tried on a test event.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub(super) fn of(settings: &ReceiverSettings) -> Result<Option<Self>, String> {
        let source = match (&settings.template, settings.kind) {
            (Some(source), _) => source.clone(),
            (None, ReceiverKind::Slack) => slack::TEMPLATE.to_owned(),
            (None, ReceiverKind::Alertmanager | ReceiverKind::Webhook) => return Ok(None),
        };
        let mut environment = Environment::new();
        environment.set_auto_escape_callback(|_| AutoEscape::Json);
        // A misspelt variable is an error; whether one exists may be asked.
        environment.set_undefined_behavior(UndefinedBehavior::SemiStrict);
        environment.add_filter("mrkdwn", slack::mrkdwn);
        environment.add_filter("plain", slack::plain);
        environment.add_filter("slack_link", slack::link);
        environment.add_template_owned(NAME, source).map_err(|error| in_words(&error))?;
        let template = Self { environment, receiver: settings.name.clone() };
        for event in sample::events().map_err(|error| error.to_string())? {
            if settings.filter.events.contains(&event.alert.alert_type) {
                template.render(&event)?;
            }
        }
        Ok(Some(template))
    }

    /// The message about an event.
    ///
    /// # Errors
    /// The template fails, or what it makes is not JSON; in words.
    pub(super) fn render(&self, event: &Event) -> Result<String, String> {
        let alert = &event.alert;
        let data: serde_json::Value = serde_json::from_str(&alert.data).map_err(|error| error.to_string())?;
        let variables = context! {
            id => alert.id.clone(),
            type => alert.alert_type.name(),
            state => data.get("state").and_then(|state| state.as_str()).unwrap_or("verdict"),
            time => rfc3339(alert.at),
            source => alert.source.clone(),
            subject => alert.subject.clone(),
            key => alert.key.clone(),
            receiver => self.receiver.clone(),
            data => Value::from(Serde(&data)),
        };
        let template = self.environment.get_template(NAME).map_err(|error| in_words(&error))?;
        let text = template.render(variables).map_err(|error| in_words(&error))?;
        let json: Result<serde_json::Value, _> = serde_json::from_str(&text);
        json.map_err(|error| {
            format!("what the template makes is not JSON: {error}; print whole values, without quotes of their own")
        })?;
        Ok(text)
    }
}

fn in_words(error: &minijinja::Error) -> String {
    let line = error.line().map_or_else(String::new, |line| format!("line {line} of the template: "));
    format!("{line}{}{}", error.kind(), error.detail().map_or_else(String::new, |detail| format!(": {detail}")))
}
