//! The TOML file: every key must be known, and every value must have the type of its key.

use std::path::Path;

use fleetdiff_connectors::receivers::Secret;
use serde_json::{Value as Json, json};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::keys::{self, KEYS};
use super::problems::Problem;
use super::receivers::{HEADERS, RECEIVER_KEYS, Receiver};
use super::values::Configuration;

/// The section whose keys are properties of librdkafka.
const CLIENT: &str = "kafka.client";

/// The list of tables whose keys are those of a receiver.
const RECEIVERS: &str = "receivers";

/// Reads a file into a configuration; adds what is wrong to the problems, and takes the rest.
pub(crate) fn read(path: &Path, configuration: &mut Configuration, problems: &mut Vec<Problem>) {
    let name = path.display().to_string();
    match std::fs::read_to_string(path) {
        Ok(text) => take(&text, &name, configuration, problems),
        Err(error) => {
            problems.push(Problem { place: Some(name), key: String::new(), what: format!("cannot be read: {error}") })
        }
    }
}

/// Reads a file's text; `name` is the file's.
pub(crate) fn take(text: &str, name: &str, configuration: &mut Configuration, problems: &mut Vec<Problem>) {
    let (table, faults) = DeTable::parse_recoverable(text);
    let mut reading = Reading { text, name, configuration, problems };
    for fault in faults {
        // NB: the library's own text of an error shows the line, which may hold a password.
        reading.problem(fault.span().map_or(0, |span| span.start), String::new(), fault.message().to_owned());
    }
    reading.table("", table.get_ref());
}

struct Reading<'a> {
    text: &'a str,
    name: &'a str,
    configuration: &'a mut Configuration,
    problems: &'a mut Vec<Problem>,
}

