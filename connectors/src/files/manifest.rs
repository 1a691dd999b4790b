//! `manifest.jsonl`: one line per profile file, with the pod and the time of the profile.
//!
//! A wrong line becomes a rejection with the line's number; unknown keys are ignored. A file of records that carry
//! their own identities (`"format": "otlp"`) needs only a time, for its place in the order of reading.

use std::collections::BTreeMap;
use std::path::{Component, Path};
use std::sync::Arc;

use fleetdiff_formats::attributes::names_thread;
use fleetdiff_formats::{Format, Labels, Period, Unit, format_of};
use fleetdiff_schemas::identity::{Build, Cohort, Hardware, Identity, NodeId, PodId, Region, Service};
use fleetdiff_schemas::profile::{ProfileType, Temporality};
use fleetdiff_schemas::rejected::{Reason, Rejection};
use fleetdiff_schemas::time::{Nanos, TimeRange};
use serde_json::{Map, Value};

/// Name of the manifest in the folder.
pub(super) const MANIFEST: &str = "manifest.jsonl";

/// How far a profile may end after every profile of every other pod: 1 h.
const FUTURE: Nanos = Nanos::from_seconds(3_600);

/// How far profiles of a single pod may lie before everything else, if nothing lies between: 6 h, as long as an epoch by default.
const PAST: Nanos = Nanos::from_seconds(6 * 3_600);

/// One line of a manifest.
#[derive(Clone, Debug)]
pub(super) struct ManifestLine {
    /// Counted from 1.
    pub(super) number: i64,
    /// Place in the order of reading: the end of the profile, or that of the previous line if this line names none.
    pub(super) ends: Nanos,
    /// The file that it names.
    pub(super) file: Option<Arc<str>>,
    /// What was observed, if the line says so.
    pub(super) profile_type: Option<ProfileType>,
    /// What is deployed, if the line says so.
    pub(super) service: Option<Service>,
    /// What is deployed of it, if the line says so.
    pub(super) build: Option<Build>,
    /// What it says about the file, or what is wrong with it.
    pub(super) entry: Result<ProfileFile, Rejection>,
}

/// What a line says about its file.
#[derive(Clone, Debug)]
pub(super) struct ProfileFile {
    /// What the line says about the profile, or that the file says it itself.
    pub(super) labels: Result<Labels, Rejection>,
    /// When it was taken.
    pub(super) window: TimeRange,
    pub(super) file: Arc<str>,
    /// `None`: recognized by the file's name and bytes.
    pub(super) format: Option<Format>,
}

impl ManifestLine {
    /// Whether the file's profiles carry their own identities, whatever the line says.
    pub(super) fn is_of_records(&self) -> bool {
        // NB: records are recognized by the name of their file alone.
        self.entry
            .as_ref()
            .is_ok_and(|entry| entry.format.unwrap_or_else(|| format_of(&entry.file, b"")) == Format::Otlp)
    }
}

impl ProfileFile {
    /// A rejection of this file, with what is known about it.
    pub(super) fn rejection(&self, reason: Reason, detail: String) -> Rejection {
        match &self.labels {
            Ok(labels) => labels.rejection(reason, detail),
            Err(_) => Rejection { at: Some(self.window.midpoint()), ..Rejection::new(reason, detail) },
        }
    }
}

/// Reads lines one after the other; equal identities are shared.
#[derive(Default)]
pub(super) struct ManifestLines {
    identities: BTreeMap<Identity, Arc<Identity>>,
    lines: Vec<ManifestLine>,
    number: i64,
}

impl ManifestLines {
    /// Takes the next line of the file, without its line end.
    pub(super) fn push(&mut self, text: &[u8]) {
        self.number += 1;
        if text.trim_ascii().is_empty() {
            return;
        }
        let before = self.lines.last().map_or(Nanos(i64::MIN), |line| line.ends);
        let number = self.number;
        let mut line = ManifestLine {
            number,
            ends: before,
            file: None,
            profile_type: None,
            service: None,
            build: None,
            entry: Err(not_an_object("")),
        };
        line.entry = match serde_json::from_slice(text) {
            Ok(Value::Object(keys)) => self.entry(&Keys(&keys), &mut line),
            Ok(_) => Err(not_an_object("")),
            Err(error) => Err(not_an_object(&format!(": {error}"))),
        };
        line.entry =
            line.entry.map_err(|fault| Rejection { detail: format!("line {number}: {}", fault.detail), ..fault });
        self.lines.push(line);
    }

