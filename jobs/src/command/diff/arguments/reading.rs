//! What is read from each file: the corresponding options of `perf diff`, with the same letters.

use clap::{Args, ValueEnum};
use fleetdiff_diff::flame::Sides;
use fleetdiff_formats::Values;
use fleetdiff_formats::reading::{Filters, Keys, Numbers, Parent, Percentage, Reading};
use fleetdiff_schemas::time::Nanos;

use super::names::Names;
use super::times::TimesOfFiles;
use crate::configuration::Setting;
use crate::failure::Failure;

/// What of each file is read.
#[derive(Debug, Args)]
#[command(next_help_heading = "Which samples, and how they are named")]
pub(crate) struct ReadingArgs {
    /// Keys that name a frame, separated by commas: comm, pid, tid, dso, symbol, cpu, parent, srcline [default: the function]
    #[arg(short = 's', long, value_name = "KEYS")]
    sort: Option<Keys>,
    /// Regular expression for the callers that the key parent names [default: ^sys_|^do_page_fault]
    #[arg(long, value_name = "REGEX")]
    parent: Option<Parent>,
    /// Only samples in these programs and libraries, by name or path; file://NAME reads the list from a file
    #[arg(short = 'd', long, value_name = "NAMES")]
    dsos: Option<Names>,
    /// Only samples of threads with these names; file://NAME reads the list from a file
    #[arg(short = 'C', long, value_name = "NAMES")]
    comms: Option<Names>,
    /// Only samples in these functions; file://NAME reads the list from a file
    #[arg(short = 'S', long, value_name = "NAMES")]
    symbols: Option<Names>,
    /// Only samples of these processors, as in 0,2-3; other samples are not read
    #[arg(long, value_name = "LIST")]
    cpu: Option<Numbers>,
    /// Only samples of these processes
    #[arg(long, value_name = "LIST")]
    pid: Option<Numbers>,
    /// Only samples of these threads
    #[arg(long, value_name = "LIST")]
    tid: Option<Numbers>,
    /// Samples that shares refer to if a filter leaves some out
    #[arg(long, value_enum, default_value_t = PercentageName::Absolute)]
    percentage: PercentageName,
    /// Only samples of this time range: START,STOP in seconds of the file's clock (either may be left out), 10%-20%, or 10%/2 for the second tenth. Several ranges, one for each side or for each file, are separated by ':'
    #[arg(long, value_name = "RANGE")]
    time: Option<TimesOfFiles>,
    /// Leave out the first part of each file, as in 30s or 5m. If files only say when they were taken, leave out files that begin within this time of the first file of their side
    #[arg(long, value_name = "DURATION", value_parser = length)]
    pub(crate) crop: Option<Nanos>,
    /// Compare whole call chains instead of functions
    #[arg(long)]
    stream: bool,
    /// Compare functions by name alone: otherwise one that was renamed, moved or inlined between the sides, which its callers, its callees and its cost show, is one function
    #[arg(long)]
    no_pairs: bool,
}

/// What shares are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum PercentageName {
    /// The samples that pass the filters
    Relative,
    /// All samples
    Absolute,
}

fn length(text: &str) -> Result<Nanos, String> {
    Nanos::from_text(text).ok_or_else(|| format!("{text:?} is not {}", Nanos::EXPECTED))
}

impl ReadingArgs {
    /// The options that leave samples out by what they are of, as they were given.
    pub(crate) fn filters(&self) -> Vec<&'static str> {
        let given = [
            (self.dsos.is_some(), "--dsos"),
            (self.comms.is_some(), "--comms"),
            (self.symbols.is_some(), "--symbols"),
            (self.cpu.is_some(), "--cpu"),
            (self.pid.is_some(), "--pid"),
            (self.tid.is_some(), "--tid"),
            (self.time.is_some(), "--time"),
        ];
        given.into_iter().filter(|(is_given, _)| *is_given).map(|(_, option)| option).collect()
    }

    /// The reading of each file.
    pub(crate) fn of_files(&self, base: usize, head: usize, values: Values) -> Result<Sides<Vec<Reading>>, Failure> {
        let mut readings = vec![self.reading(values); base + head];
        if let Some(times) = &self.time {
            let times = times
                .of(base, head)
                .map_err(|fault| Failure::usage(fault, "separate the stretches of one file by spaces or commas"))?;
            for (reading, times) in readings.iter_mut().zip(times) {
                reading.times = Some(times.clone());
            }
        }
        let mut sides = Sides { head: readings.split_off(base), base: readings };
        for side in [&mut sides.base, &mut sides.head] {
            if let ([only], Values::Samples) = (&mut side[..], values) {
                // The only run of a side must itself show how much functions vary.
                only.sliced = true;
            }
        }
        Ok(sides)
    }

    /// Whether functions with another name on each side may be one: frames must be functions for that.
    pub(crate) fn pairs(&self) -> bool {
        !self.no_pairs && !self.stream && self.sort.is_none()
    }

    fn reading(&self, values: Values) -> Reading {
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
            values,
            sliced: false,
        }
    }
}
