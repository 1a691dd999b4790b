//! Writes a configuration: as a commented file for people, as JSON for the tables. Neither contains a secret.

use std::fmt::Write;

use fleetdiff_connectors::kafka::client::is_secret;
use serde_json::{Map, Value as Json};

use super::keys::{Change, KEYS, Key};
use super::receivers::{RECEIVER_KEYS, Receiver};
use super::values::Configuration;

const HEAD: &str = "\
# The configuration of `fleetdiff watch`. Every key is listed with its default, which also applies if the key is left out.
# Each comment names the source of the default (measured, published, or a guess), the flag, and the environment variable.
# A flag overrides the variable, and the variable overrides the file. Durations are whole numbers with ms, s, m or h.
";

const CLIENT: &str = "
# Further properties of the Kafka client, by librdkafka's names in quotes: \"security.protocol\" = \"SASL_SSL\".
# Set secrets here or in the environment (FLEETDIFF_KAFKA_CLIENT_SASL_PASSWORD is \"sasl.password\"). They have no flags and
# are never printed.
[kafka.client]
";

const RECEIVERS: &str = "
# Who gets incidents besides the topic or file of alerts: any number of tables [[receivers]], none by default. Their keys
# have no flags and no variables. `fleetdiff test-receivers` sends each a test message. A running service takes a change of
# every key but kind.
#
# [[receivers]]
";

/// The example of the one key that is a table.
const HEADERS: &str = "\
# Further headers of each request. Their values are never printed.
# headers = { \"X-Scope-OrgID\" = \"fleet\" }
";

/// NB: texts, numbers and truth are written the same way in TOML and JSON.
fn toml_of(value: &Json) -> String {
    match value {
        Json::Array(parts) => format!("[{}]", parts.iter().map(toml_of).collect::<Vec<_>>().join(", ")),
        one => one.to_string(),
    }
}

/// Widest line of a comment.
const WIDTH: usize = 120;

/// Lines of a comment, broken between words.
fn comment(text: &mut String, words: &str) {
    let mut line = String::from("#");
    for word in words.split(' ') {
        if line.len() + 1 + word.len() > WIDTH {
            let _ = writeln!(text, "{line}");
            line.truncate(1);
        }
        let _ = write!(line, " {word}");
    }
    let _ = writeln!(text, "{line}");
}

fn write_receiver(text: &mut String, receiver: &Receiver) {
    text.push_str("\n[[receivers]]\n");
    for key in RECEIVER_KEYS {
        let _ = match (key.get)(receiver) {
            None => Ok(()),
            Some(Json::Null) => writeln!(text, "# {} is set but not shown", key.name),
            Some(value) => writeln!(text, "{} = {}", key.name, toml_of(&value)),
        };
    }
    for (name, _) in &receiver.headers {
        let _ = writeln!(text, "# header {name} is set but not shown");
    }
}

impl Configuration {
    /// The whole configuration as a commented TOML file.
    pub(crate) fn to_toml(&self) -> String {
        let mut text = HEAD.to_owned();
        let mut section = "";
        for key in KEYS {
            if key.section() != section {
                // The client's free properties come after the fixed keys of Kafka.
                if key.section() == "output" {
                    self.write_client(&mut text);
                }
                section = key.section();
                let _ = write!(text, "\n[{section}]\n");
            }
            let value = toml_of(&(key.get)(self));
            comment(&mut text, key.meaning);
            comment(&mut text, &format!("Default: {}. --{}, {}", key.origin, key.flag, key.variable()));
            match key.change {
                Change::Running => comment(&mut text, "A running service takes a change."),
                Change::Onward => comment(&mut text, "A running service takes a change, for rows from then on."),
                Change::Rows | Change::Start => {}
            }
            let _ = writeln!(text, "{} = {value}", key.name());
        }
        text.push_str(RECEIVERS);
        for key in RECEIVER_KEYS {
            comment(&mut text, key.meaning);
            let _ = writeln!(text, "# {} = {}", key.name, key.example);
        }
        text.push_str(HEADERS);
        self.receivers.iter().for_each(|receiver| write_receiver(&mut text, receiver));
        text
    }

    fn write_client(&self, text: &mut String) {
        text.push_str(CLIENT);
        for (name, value) in &self.kafka.client.properties {
            let name = Json::from(name.as_str());
            let _ = match is_secret(name.as_str().unwrap_or_default()) {
                true => writeln!(text, "# {name} is set but not shown"),
                false => writeln!(text, "{name} = {}", Json::from(value.as_str())),
            };
        }
    }

    /// The settings that decide the rows of a fleet in a folder or in memory, as JSON.
    pub(crate) fn of_fleet_as_json(&self) -> String {
        self.json(&["dataflow", "limits"], &[Change::Rows, Change::Onward])
    }

    /// The settings that decide the rows of a topic from beginning to end, as JSON.
    pub(crate) fn of_topic_as_json(&self) -> String {
        self.json(&["dataflow", "limits", "kafka", "kafka.identity"], &[Change::Rows])
    }

    /// Every key as JSON, without secrets; of the client's properties and the receivers only the names.
    pub(crate) fn shown(&self) -> Json {
        let mut all = self.of_keys(|_| true);
        let properties = self.kafka.client.properties.keys().map(String::as_str).collect::<Vec<_>>();
        let receivers = self.receivers.iter().map(|receiver| receiver.name()).collect::<Vec<_>>();
        if let Some(Json::Object(kafka)) = all.get_mut("kafka") {
            kafka.insert("client_properties".to_owned(), properties.into());
        }
        all.insert("receivers".to_owned(), receivers.into());
        Json::Object(all)
    }

    /// NB: only the settings that decide rows, since files with equal rows must be equal: a different broker address or
    /// number of workers must not change a file.
    fn json(&self, sections: &[&str], changes: &[Change]) -> String {
        Json::Object(self.of_keys(|key| changes.contains(&key.change) && sections.contains(&key.section()))).to_string()
    }

    /// The values of some keys, by section.
    fn of_keys(&self, which: impl Fn(&Key) -> bool) -> Map<String, Json> {
        let mut all = Map::new();
        for key in KEYS.iter().filter(|key| which(key)) {
            let mut place = &mut all;
            for part in key.section().split('.') {
                let inner = place.entry(part).or_insert_with(|| Json::Object(Map::new()));
                let Json::Object(inner) = inner else { return Map::new() };
                place = inner;
            }
            place.insert(key.name().to_owned(), (key.get)(self));
        }
        all
    }
}
