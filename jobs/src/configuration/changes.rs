//! How two configurations differ, and which of the differences a running service takes.

use std::collections::BTreeSet;
use std::path::Path;

use fleetdiff_connectors::receivers::ReceiverSettings;
use serde_json::Value as Json;

use super::flags::Flags;
use super::keys::{Change, KEYS, Key};
use super::problems::Problems;
use super::values::Configuration;

/// A configuration with what the files and variables hold that its receivers name.
#[derive(Clone, Debug)]
pub(crate) struct Loaded {
    pub(crate) configuration: Configuration,
    pub(crate) receivers: Vec<ReceiverSettings>,
}

/// The keys in which two configurations differ.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Changes {
    /// Those that a running service takes.
    pub(crate) at_once: Vec<String>,
    /// Those that it has from its start to its end.
    pub(crate) after_restart: Vec<String>,
}

impl Changes {
    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.at_once.is_empty() && self.after_restart.is_empty()
    }
}

impl Loaded {
    /// Reads everything anew.
    ///
    /// # Errors
    /// All problems of all sources.
    pub(crate) fn read<S>(path: Option<&Path>, flags: &Flags<S>) -> Result<Self, Problems> {
        Self::of(Configuration::load(path, flags)?)
    }

    /// Reads what a configuration names.
    ///
    /// # Errors
    /// All that cannot be read, or is not what it must be.
    pub(crate) fn of(configuration: Configuration) -> Result<Self, Problems> {
        let receivers = configuration.receivers()?;
        Ok(Self { configuration, receivers })
    }

    /// What is different in another one.
    pub(crate) fn changes_to(&self, other: &Self) -> Changes {
        let mut changes = Changes::default();
        for key in KEYS.iter().filter(|key| self.has_other(key, other)) {
            match key.change {
                Change::Running | Change::Onward => changes.at_once.push(key.path.to_owned()),
                Change::Rows | Change::Start => changes.after_restart.push(key.path.to_owned()),
            }
        }
        let (own, others) = (&self.configuration.kafka.client.properties, &other.configuration.kafka.client.properties);
        let names: BTreeSet<&String> = own.keys().chain(others.keys()).collect();
        let properties = names.into_iter().filter(|name| own.get(*name) != others.get(*name));
        changes.after_restart.extend(properties.map(|name| format!("kafka.client.\"{name}\"")));
        let names: BTreeSet<&String> = self.receivers.iter().chain(&other.receivers).map(|one| &one.name).collect();
        for name in names {
            match (self.receiver(name), other.receiver(name)) {
                (own, others) if own == others => {}
                (Some(own), Some(others)) if own.kind != others.kind => {
                    changes.after_restart.push(format!("receivers.{name}.kind"));
                }
                _ => changes.at_once.push(format!("receivers.{name}")),
            }
        }
        changes
    }

    /// The same with what a running service takes of another one.
    pub(crate) fn taking(&self, other: &Self) -> Self {
        let mut taken = self.clone();
        for key in KEYS.iter().filter(|key| matches!(key.change, Change::Running | Change::Onward)) {
            let _ = (key.set_json)(&mut taken.configuration, &(key.get)(&other.configuration));
        }
        // NB: the kind of a receiver is not taken, and so nothing of that receiver is.
        let keeps = |one: &ReceiverSettings| self.receiver(&one.name).is_some_and(|own| own.kind != one.kind);
        let own = |one: &ReceiverSettings| self.receiver(&one.name).filter(|_| keeps(one)).unwrap_or(one).clone();
        taken.receivers = other.receivers.iter().map(own).collect();
        taken.configuration.receivers.clone_from(&other.configuration.receivers);
        taken
    }

    fn receiver(&self, name: &str) -> Option<&ReceiverSettings> {
        self.receivers.iter().find(|one| one.name == name)
    }

    fn has_other(&self, key: &Key, other: &Self) -> bool {
        let value = |one: &Self| -> Json { (key.get)(&one.configuration) };
        value(self) != value(other)
    }
}

#[cfg(test)]
mod tests {
    use super::super::file;
    use super::*;

    fn loaded(text: &str) -> Loaded {
        let (mut configuration, mut problems) = (Configuration::default(), Vec::new());
        file::take(text, "f.toml", &mut configuration, &mut problems);
        configuration.check(&mut problems);
        assert_eq!(problems, []);
        let receivers = configuration.receivers().unwrap();
        Loaded { configuration, receivers }
    }

    fn receiver(name: &str, kind: &str, rest: &str) -> String {
        format!("[[receivers]]\nname = \"{name}\"\nkind = \"{kind}\"\nurl = \"http://host/{name}\"\n{rest}\n")
    }

    #[test]
    fn every_key_is_taken_or_named_as_one_that_needs_a_restart() {
        let old = loaded("");
        let text = format!(
            "[dataflow]\nwindow = \"20m\"\n[kafka.client]\n\"sasl.password\" = \"hunter2\"\n[status]\nready_within = \"5m\"\n[log]\nlevel = \"debug\"\n[alerts]\ntopic = \"other\"\nowners = [\"* -> team\"]\nlink = \"http://x\"\n{}",
            receiver("chat", "slack", "")
        );
        let new = loaded(&text);
        let changes = old.changes_to(&new);
        let at_once = ["status.ready_within", "log.level", "alerts.owners", "alerts.link", "receivers.chat"];
        assert_eq!(changes.at_once, at_once);
        assert_eq!(changes.after_restart, ["dataflow.window", "alerts.topic", "kafka.client.\"sasl.password\""]);

        let taken = old.taking(&new);
        assert_eq!(taken.changes_to(&new), Changes { at_once: Vec::new(), ..changes });
        assert_eq!(taken.configuration.alerts.topic, old.configuration.alerts.topic);
    }

    #[test]
    fn receivers_are_known_by_their_name_and_keep_their_kind() {
        let old = loaded(&format!("{}{}", receiver("a", "slack", ""), receiver("b", "webhook", "")));
        let moved = loaded(&format!("\n\n{}{}", receiver("b", "webhook", ""), receiver("a", "slack", "")));
        assert!(old.changes_to(&moved).is_empty(), "the place in the file is nothing that receivers know");
        let new = loaded(&format!(
            "{}{}",
            receiver("a", "webhook", "services = [\"x\"]"),
            receiver("c", "webhook", "minimum_severity = \"page\"")
        ));
        let changes = old.changes_to(&new);
        assert_eq!(changes.at_once, ["receivers.b", "receivers.c"]);
        assert_eq!(changes.after_restart, ["receivers.a.kind"]);
        let taken = old.taking(&new).receivers;
        assert_eq!(taken, [old.receivers[0].clone(), new.receivers[1].clone()]);
    }
}
