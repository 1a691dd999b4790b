//! The configuration of every command: one list of [`keys`], each with a default, which a file, the environment and
//! flags override in this order. All problems are found before the run begins, and reported together.
//!
//! Secrets (passwords and keys of the Kafka client, URLs and tokens of receivers) come from the file or the environment, never from a flag, and are
//! neither printed nor written into output.

mod changes;
mod check;
mod file;
mod flags;
mod keys;
mod problems;
mod receivers;
mod setting;
mod values;
mod written;

use std::path::Path;

pub(crate) use changes::{Changes, Loaded};
pub(crate) use flags::{Everything, Flags, OfDataflow, OfNames, OfTopic};
pub(crate) use problems::Problems;
pub(crate) use setting::Setting;
pub(crate) use values::{Configuration, GuidanceTexts};

use keys::KEYS;
use problems::Problem;

impl Configuration {
    /// The defaults, overridden by the file if there is one, the environment, and the flags.
    ///
    /// # Errors
    /// All problems of all sources.
    pub(crate) fn load<S>(path: Option<&Path>, flags: &Flags<S>) -> Result<Self, Problems> {
        let mut configuration = Self::default();
        let mut problems = Vec::new();
        if let Some(path) = path {
            file::read(path, &mut configuration, &mut problems);
        }
        let variables =
            std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        configuration.take_variables(variables.collect(), &mut problems);
        flags.apply(&mut configuration, &mut problems);
        configuration.check(&mut problems);
        Problems::none_or(problems).map(|()| configuration)
    }

    fn take_variables(&mut self, variables: Vec<(String, String)>, problems: &mut Vec<Problem>) {
        for (name, value) in variables {
            if let Some(key) = KEYS.iter().find(|key| key.variable() == name) {
                if !(key.set_text)(self, &value) {
                    problems.push(Problem::value(&name, key.path, key.expected, &value));
                }
            } else if let Some(property) = name.strip_prefix("FLEETDIFF_KAFKA_CLIENT_") {
                self.kafka.client.properties.insert(property.to_lowercase().replace('_', "."), value);
            }
        }
    }
}

#[cfg(test)]
mod tests;
