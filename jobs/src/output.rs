//! Writes rows to a folder or an object store, and alerts to a file or to a topic.

pub(crate) mod guidance;
pub(crate) mod keeper;
pub(crate) mod lines;
pub(crate) mod patience;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use fleetdiff_connectors::alerts::AlertLog;
use fleetdiff_connectors::archive::{Archive, Keeping};
use fleetdiff_connectors::crash::CrashPoint;
use fleetdiff_connectors::kafka::alerts::{AlertProducer, AlertSettings};
use fleetdiff_connectors::kafka::client::ClientSettings;
use fleetdiff_connectors::kafka::error::BrokerError;
use fleetdiff_connectors::lock::FolderLock;
use fleetdiff_connectors::output::OutputError;
use fleetdiff_connectors::parquet::{ParquetOutput, PendingRows};
use fleetdiff_connectors::receivers::Receivers;
use fleetdiff_connectors::store::Place;
use fleetdiff_schemas::alert::Alert;
use fleetdiff_schemas::rows::Tables;
use fleetdiff_schemas::sink::SinkError;
use fleetdiff_schemas::time::{Hop, HopClock, Nanos};
use serde::{Deserialize, Serialize};

use self::guidance::GuidanceLog;
use self::patience::Patience;
use crate::configuration::Configuration;

/// How long receivers may take at the end of a run for what waits.
pub(crate) const GRACE: Duration = Duration::from_secs(10);

/// What alerts are in the words of a wait.
const ALERTS: &str = "alerts";

/// Where alerts go.
pub(crate) enum AlertTarget {
    /// The file beside the tables.
    File(AlertLog),
    /// A topic.
    Topic(AlertProducer),
    /// Nowhere: these rows must not send alerts.
    Nowhere,
}

impl AlertTarget {
    /// The file in an output folder.
    pub(crate) fn file(root: &Path) -> Result<Self, OutputError> {
        AlertLog::create(root).map(Self::File)
    }

    /// A topic, whose brokers are not waited for long once `stop` is set.
    pub(crate) fn topic(
        client: &ClientSettings,
        settings: AlertSettings<'_>,
        stop: &Arc<AtomicBool>,
    ) -> Result<Self, BrokerError> {
        AlertProducer::open_ending_on(client, settings, Arc::clone(stop)).map(Self::Topic)
    }

    /// The time of the latest alert that an earlier run has put there.
    pub(crate) fn through(&self) -> Option<Nanos> {
        match self {
            Self::File(log) => log.through(),
            Self::Topic(producer) => producer.through(),
            Self::Nowhere => None,
        }
    }

    /// They are on disk, or acknowledged by the brokers, when it returns. Gives how many are new there.
    fn take(&mut self, alerts: &[Alert], patience: &Patience) -> Result<usize, SinkError> {
        match self {
            Self::File(log) => Ok(patience.insist(ALERTS, || log.append(alerts)).map(|()| alerts.len())?),
            Self::Topic(producer) => Ok(patience.insist(ALERTS, || producer.send(alerts))?),
            Self::Nowhere => Ok(0),
        }
    }

    fn finish(self) -> Result<(), OutputError> {
        match self {
            Self::File(log) => log.finish(),
            Self::Topic(_) | Self::Nowhere => Ok(()),
        }
    }
}

/// What left the program at the close of a hop.
#[derive(Debug)]
pub(crate) struct Sent {
    /// Files that are on disk now.
    pub(crate) files: usize,
    /// Their rows, as they came.
    pub(crate) rows: Vec<Tables>,
    /// Alerts.
    pub(crate) alerts: usize,
}

/// What another run must know of an output to go on with it.
#[derive(Serialize, Deserialize)]
struct Saved {
    /// Rows that wait for the end of their interval.
    waiting: Vec<Tables>,
    /// Where the file of alerts was, if there is one.
    alerts: Option<(usize, u64)>,
}