impl Reading<'_> {
    fn problem(&mut self, at: usize, key: String, what: String) {
        let place = Some(self.place(at));
        self.problems.push(Problem { place, key, what });
    }

    fn place(&self, at: usize) -> String {
        let line = self.text.get(..at).unwrap_or_default().matches('\n').count() + 1;
        format!("{}:{line}", self.name)
    }

    fn table(&mut self, section: &str, table: &DeTable<'_>) {
        for (key, value) in table.iter() {
            let name: &str = key.get_ref().as_ref();
            let path = if section.is_empty() { name.to_owned() } else { format!("{section}.{name}") };
            match value.get_ref() {
                _ if section == CLIENT => self.property(name, value),
                DeValue::Array(parts) if path == RECEIVERS => parts.iter().for_each(|part| self.receiver(part)),
                _ if path == RECEIVERS => {
                    self.problem(
                        key.span().start,
                        path,
                        "is a list: write [[receivers]] above the keys of each".to_owned(),
                    );
                }
                DeValue::Table(table) if is_section(&path) => self.table(&path, table),
                _ => self.key(&path, key.span().start, value),
            }
        }
    }

    fn key(&mut self, path: &str, at: usize, value: &Spanned<DeValue<'_>>) {
        let Some(key) = keys::find(path) else {
            let what =
                if is_section(path) { "is a section: write its keys below it".to_owned() } else { unknown(path) };
            return self.problem(at, path.to_owned(), what);
        };
        let json = json_of(value.get_ref());
        if !json.as_ref().is_some_and(|json| (key.set_json)(self.configuration, json)) {
            let shown = json.map_or_else(|| value.get_ref().type_str().to_owned(), |json| json.to_string());
            self.problem(value.span().start, path.to_owned(), format!("{shown} is not {}", key.expected));
        }
    }

    /// One table of the list of receivers.
    fn receiver(&mut self, part: &Spanned<DeValue<'_>>) {
        let DeValue::Table(table) = part.get_ref() else {
            let what = "is a list of tables: write [[receivers]] above the keys of each";
            return self.problem(part.span().start, RECEIVERS.to_owned(), what.to_owned());
        };
        let folder = Path::new(self.name).parent().unwrap_or_else(|| Path::new("")).to_owned();
        let mut receiver = Receiver::at(self.place(part.span().start), folder);
        for (key, value) in table.iter() {
            let name: &str = key.get_ref().as_ref();
            if name == HEADERS {
                self.headers(&mut receiver, value);
                continue;
            }
            let path = format!("{RECEIVERS}.{name}");
            let Some(known) = RECEIVER_KEYS.iter().find(|known| known.name == name) else {
                let names: Vec<&str> = RECEIVER_KEYS.iter().map(|key| key.name).chain([HEADERS]).collect();
                let what = format!("unknown key; [[receivers]] has {}", names.join(", "));
                self.problem(key.span().start, path, what);
                continue;
            };
            if !json_of(value.get_ref()).is_some_and(|json| (known.set)(&mut receiver, &json)) {
                // NB: the value is not shown: it may be a secret in the wrong place.
                self.problem(value.span().start, path, format!("must be {}", known.expected));
            }
        }
        self.configuration.receivers.push(receiver);
    }

    /// Headers of a receiver; their values are never shown.
    fn headers(&mut self, receiver: &mut Receiver, value: &Spanned<DeValue<'_>>) {
        let is_name = |name: &str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
        let is_value = |text: &str| text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
        let mut headers = Vec::new();
        if let DeValue::Table(table) = value.get_ref() {
            for (name, value) in table.iter() {
                match value.get_ref() {
                    DeValue::String(text) if is_name(name.get_ref()) && is_value(text) => {
                        headers.push((name.get_ref().to_string(), Secret::new(text.as_ref())));
                    }
                    _ => {}
                }
            }
            if headers.len() == table.len() {
                return receiver.headers = headers;
            }
        }
        let what = "must be a table of ASCII strings, as in { \"X-Scope-OrgID\" = \"fleet\" }";
        self.problem(value.span().start, format!("{RECEIVERS}.{HEADERS}"), what.to_owned());
    }

    /// A property of the client library; its value is never shown.
    fn property(&mut self, name: &str, value: &Spanned<DeValue<'_>>) {
        let text = match json_of(value.get_ref()) {
            Some(Json::String(text)) => text,
            Some(scalar @ (Json::Number(_) | Json::Bool(_))) => scalar.to_string(),
            _ => {
                let what = "a property of the client is a string, a number, true or false; write its name in quotes, as in \"sasl.mechanism\"";
                return self.problem(value.span().start, format!("{CLIENT}.{name}"), what.to_owned());
            }
        };
        self.configuration.kafka.client.properties.insert(name.to_owned(), text);
    }
}

fn is_section(path: &str) -> bool {
    path == CLIENT || KEYS.iter().any(|key| key.path.strip_prefix(path).is_some_and(|rest| rest.starts_with('.')))
}

/// An unknown key, and the keys of its section.
fn unknown(path: &str) -> String {
    let section = path.rsplit_once('.').map_or("", |(section, _)| section);
    let names: Vec<&str> = KEYS.iter().filter(|key| key.section() == section).map(|key| key.name()).collect();
    if names.is_empty() {
        let mut sections: Vec<&str> = KEYS.iter().map(|key| key.section()).chain([CLIENT]).collect();
        sections.dedup();
        return format!("unknown; the sections are {}", sections.join(", "));
    }
    format!("unknown key; [{section}] has {}", names.join(", "))
}

/// A value without its position; `None` for a type that no key takes.
fn json_of(value: &DeValue<'_>) -> Option<Json> {
    match value {
        DeValue::String(text) => Some(json!(text.as_ref())),
        DeValue::Integer(number) => {
            i64::from_str_radix(number.as_str(), number.radix()).ok().map(|number| json!(number))
        }
        DeValue::Float(number) => {
            number.as_str().parse::<f64>().ok().filter(|number| number.is_finite()).map(|number| json!(number))
        }
        DeValue::Boolean(value) => Some(json!(value)),
        DeValue::Array(parts) => {
            parts.iter().map(|part| json_of(part.get_ref())).collect::<Option<Vec<_>>>().map(Json::Array)
        }
        DeValue::Datetime(_) | DeValue::Table(_) => None,
    }
}
