//! The slow batch truth: computes all tables from all records at once, in the simplest way.
//!
//! The law that it checks: whatever the number of workers, the batching or the arrival order, the dataflow writes the
//! same rows as the oracle. Both implement `docs/semantics.md` and share only the types of `fleetdiff_schemas` and the
//! configuration. Nothing here is incremental or clever, and each look sums all counted samples again. Modules follow
//! the page: records to counted samples ([`admission`], [`clocks`], [`snapshots`], sections 1 and 2), one service's hops
//! ([`timeline`], 3), whose samples ([`counts`], 4), evidence and columns ([`arms`], [`rates`], [`evidence`], [`row`], [`requests`],
//! [`pods`], 5), reports ([`report`], [`aa_check`], 6 and 7) with the counts behind them ([`behind`], 16), flags ([`family`], [`live`], 8) with what they hold ([`held`], [`holding`], 14), verdicts ([`verdicts`],
//! 9), causes ([`causes`], [`explained`], 11), bases that are history ([`history`], 13), costs under load ([`scaling`], 17), memory ([`mod@heap`], 19), waiting
//! ([`waiting`], 20), stacks ([`mod@stacks`], 21). [`compare`] compares two
//! results.
//!
//! For test fleets only: memory and time grow with looks x samples.

mod aa_check;
mod admission;
mod agreement;
mod arms;
mod behind;
mod causes;
mod clocks;
mod counts;
mod evidence;
mod explained;
mod family;
mod heap;
mod held;
mod history;
mod holding;
mod idle;
mod imbalance;
mod limits;
mod live;
mod loads;
mod moved;
mod pods;
mod rates;
mod report;
mod requests;
mod rings;
mod row;
mod scaling;
mod snapshots;
mod stacks;
pub mod statistics;
mod timeline;
mod verdicts;
mod waiting;

pub use self::agreement::{Agreement, compare};

use std::collections::BTreeSet;

use fleetdiff_schemas::config::{Config, LimitsByHop};
use fleetdiff_schemas::identity::Service;
use fleetdiff_schemas::profile::{Decoded, Profile};
use fleetdiff_schemas::rows::Tables;
use fleetdiff_schemas::time::Hop;

use self::aa_check::{Checked, at_report};
use self::admission::{Admitted, Counted, Served, admit};
use self::counts::Archive;
use self::family::{Live, LookAt};
use self::history::against_history;
use self::imbalance::Warnings;
use self::report::Report;
use self::timeline::{Moment, Open, walk};

/// All tables of a run, sorted: `partitions` holds the records of each partition in the partition's own order.
///
/// The order of the partitions does not matter. `sentence` is left empty.
pub fn batch(config: &Config, partitions: &[Vec<Decoded>]) -> Tables {
    batch_with_limits(config, &LimitsByHop::new(config.limits), partitions)
}

/// [`batch`] with limits that change.
pub fn batch_with_limits(config: &Config, limits: &LimitsByHop, partitions: &[Vec<Decoded>]) -> Tables {
    let mut admitted = admit(config, partitions);
    let mut tables = Tables {
        ledger: std::mem::take(&mut admitted.ledger),
        rejected: std::mem::take(&mut admitted.rejected),
        clocks: std::mem::take(&mut admitted.clocks),
        ..Tables::default()
    };
    let services: BTreeSet<&Service> = admitted.counted.iter().map(|one| &one.profile.identity.service).collect();
    for service in services {
        let within = within_limits((config, limits), &admitted, service, &mut tables);
        for_service(config, within, service, admitted.last.unwrap_or_default(), &mut tables);
    }
    tables.sort();
    tables
}

/// What was counted of a service, within its limits.
fn within_limits(
    limits: (&Config, &LimitsByHop),
    admitted: &Admitted,
    service: &Service,
    tables: &mut Tables,
) -> (Vec<Counted>, Vec<Served>) {
    let of_service = |profile: &Profile| profile.identity.service == *service;
    let mut counted: Vec<Counted> = admitted.counted.iter().filter(|one| of_service(&one.profile)).cloned().collect();
    let mut served: Vec<Served> = admitted.served.iter().filter(|one| of_service(&one.profile)).cloned().collect();
    tables.limits.extend(limits::keep_within(limits, service, &mut counted, &mut served));
    (counted, served)
}

/// Rows of one service, hop by hop.
fn for_service(
    config: &Config,
    (counted, served): (Vec<Counted>, Vec<Served>),
    service: &Service,
    last: Hop,
    tables: &mut Tables,
) {
    let (counted, served): (Vec<&Counted>, Vec<&Served>) = (counted.iter().collect(), served.iter().collect());
    let timeline = walk(config, &counted, last);
    let archive = Archive::new(config, &timeline, &counted, &served);
    let mut families: Vec<(Open, Live)> = Vec::new();
    for moment in &timeline.moments {
        let same = |a: &Open, b: &Open| a.opened == b.opened && a.base == b.base && a.head == b.head;
        for (_, family) in families.extract_if(.., |(open, _)| moment.closed.iter().any(|closed| same(closed, open))) {
            tables.flags.extend(family.close(config, moment.hop));
        }
        let before = tables.cells.len();
        for open in &moment.open {
            if !families.iter().any(|(known, _)| same(known, open)) {
                families.push((open.clone(), Live::new(service, open)));
            }
            let Some((_, live)) = families.iter_mut().find(|(known, _)| same(known, open)) else { continue };
            let imbalance =
                if moment.report { imbalance::at_report(config, &archive, open, moment.hop) } else { Warnings::new() };
            if moment.look {
                let checked =
                    if moment.report { at_report(config, &archive, open, moment.hop) } else { Checked::new() };
                let at = LookAt {
                    config,
                    archive: &archive,
                    blocks: &timeline.blocks,
                    open,
                    hop: moment.hop,
                    report: moment.report,
                    checked: &checked,
                    imbalance: &imbalance,
                };
                let (flags, comparisons) = live.look(&at);
                tables.flags.extend(flags);
                tables.comparisons.extend(comparisons);
            }
            if moment.report {
                live.doubt(&imbalance);
                let report =
                    Report { config, archive: &archive, open, live, hop: moment.hop, against_history: false }.rows();
                live.report(config, moment.hop, &report.cells);
                tables.stacks.extend(stacks::rows(config, &archive, open, live, moment.hop));
                tables.heap.extend(heap::rows(config, &archive, service, open, moment.hop));
                tables.waiting.extend(waiting::rows(config, &archive, service, open, moment.hop));
                tables.cells.extend(report.cells);
                tables.evidence.extend(report.evidence);
            }
        }
        if moment.due {
            let scaling = scaling::rows(config, &archive, service, &moment.open, moment.hop);
            tables.load_curves.extend(scaling::curves::rows(config, &archive, &moment.open, &scaling, moment.hop));
            tables.scaling.extend(scaling);
        }
        if moment.report {
            tables.rings.extend(rings::rows(&moment.rings, &tables.cells[before..]));
        }
        if moment.report {
            for_history(config, &archive, service, moment, tables);
        }
    }
}

/// Rows of a report about builds that have no base but history.
fn for_history(config: &Config, archive: &Archive, service: &Service, moment: &Moment, tables: &mut Tables) {
    for history in &moment.history {
        let (reported, comparisons) = against_history(config, archive, service, history, moment.hop);
        tables.cells.extend(reported.cells);
        tables.evidence.extend(reported.evidence);
        tables.comparisons.extend(comparisons);
    }
}
