//! The log of the program: one event is one line on standard error, in either format.

use std::io::IsTerminal;

use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::reload::{self, Handle};
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry, fmt};

/// The variable that chooses what is logged, whatever the command and the configuration say.
const VARIABLE: &str = "FLEETDIFF_LOG";

/// How lines of the log are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum LogFormat {
    Text,
    Json,
}

/// The least severe lines that are logged, the fewest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum LogLevel {
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

impl LogLevel {
    /// Every level with its name.
    pub(crate) const ALL: [(&'static str, Self); 5] = [
        ("error", Self::Error),
        ("warn", Self::Warn),
        ("info", Self::Info),
        ("debug", Self::Debug),
        ("trace", Self::Trace),
    ];

    /// Its name.
    pub(crate) fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, level)| *level == self).map_or("", |(name, _)| name)
    }

    /// Which lines those are: of libraries only what is wrong, but for the client of Kafka, which says more if it is asked for more.
    fn filter(self) -> EnvFilter {
        let own = |level: &str| {
            let targets = ["fleetdiff", "fleetdiff_pipeline", "fleetdiff_connectors"];
            targets.map(|target| format!(",{target}={level}")).concat()
        };
        let text = match self {
            Self::Error | Self::Warn => self.name().to_owned(),
            Self::Info => format!("warn{}", own("info")),
            Self::Debug | Self::Trace => format!("warn{},librdkafka={}", own(self.name()), self.name()),
        };
        EnvFilter::new(text)
    }
}

/// The log, as it was begun. Clones are handles to the same log.
#[derive(Clone)]
pub(crate) struct Log {
    filter: Handle<EnvFilter, Registry>,
    /// Whether the user has chosen what is logged.
    is_chosen: bool,
}

impl Log {
    /// Begins to log.
    pub(crate) fn start(format: LogFormat, level: LogLevel) -> Self {
        let chosen = EnvFilter::try_from_env(VARIABLE).ok();
        let is_chosen = chosen.is_some();
        let (filter, handle) = reload::Layer::new(chosen.unwrap_or_else(|| level.filter()));
        let lines = fmt::layer().with_writer(std::io::stderr);
        let lines = match format {
            LogFormat::Text => lines.with_ansi(std::io::stderr().is_terminal()).boxed(),
            LogFormat::Json => lines.json().flatten_event(true).boxed(),
        };
        tracing_subscriber::registry().with(filter).with(lines).init();
        Self { filter: handle, is_chosen }
    }

    /// Logs at this level from now on, unless the user has chosen otherwise.
    pub(crate) fn follow(&self, level: LogLevel) {
        if self.is_chosen {
            return;
        }
        if let Err(error) = self.filter.reload(level.filter()) {
            tracing::error!("the level of the log cannot be changed: {error}");
        }
    }
}
