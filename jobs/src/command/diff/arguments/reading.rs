//! What of each file is read: the options of `perf diff` that are about it, by its letters.

use clap::{Args, ValueEnum};
use fleetdiff_connectors::formats::reading::{Filters, Keys, Numbers, Parent, Percentage, Reading};
use fleetdiff_diff::flame::Sides;
use fleetdiff_schemas::time::Nanos;

use super::names::Names;
use super::times::TimesOfFiles;
use crate::configuration::Setting;
use crate::failure::Failure;

/// What of each file is read.
#[derive(Debug, Args)]
#[command(next_help_heading = "Which samples, and what names them")]
pub(crate) struct ReadingArgs {
    /// What names a frame, some of comm, pid, tid, dso, symbol, cpu, parent, srcline, separated by commas; without it, the function
    #[arg(short = 's', long, value_name = "KEYS")]
    sort: Option<Keys>,
    /// Callers that the key parent names, as a regular expression [default: ^sys_|^do_page_fault]
    #[arg(long, value_name = "REGEX")]
    parent: Option<Parent>,
    /// Only samples in these programs and libraries, by name or path; file://NAME reads a list from a file
    #[arg(short = 'd', long, value_name = "NAMES")]
    dsos: Option<Names>,
    /// Only samples of threads of these names; file://NAME reads a list from a file
    #[arg(short = 'C', long, value_name = "NAMES")]
    comms: Option<Names>,
    /// Only samples in these functions; file://NAME reads a list from a file
    #[arg(short = 'S', long, value_name = "NAMES")]
    symbols: Option<Names>,
    /// Only samples of these processors, as in 0,2-3; others are not read at all
    #[arg(long, value_name = "LIST")]
    cpu: Option<Numbers>,
    /// Only samples of these processes
    #[arg(long, value_name = "LIST")]
    pid: Option<Numbers>,
    /// Only samples of these threads
    #[arg(long, value_name = "LIST")]
    tid: Option<Numbers>,
    /// What shares are of where a filter leaves samples out
    #[arg(long, value_enum, default_value_t = PercentageName::Absolute)]
    percentage: PercentageName,
    /// Only samples of these stretches: START,STOP in seconds of the file's clock (either may be left out), 10%-20%, or 10%/2 for the second tenth; several for base and head, or for each file, separated by ':'
    #[arg(long, value_name = "STRETCHES")]
    time: Option<TimesOfFiles>,
    /// Leave out so much of the beginning of each file, as in 30s or 5m; of files that say only when they were taken, those that begin so soon after their side's first
    #[arg(long, value_name = "LENGTH", value_parser = length)]
    pub(crate) crop: Option<Nanos>,
    /// Compare whole chains of calls instead of functions
    #[arg(long)]
    stream: bool,
}

/// What shares are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum PercentageName {
    /// Of the samples that the filters leave
    Relative,
    /// Of all samples
    Absolute,
}

fn length(text: &str) -> Result<Nanos, String> {
    Nanos::from_text(text).ok_or_else(|| format!("{text:?} is not {}", Nanos::EXPECTED))
}

impl ReadingArgs {
    /// The reading of each file.
    pub(crate) fn of_files(&self, base: usize, head: usize) -> Result<Sides<Vec<Reading>>, Failure> {
        let mut readings = vec![self.reading(); base + head];
        if let Some(times) = &self.time {
            let times = times
                .of(base, head)
                .map_err(|fault| Failure::usage(fault, "separate the stretches of one file by spaces or commas"))?;
            for (reading, times) in readings.iter_mut().zip(times) {
                reading.times = Some(times.clone());
            }
        }
        let head = readings.split_off(base);
        Ok(Sides { base: readings, head })
    }

    fn reading(&self) -> Reading {
        let names = |names: &Option<Names>| names.as_ref().map(|names| names.0.clone());
        Reading {
            keys: self.sort.clone(),
            parent: self.parent.clone().unwrap_or_default(),
            filters: Filters {
                cpus: self.cpu.clone(),
                pids: self.pid.clone(),
                tids: self.tid.clone(),
                comms: names(&self.comms),
                dsos: names(&self.dsos),
                symbols: names(&self.symbols),
            },
            percentage: match self.percentage {
                PercentageName::Relative => Percentage::Relative,
                PercentageName::Absolute => Percentage::Absolute,
            },
            times: None,
            crop: self.crop,
            stream: self.stream,
        }
    }
}
