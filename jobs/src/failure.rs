//! What went wrong, and what to do about it.

use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;

use fleetdiff_connectors::files::FleetError;
use fleetdiff_connectors::kafka::error::BrokerError;
use fleetdiff_connectors::receivers::ReceiverError;

use crate::configuration::Problems;

/// Why a command failed.
#[derive(Debug)]
pub(crate) struct Failure {
    cause: Box<dyn Error + Send + Sync>,
    hint: Option<String>,
    exit: u8,
}

/// Something went wrong.
const FAILED: u8 = 1;
/// The command line or the configuration is wrong.
const USAGE: u8 = 2;
/// Everything went well, and what was found is what the command was told to fail on.
const FOUND: u8 = 3;
/// As of a program that a shell has seen end by SIGPIPE.
const UNREAD: u8 = 141;

impl Failure {
    /// A command that cannot start as given.
    pub(crate) fn usage(cause: impl Into<Box<dyn Error + Send + Sync>>, hint: impl Into<String>) -> Self {
        Self { exit: USAGE, ..Self::with_hint(cause, hint) }
    }

    /// A result that the command was told to fail on.
    pub(crate) fn found(cause: impl Into<Box<dyn Error + Send + Sync>>, hint: impl Into<String>) -> Self {
        Self { exit: FOUND, ..Self::with_hint(cause, hint) }
    }

    /// Whether whoever read the output has gone, as `head` does after its last line: nobody is there to be informed.
    fn is_unread(&self) -> bool {
        self.cause.downcast_ref::<io::Error>().is_some_and(|fault| fault.kind() == io::ErrorKind::BrokenPipe)
    }

    /// The program's exit code for it.
    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(if self.is_unread() { UNREAD } else { self.exit })
    }

    /// A failure with advice.
    pub(crate) fn with_hint(cause: impl Into<Box<dyn Error + Send + Sync>>, hint: impl Into<String>) -> Self {
        Self { cause: cause.into(), hint: Some(hint.into()), exit: FAILED }
    }

    /// A failure of a recorded fleet, with what to do.
    pub(crate) fn of_fleet(failure: FleetError) -> Self {
        let hint = failure.hint();
        Self::with_hint(failure, hint)
    }

    /// A failure of the cluster, with what to do.
    pub(crate) fn of_broker(failure: BrokerError) -> Self {
        let hint = failure.hint();
        Self::with_hint(failure, hint)
    }

    /// All problems of a configuration, as a failure of usage.
    pub(crate) fn of_configuration(problems: Problems) -> Self {
        Self::usage(problems, "`fleetdiff watch --show-config` prints every key with its meaning")
    }

    /// A receiver that cannot be used, with what to do.
    pub(crate) fn of_receiver(failure: ReceiverError) -> Self {
        match failure {
            ReceiverError::Template { .. } => {
                Self::usage(failure, "docs/receivers.md lists the variables and filters of templates")
            }
            ReceiverError::State { .. } | ReceiverError::Thread { .. } => failure.into(),
        }
    }

    /// Prints the chain of causes and the advice to stderr; nothing if the output is [unread](Self::is_unread).
    pub(crate) fn print(&self) {
        if self.is_unread() {
            return;
        }
        let mut text = format!("error: {}", self.cause);
        let mut hint = self.hint.as_deref();
        let mut deeper = self.cause.source();
        while let Some(cause) = deeper {
            text.push_str(&format!("\n  because: {cause}"));
            hint = hint.or_else(|| cause.downcast_ref::<BrokerError>().map(BrokerError::hint));
            deeper = cause.source();
        }
        if let Some(hint) = hint {
            text.push_str(&format!("\n  hint: {hint}"));
        }
        // Nothing is left to do if stderr itself is gone.
        let _ = writeln!(io::stderr(), "{text}");
    }
}

impl<E: Error + Send + Sync + 'static> From<E> for Failure {
    fn from(cause: E) -> Self {
        Self { cause: Box::new(cause), hint: None, exit: FAILED }
    }
}
