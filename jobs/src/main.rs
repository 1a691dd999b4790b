//! The fleetdiff program: which function got slower, in which region and cohort, by how much, with an interval.

mod calibrate;
mod command;
mod configuration;
mod delta;
mod demo;
mod diff;
mod failure;
mod generate;
mod grid;
mod kafka;
mod output;
mod power;
mod publish;
mod replay;
mod self_check;
mod watch;

use std::io::IsTerminal;
use std::process::ExitCode;

use clap::Parser;
use mimalloc::MiMalloc;

// Stacks are many small vectors, made by one thread and freed by another.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    let command = command::Program::parse().command;
    log_to_stderr(&command);
    let done = match command {
        command::Command::Demo(settings) => demo::demo(&settings),
        command::Command::Replay(settings) => replay::replay(&settings),
        command::Command::Watch(settings) => watch::watch(&settings),
        command::Command::Publish(settings) => publish::publish(&settings),
        command::Command::Generate(settings) => generate::generate(&settings),
        command::Command::Delta(settings) => delta::delta(&settings),
        command::Command::Diff(settings) => diff::diff(&settings),
        command::Command::Calibrate(settings) => calibrate::calibrate(&settings),
        command::Command::Power(settings) => power::power(&settings),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.tell();
            failure.exit_code()
        }
    }
}

/// A service tells what it does; the other commands only what is wrong. FLEETDIFF_LOG says otherwise.
fn log_to_stderr(command: &command::Command) {
    let default = match command {
        command::Command::Watch(_) => "warn,fleetdiff=info,fleetdiff_pipeline=info,fleetdiff_connectors=info",
        _ => "warn",
    };
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_env_filter(
            tracing_subscriber::EnvFilter::try_from_env("FLEETDIFF_LOG").unwrap_or_else(|_| default.into()),
        )
        .init();
}