    /// All lines in the order of reading: by end, then by number. Lines whose time is far from that of every other pod
    /// are refused.
    pub(super) fn finish(mut self) -> Vec<ManifestLine> {
        refuse_future(&mut self.lines);
        refuse_past(&mut self.lines);
        self.lines.sort_by_key(|line| (line.ends, line.number));
        self.lines.shrink_to_fit();
        self.lines
    }

    /// Reads the keys in an order that keeps as much as possible known about a bad line.
    fn entry(&mut self, keys: &Keys<'_>, line: &mut ManifestLine) -> Result<ProfileFile, Rejection> {
        line.file = keys.text("file").ok().flatten().map(Arc::from);
        line.service = keys.text("service").ok().flatten().map(Service::from);
        line.build = keys.text("build").ok().flatten().map(Build::from);
        line.profile_type = keys.text("profile_type").ok().flatten().and_then(|name| name.parse().ok());
        let window = keys.window("start_unix_nano", "end_unix_nano");
        let at = window.as_ref().ok().copied().flatten();
        line.ends = at.map_or(line.ends, |window| window.end);
        let entry = self.described(keys, window);
        if let Ok(ProfileFile { file, labels, .. }) = &entry {
            // A manifest may have a million lines: they share their texts.
            line.file = Some(Arc::clone(file));
            if let Ok(Labels { identity, .. }) = labels {
                line.service = Some(identity.service.clone());
                line.build = Some(identity.build.clone());
            }
        }
        entry.map_err(|fault| Rejection { profile_type: line.profile_type, at: at.map(TimeRange::midpoint), ..fault })
    }

    fn described(
        &mut self,
        keys: &Keys<'_>,
        window: Result<Option<TimeRange>, Rejection>,
    ) -> Result<ProfileFile, Rejection> {
        let format = declared_format(keys);
        let timed = |window: Result<Option<TimeRange>, Rejection>| {
            window?.ok_or_else(|| malformed("start_unix_nano and end_unix_nano are missing"))
        };
        if format == Ok(Some(Format::Otlp)) {
            // Records say whose their profiles are; the identity of the line, if it has a whole one, is of those that do not.
            let window = timed(window)?;
            let labels = self.labels(keys, || Ok(window)).map(|(labels, _)| labels).map_err(|_| {
                let detail = "the manifest does not say whose the profiles of a file of records are";
                Rejection::new(Reason::MissingIdentity, detail)
            });
            return Ok(ProfileFile { labels, window, file: file_of(keys)?, format: format? });
        }
        let (labels, window) = self.labels(keys, || timed(window))?;
        Ok(ProfileFile { labels: Ok(labels), window, file: file_of(keys)?, format: format? })
    }

    fn labels(
        &mut self,
        keys: &Keys<'_>,
        window: impl FnOnce() -> Result<TimeRange, Rejection>,
    ) -> Result<(Labels, TimeRange), Rejection> {
        let identity = identity_of(keys)?;
        let identity = match self.identities.get(&identity) {
            Some(known) => Arc::clone(known),
            None => Arc::clone(self.identities.entry(identity.clone()).or_insert_with(|| Arc::new(identity))),
        };
        let window = window()?;
        let profile_type = keys.text("profile_type")?.ok_or_else(|| malformed("profile_type is missing"))?;
        let labels = Labels {
            identity,
            profile_type: profile_type.parse().map_err(|detail: String| unsupported(&detail))?,
            temporality: temporality_of(keys)?,
            window: Some(window),
            sent_at: None,
            requests: keys.count("requests")?,
            requests_window: keys.window("requests_start_unix_nano", "requests_end_unix_nano")?,
            unit: unit_of(keys)?,
            period: period_of(keys)?,
            root_is_thread: root_is_thread(keys)?,
        };
        Ok((labels, window))
    }
}

