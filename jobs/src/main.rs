//! The fleetdiff program: which function got slower, in which region and cohort, by how much, with an interval.

mod columns;
mod command;
mod configuration;
mod failure;
mod grid;
mod heap;
mod logging;
mod output;
mod progress;
mod publisher;
mod ranges;
mod rings;
mod scaling;
mod secrets;
mod signals;
mod waiting;
mod written_report;

use std::process::ExitCode;

use clap::Parser;
use tikv_jemallocator::Jemalloc;

use self::logging::Log;

// Stacks are many small vectors, made by one thread and freed by another; what is freed goes back to the system within a second or
// so (`.cargo/config.toml`). It serves the C libraries too: records that wait are theirs.
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

fn main() -> ExitCode {
    let command::Program { log_format, command } = command::Program::parse();
    let log = Log::start(log_format, command.default_log());
    match command.run(&log) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.print();
            failure.exit_code()
        }
    }
}