/// The output of a run, hop by hop.
pub(crate) struct Output {
    /// Held until the run has ended.
    _lock: FolderLock,
    place: Place,
    parquet: ParquetOutput,
    archive: Option<Archive>,
    pending: PendingRows,
    /// The end of the last hop that was taken.
    taken_through: Option<Nanos>,
    /// The end of what an earlier run wrote: until then, rows are compared, and no alert is sent before they are found equal.
    written_through: Option<Nanos>,
    /// Alerts of these hops, by the end of their hop.
    held: Vec<(Nanos, Vec<Alert>)>,
    alerts: AlertTarget,
    guidance: GuidanceLog,
    receivers: Receivers,
    patience: Patience,
}

impl Output {
    /// Tables in the folder of this lock, one file for each `flush` of event time; `configuration` is JSON and goes into every file.
    /// Alerts go nowhere, and have no owner, runbook or link.
    ///
    /// No other run can write into the folder until this one has ended.
    pub(crate) fn create(lock: FolderLock, configuration: String, flush: Duration) -> Result<Self, OutputError> {
        Self::create_in(lock.root().into(), lock, configuration, flush)
    }

    /// The same with tables in another place, which is taken from whoever has it.
    pub(crate) fn create_in(
        place: Place,
        lock: FolderLock,
        configuration: String,
        flush: Duration,
    ) -> Result<Self, OutputError> {
        let parquet = ParquetOutput::create(&place, configuration, flush)?;
        parquet.refuse_other_settings()?;
        // NB: in this order. Whoever has the store until then may write what it has announced.
        place.take()?;
        Ok(Self {
            _lock: lock,
            pending: PendingRows::new(parquet.interval()),
            written_through: parquet.written_through()?.max(place.announced()),
            place,
            parquet,
            archive: None,
            taken_through: None,
            held: Vec::new(),
            alerts: AlertTarget::Nowhere,
            guidance: GuidanceLog::default(),
            receivers: Receivers::default(),
            patience: Patience::none(),
        })
    }

    /// The first hop of which nothing has left an earlier run: it may not have written all rows, and has sent no alert. Hop 0 in an empty
    /// folder.
    pub(crate) fn decided_before(&self, clock: HopClock) -> Hop {
        // NB: alerts are sent at the close of their hop, long before the file of its rows is written.
        let left = self.written_through.max(self.alerts.through());
        left.map_or(Hop(0), |end| clock.hop_of(Nanos(end.0.saturating_sub(1))).plus(1))
    }

    /// The same with the archive of what was counted, if the configuration asks for one.
    pub(crate) fn archived(self, configuration: &Configuration, as_json: String) -> Result<Self, OutputError> {
        let config = configuration.dataflow();
        let keeping = Keeping { age: configuration.archive.keep, bytes: configuration.archive.max_bytes };
        let open = || Archive::open(&self.place, as_json, config.clock(), keeping);
        let archive = config.archive.then(open).transpose()?;
        Ok(Self { archive, ..self })
    }

    /// The same with alerts.
    pub(crate) fn alerting(self, alerts: AlertTarget) -> Self {
        Self { alerts, ..self }
    }

    /// The same with what the configuration adds to alerts.
    pub(crate) fn guided(self, guidance: GuidanceLog) -> Self {
        Self { guidance, ..self }
    }

    /// The same with receivers, who get alerts after the file or topic has them.
    pub(crate) fn announced_to(self, receivers: Receivers) -> Self {
        Self { receivers, ..self }
    }

    /// The same that waits for room on the disk, and for brokers.
    pub(crate) fn patient(self, patience: Patience) -> Self {
        Self { patience, ..self }
    }