/// The keys of a line; `null` means absent.
struct Keys<'a>(&'a Map<String, Value>);

impl<'a> Keys<'a> {
    fn get(&self, key: &str) -> Option<&'a Value> {
        self.0.get(key).filter(|value| !value.is_null())
    }

    fn text(&self, key: &str) -> Result<Option<&'a str>, Rejection> {
        let Some(value) = self.get(key) else { return Ok(None) };
        value.as_str().map(Some).ok_or_else(|| malformed(&format!("{key} is {value}, expected text")))
    }

    fn whole(&self, key: &str) -> Result<Option<i64>, Rejection> {
        let Some(value) = self.get(key) else { return Ok(None) };
        value.as_i64().map(Some).ok_or_else(|| malformed(&format!("{key} is {value}, expected a whole number")))
    }

    fn count(&self, key: &str) -> Result<Option<u64>, Rejection> {
        let Some(count) = self.whole(key)? else { return Ok(None) };
        let negative = |_| Rejection::new(Reason::NegativeValue, format!("{key} is {count}"));
        u64::try_from(count).map(Some).map_err(negative)
    }

    fn window(&self, start: &str, end: &str) -> Result<Option<TimeRange>, Rejection> {
        match (self.whole(start)?, self.whole(end)?) {
            (None, None) => Ok(None),
            (Some(from), Some(to)) if from <= to => Ok(Some(TimeRange { start: Nanos(from), end: Nanos(to) })),
            (Some(from), Some(to)) => Err(malformed(&format!("{end} ({to}) lies before {start} ({from})"))),
            (Some(_), None) => Err(malformed(&format!("{start} without {end}"))),
            (None, Some(_)) => Err(malformed(&format!("{end} without {start}"))),
        }
    }
}

fn identity_of(keys: &Keys<'_>) -> Result<Identity, Rejection> {
    const NAMES: [&str; 6] = ["service", "build", "region", "cohort", "hardware", "pod"];
    let mut found = [""; 6];
    for (value, name) in found.iter_mut().zip(NAMES) {
        *value = keys.text(name)?.unwrap_or_default();
    }
    let missing: Vec<&str> =
        NAMES.into_iter().zip(found).filter(|(_, value)| value.is_empty()).map(|(name, _)| name).collect();
    if !missing.is_empty() {
        return Err(Rejection::new(Reason::MissingIdentity, format!("{} missing or empty", missing.join(", "))));
    }
    let [service, build, region, cohort, hardware, pod] = found;
    Ok(Identity {
        service: Service::from(service),
        build: Build::from(build),
        region: Region::from(region),
        cohort: Cohort::from(cohort),
        hardware: Hardware::from(hardware),
        node: keys.text("node")?.filter(|node| !node.is_empty()).map(NodeId::from),
        pod: PodId::from(pod),
        process_start: keys.whole("process_start_unix_nano")?.map(Nanos),
    })
}

/// The file, which must lie within the folder.
fn file_of(keys: &Keys<'_>) -> Result<Arc<str>, Rejection> {
    let file = keys.text("file")?.filter(|file| !file.is_empty()).ok_or_else(|| malformed("file is missing"))?;
    let within = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
    if Path::new(file).components().all(within) {
        Ok(file.into())
    } else {
        Err(malformed(&format!("file {file:?} lies outside the fleet's folder")))
    }
}

fn declared_format(keys: &Keys<'_>) -> Result<Option<Format>, Rejection> {
    match keys.text("format")? {
        None => Ok(None),
        // A delta carries its own identities, which a line of the manifest would contradict.
        Some("delta") => Err(unsupported("format \"delta\" is read from topics, not from files")),
        Some(name) => name.parse().map(Some).map_err(|detail: String| unsupported(&detail)),
    }
}

fn temporality_of(keys: &Keys<'_>) -> Result<Temporality, Rejection> {
    let temporality = keys.text("temporality")?.map_or(Ok(Temporality::Delta), str::parse);
    temporality.map_err(|detail: String| unsupported(&format!("temporality {detail}")))
}

fn unit_of(keys: &Keys<'_>) -> Result<Option<Unit>, Rejection> {
    let unit = keys.text("unit")?.map(str::parse).transpose();
    unit.map_err(|detail: String| Rejection::new(Reason::UnitMismatch, detail))
}

