//! What a bench is asked for on its command line.

use std::io::Write;

/// The options that were given.
#[derive(Clone, Debug)]
pub struct Asked(Vec<String>);

impl Asked {
    /// Those of this process; `--bench` comes from cargo. `None` if one is not `known`, which is said on stderr.
    #[must_use]
    pub fn given(known: &[&str]) -> Option<Self> {
        let options: Vec<String> = std::env::args().skip(1).filter(|option| option != "--bench").collect();
        if let Some(unknown) = options.iter().find(|option| !known.contains(&option.as_str())) {
            let known =
                if known.is_empty() { "there is none".to_owned() } else { format!("known: {}", known.join(", ")) };
            let _ = writeln!(std::io::stderr(), "unknown option {unknown}; {known}");
            return None;
        }
        Some(Self(options))
    }

    /// Whether this one was given.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.0.iter().any(|option| option == name)
    }
}
