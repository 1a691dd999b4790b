//! What names a frame: the keys of `perf diff --sort`.

use std::fmt;
use std::str::FromStr;

/// A part of a frame's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// Name of the thread.
    Comm,
    /// Process.
    Pid,
    /// Thread.
    Tid,
    /// Program or library that holds the code.
    Dso,
    /// Function.
    Symbol,
    /// Processor.
    Cpu,
    /// The innermost caller that the pattern of parents matches.
    Parent,
    /// File and line of the source.
    Srcline,
}

impl Key {
    /// Every key.
    pub const ALL: [Self; 8] =
        [Self::Comm, Self::Pid, Self::Tid, Self::Dso, Self::Symbol, Self::Cpu, Self::Parent, Self::Srcline];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Comm => "comm",
            Self::Pid => "pid",
            Self::Tid => "tid",
            Self::Dso => "dso",
            Self::Symbol => "symbol",
            Self::Cpu => "cpu",
            Self::Parent => "parent",
            Self::Srcline => "srcline",
        }
    }

    /// Whether it is one of the sample, the same for all of its frames.
    pub(crate) fn is_of_sample(self) -> bool {
        matches!(self, Self::Comm | Self::Pid | Self::Tid | Self::Cpu | Self::Parent)
    }

    /// What a file without it does not say.
    pub(super) fn missing(self) -> &'static str {
        match self {
            Self::Comm => "the name of the thread that a sample was taken of (comm)",
            Self::Pid => "of which process a sample was taken (pid)",
            Self::Tid => "of which thread a sample was taken (tid)",
            Self::Dso => "which program or library a frame is of (dso)",
            Self::Symbol | Self::Parent => "the function of a frame (symbol)",
            Self::Cpu => "on which processor a sample was taken (cpu)",
            Self::Srcline => "of which line of the source a frame is (srcline)",
        }
    }
}

/// The keys that name a frame, in the order of its parts; none twice, one at least.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keys(Vec<Key>);

impl Keys {
    /// Each key.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Key> {
        self.0.iter().copied()
    }

    /// Whether a key is among them.
    pub(crate) fn has(&self, key: Key) -> bool {
        self.0.contains(&key)
    }
}

impl FromStr for Keys {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut keys = Vec::new();
        for word in text.split(',').map(str::trim) {
            // perf takes the short name too.
            let name = if word == "sym" { "symbol" } else { word };
            let key = Key::ALL.into_iter().find(|key| key.name() == name).ok_or_else(|| {
                format!(
                    "unknown key {word:?}, expected some of {}, separated by commas",
                    Key::ALL.map(Key::name).join(", ")
                )
            })?;
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        Ok(Self(keys))
    }
}

impl fmt::Display for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.iter().map(Key::name).collect();
        f.write_str(&names.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_keep_their_order_and_stand_once() {
        let keys: Keys = "comm, sym,dso,comm".parse().unwrap();
        assert_eq!(keys.iter().collect::<Vec<_>>(), [Key::Comm, Key::Symbol, Key::Dso]);
        assert_eq!(keys.to_string(), "comm,symbol,dso");
    }

    #[test]
    fn what_is_no_key_is_said() {
        for text in ["", "foo", "dso,,symbol", "DSO"] {
            assert!(text.parse::<Keys>().unwrap_err().contains("expected some of comm, pid"), "{text}");
        }
    }
}