fn period_of(keys: &Keys<'_>) -> Result<Option<Period>, Rejection> {
    let period = keys.text("period")?.map(str::parse).transpose();
    period.map_err(|detail: String| Rejection::new(Reason::UnitMismatch, detail))
}

fn root_is_thread(keys: &Keys<'_>) -> Result<bool, Rejection> {
    let is_thread = keys.text("first_frame")?.map_or(Ok(false), names_thread);
    is_thread.map_err(|detail| malformed(&format!("first_frame is {detail}")))
}

/// Refuses lines that end more than [`FUTURE`] after every profile of every other pod: their clock is wrong and would
/// move the watermark past all other pods. A fleet of a single pod has nothing to compare with, and the pods of a file
/// of records are not known here.
fn refuse_future(lines: &mut [ManifestLine]) {
    let mut last: BTreeMap<(Service, PodId), Nanos> = BTreeMap::new();
    for line in lines.iter() {
        if let Some(pod) = pod_of(line) {
            let ends = last.entry(pod).or_insert(line.ends);
            *ends = line.ends.max(*ends);
        }
    }
    let mut latest: Vec<((Service, PodId), Nanos)> = last.into_iter().collect();
    latest.sort_by_key(|(_, ends)| std::cmp::Reverse(*ends));
    let [first, second, ..] = latest.as_slice() else { return };
    for line in lines.iter_mut() {
        let (Some(pod), Ok(entry)) = (pod_of(line), &line.entry) else { continue };
        let others = if pod == first.0 { second.1 } else { first.1 };
        let ahead = line.ends.since(others);
        if ahead > FUTURE {
            let detail = format!(
                "line {}: ends {} s after every profile of every other pod",
                line.number,
                ahead.0 / 1_000_000_000
            );
            line.entry = Err(entry.rejection(Reason::FromFuture, detail));
        }
    }
}

/// Refuses the lines before a gap of more than [`PAST`] if they are all of one pod, and other pods have lines after it: their clock
/// is wrong, and would open the fleet's first hop years before the others. What several pods recorded before a silence is kept, and
/// so is what a pod recorded alone without such a gap. A refused line has no time, so that it is booked where the fleet begins.
fn refuse_past(lines: &mut [ManifestLine]) {
    let mut by_end: Vec<usize> = (0..lines.len()).filter(|&place| lines[place].entry.is_ok()).collect();
    by_end.sort_by_key(|&place| lines[place].ends);
    let mut rest = by_end.as_slice();
    while let Some(gap) = rest.windows(2).position(|pair| lines[pair[1]].ends.since(lines[pair[0]].ends) > PAST) {
        let (before, after) = rest.split_at(gap + 1);
        // NB: the pods of a file of records are not known here: it may be of several.
        let Some(pod) = pod_of(&lines[before[0]]) else { return };
        let is_its = |&place: &usize| pod_of(&lines[place]).as_ref() == Some(&pod);
        if !before.iter().all(is_its) || after.iter().all(is_its) {
            return;
        }
        let next = lines[after[0]].ends;
        for &place in before {
            let line = &mut lines[place];
            let Ok(entry) = &line.entry else { continue };
            let behind = next.since(line.ends).0 / 1_000_000_000;
            let detail =
                format!("line {}: ends at least {behind} s before every profile of every other pod", line.number);
            line.entry = Err(Rejection { at: None, ..entry.rejection(Reason::FromPast, detail) });
        }
        rest = after;
    }
}

/// The pod of a good line, if the line names it.
fn pod_of(line: &ManifestLine) -> Option<(Service, PodId)> {
    let labels = line.entry.as_ref().ok()?.labels.as_ref().ok()?;
    Some((labels.identity.service.clone(), labels.identity.pod.clone()))
}

fn not_an_object(what: &str) -> Rejection {
    malformed(&format!("not a JSON object{what}"))
}

fn malformed(what: &str) -> Rejection {
    Rejection::new(Reason::Malformed, what)
}

fn unsupported(what: &str) -> Rejection {
    Rejection::new(Reason::UnsupportedType, what)
}
