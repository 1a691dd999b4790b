//! Idle stacks: section 2 of `docs/semantics.md`, step 4.

use std::collections::BTreeMap;
use std::sync::Arc;

use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::idle::idle_defaults;
use fleetdiff_schemas::profile::{Profile, ProfileType, Samples, Stack, Temporality};

use super::admission::at_frames;

/// The entries of a configuration, and what they made of the names so far: whether idle, whether kept.
pub(super) struct IdleEntries {
    entries: Vec<String>,
    known: BTreeMap<Arc<str>, (bool, bool)>,
}

impl IdleEntries {
    pub(super) fn new(config: &Config) -> Self {
        let mut entries: Vec<String> = config.idle.iter().map(|entry| String::from(&**entry)).collect();
        if config.idle_defaults {
            entries.extend(idle_defaults().map(String::from));
        }
        Self { entries, known: BTreeMap::new() }
    }

    /// A profile without its idle stacks.
    pub(super) fn without_idle(&mut self, profile: &Arc<Profile>) -> Arc<Profile> {
        let time = [ProfileType::OffCpu, ProfileType::Wall].contains(&profile.profile_type);
        match &profile.samples {
            Samples::Stacks(stacks) if time && profile.temporality == Temporality::Delta => {
                let names: Vec<_> = profile.names.iter().map(|name| self.of_name(name)).collect();
                let left = stacks.iter().filter(|stack| !is_idle(&names, stack)).cloned().collect();
                Arc::new(Profile { samples: Samples::Stacks(left), ..Profile::clone(profile) })
            }
            _ => Arc::clone(profile),
        }
    }

    fn of_name(&mut self, name: &Arc<str>) -> (bool, bool) {
        if let Some(known) = self.known.get(name) {
            return *known;
        }
        let (function, thread) = name.rfind(" @ ").map_or((&**name, ""), |at| name.split_at(at));
        let mut spellings = vec![function];
        for kind in ["_[k]", "_[j]", "_[i]"] {
            spellings.extend(function.strip_suffix(kind));
        }
        let any = |entry: &str| {
            let asked = if entry.contains(" @ ") { thread } else { "" };
            spellings.iter().any(|spelling| fits(entry, &format!("{spelling}{asked}")))
        };
        let idle = self.entries.iter().any(|entry| !entry.starts_with('!') && any(entry));
        let kept = self.entries.iter().any(|entry| entry.starts_with('!') && any(&entry[1..]));
        self.known.insert(Arc::clone(name), (idle, kept));
        (idle, kept)
    }
}

/// Whether a stack is idle, by what the entries make of the profile's names.
fn is_idle(names: &[(bool, bool)], stack: &Stack) -> bool {
    let found = || at_frames(names, &stack.frames);
    found().any(|(idle, _)| *idle) && !found().any(|(_, kept)| *kept)
}

/// Whether a name is an entry in which each `*` stands for any text.
fn fits(entry: &str, name: &str) -> bool {
    let name: Vec<char> = name.chars().collect();
    // Which beginnings of the name are what was read of the entry.
    let mut fitting = vec![false; name.len() + 1];
    fitting[0] = true;
    for letter in entry.chars() {
        fitting = (0..=name.len())
            .map(|end| match letter {
                '*' => fitting[..=end].contains(&true),
                _ => end > 0 && fitting[end - 1] && name[end - 1] == letter,
            })
            .collect();
    }
    fitting[name.len()]
}
