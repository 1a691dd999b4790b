//! The fleetdiff program: which function got slower, in which region and cohort, by how much, with an interval.

mod columns;
mod command;
mod configuration;
mod failure;
mod grid;
mod heap;
mod output;
mod progress;
mod publisher;
mod rings;
mod scaling;
mod waiting;
mod written_report;

use std::io::IsTerminal;
use std::process::ExitCode;

use clap::Parser;
use mimalloc::MiMalloc;

// Stacks are many small vectors, made by one thread and freed by another.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    let command::Program { log_format, command } = command::Program::parse();
    log_to_stderr(log_format, command.default_log());
    match command.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.print();
            failure.exit_code()
        }
    }
}

/// FLEETDIFF_LOG wins over the command's own choice. One event is one line, in either format.
fn log_to_stderr(format: command::LogFormat, default: &str) {
    let filter = tracing_subscriber::EnvFilter::try_from_env("FLEETDIFF_LOG").unwrap_or_else(|_| default.into());
    let lines = tracing_subscriber::fmt().with_writer(std::io::stderr).with_env_filter(filter);
    match format {
        command::LogFormat::Text => lines.with_ansi(std::io::stderr().is_terminal()).init(),
        command::LogFormat::Json => lines.json().flatten_event(true).init(),
    }
}
