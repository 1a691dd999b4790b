//! Keys as flags of a command: each command has the keys that concern it, all from one list.

use std::marker::PhantomData;

use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};

use super::keys::{KEYS, Key};
use super::problems::Problem;
use super::values::Configuration;

/// Which keys a command has as flags.
pub(crate) trait Choice {
    /// Whether the command has this key.
    fn has(key: &Key) -> bool;

    /// Its description for this command.
    fn meaning(key: &Key) -> &'static str {
        key.meaning
    }
}

/// Every key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Everything;

/// What decides rows from records of a folder, the workers and the archive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OfDataflow;

/// How functions are named.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OfNames;

/// A topic and how to reach it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OfTopic;

impl Choice for Everything {
    fn has(_: &Key) -> bool {
        true
    }
}

impl Choice for OfDataflow {
    fn has(key: &Key) -> bool {
        matches!(key.section(), "dataflow" | "limits" | "run" | "archive")
    }
}

impl Choice for OfNames {
    fn has(key: &Key) -> bool {
        matches!(key.path, "dataflow.name_rules_off" | "dataflow.rewrites")
    }
}

impl Choice for OfTopic {
    fn has(key: &Key) -> bool {
        matches!(key.path, "kafka.brokers" | "kafka.topic" | "kafka.format" | "kafka.connect_timeout")
    }

    fn meaning(key: &Key) -> &'static str {
        match key.path {
            "kafka.topic" => "Topic to write to, created if it is absent.",
            "kafka.format" => "Format of the records: pprof, otlp, delta, folded or perf_script.",
            _ => key.meaning,
        }
    }
}

/// The flags that were given.
#[derive(Clone, Debug)]
pub(crate) struct Flags<S> {
    given: Vec<(&'static Key, String)>,
    choice: PhantomData<S>,
}

impl<S> Flags<S> {
    /// No flag at all.
    pub(crate) fn none() -> Self {
        Self { given: Vec::new(), choice: PhantomData }
    }

    /// Whether a key was given.
    pub(crate) fn has(&self, path: &str) -> bool {
        self.given.iter().any(|(key, _)| key.path == path)
    }

    /// Sets the given flags; adds those that cannot be set to the problems.
    pub(crate) fn apply(&self, configuration: &mut Configuration, problems: &mut Vec<Problem>) {
        for (key, value) in &self.given {
            if !(key.set_text)(configuration, value) {
                problems.push(Problem::value(&format!("--{}", key.flag), key.path, key.expected, value));
            }
        }
    }
}

impl<S: Choice> Args for Flags<S> {
    fn augment_args(command: Command) -> Command {
        let defaults = Configuration::default();
        let mut keys: Vec<&'static Key> = KEYS.iter().filter(|key| S::has(key)).collect();
        // Headings are printed in the order in which their first flag is added.
        keys.sort_by_key(|key| key.heading);
        keys.into_iter().fold(command, |command, key| command.arg(flag(key, S::meaning(key), &defaults)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<S: Choice> FromArgMatches for Flags<S> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let value = |key: &Key| matches.get_one::<String>(key.path).cloned();
        let given = KEYS.iter().filter(|key| S::has(key)).filter_map(|key| Some((key, value(key)?))).collect();
        Ok(Self { given, choice: PhantomData })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

fn flag(key: &'static Key, meaning: &str, defaults: &Configuration) -> Arg {
    let default = match (key.get)(defaults) {
        serde_json::Value::String(text) => text,
        serde_json::Value::Array(parts) => parts.iter().filter_map(|part| part.as_str()).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    };
    let default = if default.is_empty() { "none".to_owned() } else { default };
    let meaning = meaning.trim_end_matches('.');
    Arg::new(key.path)
        .long(key.flag)
        .value_name(key.value_name)
        .help_heading(key.heading.title())
        .help(format!("{meaning} [default: {default}]"))
        .long_help(format!("{meaning} [default: {default}] [env: {}]", key.variable()))
}