    /// Takes the rows of the next hop; writes complete files and sends alerts about changes.
    pub(crate) fn take(&mut self, hop: Hop, clock: HopClock, mut tables: Tables) -> Result<Sent, SinkError> {
        self.place.check()?;
        let end = clock.end_of(hop);
        let archived = std::mem::take(&mut tables.archived);
        if let Some(archive) = &mut self.archive {
            self.patience.insist("the archive", || {
                if !archived.is_empty() {
                    self.place.announce(end)?;
                }
                archive.take(hop, &archived)
            })?;
        }
        let guidance = &*self.guidance.at(end);
        let incidents = tables.incidents.iter().map(|row| Alert::of_incident(row, guidance));
        let verdicts = tables.verdicts.iter().map(|row| Alert::of_verdict(row, guidance));
        let findings = tables.scaling_findings.iter().map(|row| Alert::of_scaling(row, guidance));
        let heap = tables.heap_findings.iter().map(|row| Alert::of_heap(row, guidance));
        let mut alerts = incidents.chain(findings).chain(heap).chain(verdicts).collect::<Result<Vec<_>, _>>()?;
        alerts.sort_by(|a, b| (a.sequence, &a.key).cmp(&(b.sequence, &b.key)));
        self.pending.push(tables);
        let rows = self.pending.take_complete(end);
        let files = self.write(&rows, end)?;
        self.taken_through = Some(end);
        self.held.push((end, alerts));
        let is_new = self.written_through.is_none_or(|through| end >= through);
        let alerts = if is_new { self.send_held()? } else { 0 };
        if files > 0 {
            CrashPoint::IntervalDone.reached();
        }
        Ok(Sent { files, rows, alerts })
    }

    /// Writes rows of complete intervals, all of before this instant; gives the number of files.
    fn write(&mut self, rows: &[Tables], before: Nanos) -> Result<usize, OutputError> {
        let write = || {
            if !rows.is_empty() {
                self.place.announce(before)?;
            }
            self.parquet.write(rows)
        };
        self.patience.insist("tables", write).map(|written| written.files.len())
    }

    /// Sends what is held; gives how many alerts that is.
    fn send_held(&mut self) -> Result<usize, SinkError> {
        let mut sent = 0;
        for (end, alerts) in std::mem::take(&mut self.held) {
            sent += self.alerts.take(&alerts, &self.patience)?;
            self.receivers.offer(&alerts, end);
        }
        Ok(sent)
    }

    /// Writes the files that are complete, given that all rows of hops that end at or before `through` were taken, and gives what a run
    /// must know to go on from there. `None` as long as rows are compared with those of an earlier run.
    pub(crate) fn save(&mut self, through: Nanos) -> Result<(Sent, Option<Vec<u8>>), SinkError> {
        let rows = self.pending.take_complete(through);
        let files = self.write(&rows, through)?;
        let alerts = match &self.alerts {
            AlertTarget::File(log) => Some(log.position()),
            AlertTarget::Topic(_) | AlertTarget::Nowhere => None,
        };
        let saved = Saved { waiting: self.pending.waiting().to_vec(), alerts };
        let saved = self.held.is_empty().then(|| postcard::to_stdvec(&saved)).transpose()?;
        Ok((Sent { files, rows, alerts: 0 }, saved))
    }

    /// Goes on with what was saved.
    pub(crate) fn resume(&mut self, saved: &[u8]) -> Result<(), SinkError> {
        let Saved { waiting, alerts } = postcard::from_bytes(saved)?;
        waiting.into_iter().for_each(|rows| self.pending.push(rows));
        self.parquet.go_on();
        if let (AlertTarget::File(log), Some(position)) = (&mut self.alerts, alerts) {
            log.go_on_at(position)?;
        }
        Ok(())
    }

    /// Writes the rows that wait for the end of their interval, and gives them.
    pub(crate) fn finish(mut self) -> Result<Vec<Tables>, SinkError> {
        let rows = self.pending.take_all();
        self.write(&rows, self.taken_through.unwrap_or(Nanos(0)))?;
        self.send_held()?;
        self.alerts.finish()?;
        Ok(rows)
    }
}
