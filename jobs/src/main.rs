//! The fleetdiff program: which function got slower, in which region and cohort, by how much, with an interval.

mod command;
mod demo;
mod failure;
mod grid;
mod output;
mod replay;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_env_filter(tracing_subscriber::EnvFilter::try_from_env("FLEETDIFF_LOG").unwrap_or_else(|_| "warn".into()))
        .init();
    let done = match command::Program::parse().command {
        command::Command::Demo(settings) => demo::demo(&settings),
        command::Command::Replay(settings) => replay::replay(&settings),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.tell();
            ExitCode::FAILURE
        }
    }
}
