//! Several runs at one store, whose answers are lost at random.

use std::collections::BTreeSet;
use std::fmt::{Display, Formatter};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_core::Stream;
use object_store::memory::InMemory;
use object_store::path::Path as Location;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMode,
    PutMultipartOptions, PutOptions, PutPayload, PutResult,
};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use serde_json::json;

use fleetdiff_schemas::time::Nanos;

use super::*;
use crate::checkpoints::{About, CheckpointFolder};
use crate::store::{Place, Store};

type Listed = Pin<Box<dyn Stream<Item = Result<ObjectMeta, Error>> + Send>>;
type Locations = Pin<Box<dyn Stream<Item = Result<Location, Error>> + Send>>;

/// A store in memory that does what it is asked for and may not say so, or does not do it.
#[derive(Debug)]
struct Unreliable {
    inner: Arc<InMemory>,
    draws: Mutex<Xoshiro256PlusPlus>,
    /// Of this many requests, one fails before it is done, and one after it; 0 for none.
    fails_one_in: u32,
    overwrites: bool,
    failed: AtomicU64,
}

impl Unreliable {
    fn over(inner: &Arc<InMemory>, seed: u64, fails_one_in: u32) -> Self {
        let draws = Mutex::new(Xoshiro256PlusPlus::seed_from_u64(seed));
        Self { inner: Arc::clone(inner), draws, fails_one_in, overwrites: false, failed: AtomicU64::new(0) }
    }

    fn fails(&self) -> Result<(), Error> {
        self.fails_in(self.fails_one_in)
    }

    fn fails_in(&self, one_in: u32) -> Result<(), Error> {
        let is_hit = one_in > 0 && self.draws.lock().unwrap().random_range(0..one_in) == 0;
        if !is_hit {
            return Ok(());
        }
        self.failed.fetch_add(1, Ordering::Relaxed);
        Err(Error::Generic { store: "unreliable", source: "no answer".into() })
    }
}

impl Display for Unreliable {
    fn fmt(&self, to: &mut Formatter<'_>) -> std::fmt::Result {
        to.write_str("unreliable")
    }
}

#[async_trait::async_trait]
impl ObjectStore for Unreliable {
    async fn put_opts(&self, at: &Location, bytes: PutPayload, mut options: PutOptions) -> Result<PutResult, Error> {
        self.fails()?;
        if self.overwrites {
            options.mode = PutMode::Overwrite;
        }
        let done = self.inner.put_opts(at, bytes, options).await?;
        self.fails()?;
        Ok(done)
    }

    async fn put_multipart_opts(
        &self,
        at: &Location,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>, Error> {
        self.fails()?;
        self.inner.put_multipart_opts(at, options).await
    }

    async fn get_opts(&self, at: &Location, options: GetOptions) -> Result<GetResult, Error> {
        // NB: more seldom. Whoever begins reads the whole log, which no run would do otherwise.
        self.fails_in(self.fails_one_in * 20)?;
        self.inner.get_opts(at, options).await
    }

    fn delete_stream(&self, at: Locations) -> Locations {
        self.inner.delete_stream(at)
    }

    fn list(&self, prefix: Option<&Location>) -> Listed {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Location>) -> Result<ListResult, Error> {
        self.fails()?;
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Location, to: &Location, options: CopyOptions) -> Result<(), Error> {
        self.inner.copy_opts(from, to, options).await
    }
}

fn reliable(inner: &Arc<InMemory>) -> Store {
    Store::of(Arc::<InMemory>::clone(inner), "s3://bucket/prefix".to_owned()).unwrap()
}

/// Tries again until the store answers, or belongs to another run: then nothing is given.
fn insist<T>(mut attempt: impl FnMut() -> Result<T, OutputError>) -> Option<T> {
    loop {
        match attempt() {
            Ok(done) => return Some(done),
            Err(error) if error.may_pass() => {}
            Err(error) => {
                assert_eq!(error.code(), "output_superseded", "{error}");
                return None;
            }
        }
    }
}

#[test]
fn the_next_run_knows_what_was_committed_and_the_older_one_ends_at_its_next_commit() {
    let inner = Arc::new(InMemory::new());
    let first = reliable(&inner);
    assert_eq!(first.commits().take().unwrap(), 1);
    first.commits().append("a", json!({"number": 1})).unwrap();
    first.commits().append("b", json!([2])).unwrap();

    let second = reliable(&inner);
    first.commits().append("a", json!("while the second one has read and not taken it")).unwrap();
    assert_eq!(second.commits().take().unwrap(), 2);
    assert_eq!(second.commits().take().unwrap(), 2, "it has it already");
    assert_eq!(second.commits().lines("a").len(), 2, "{:?}", second.commits().lines("a"));
    assert_eq!(second.commits().lines("b"), [json!([2])]);
    first.commits().check().unwrap();
    let ended = first.commits().append("a", json!("too late")).unwrap_err();
    assert_eq!(ended.code(), "output_superseded");
    let said = ended.to_string();
    let process = format!("process {}", std::process::id());
    assert!(["s3://bucket/prefix", "generation 2", &process].iter().all(|part| said.contains(part)), "{said}");
    assert!(first.commits().check().is_err() && first.commits().append("b", json!(1)).is_err());
    second.commits().append("a", json!("in time")).unwrap();
    let third = reliable(&inner);
    assert_eq!(third.commits().lines("a").last(), Some(&json!("in time")));
}

#[test]
fn a_store_that_overwrites_is_refused() {
    let inner = Arc::new(InMemory::new());
    let overwrites = Unreliable { overwrites: true, ..Unreliable::over(&inner, 0, 0) };
    let store = Store::of(Arc::new(overwrites), "careless".to_owned()).unwrap();
    let error = store.commits().take().unwrap_err();
    assert!(error.to_string().contains("If-None-Match"), "{error}");
}

#[test]
fn a_commit_that_is_something_else_is_named() {
    let inner = Arc::new(InMemory::new());
    let store = reliable(&inner);
    store.commits().take().unwrap();
    for (bytes, code) in [(&b"x"[..], "unreadable_output"), (br#"{"format":2}"#, "unreadable_output")] {
        store.folder().create_if_absent("commits/0000000002.json", Bytes::copy_from_slice(bytes)).unwrap();
        let error = Store::of(Arc::<InMemory>::clone(&inner), "s3://b".to_owned()).err().unwrap();
        assert!(error.code() == code && error.to_string().contains("s3://b/commits/0000000002.json"), "{error}");
        store.folder().remove("commits/0000000002.json").unwrap();
    }
}

#[test]
fn checkpoints_are_those_that_are_committed() {
    let inner = Arc::new(InMemory::new());
    let about = |minutes: i64| About::new(3, "{}".to_owned(), Nanos::from_seconds(60 * minutes));
    let objects = |inner: &Arc<InMemory>| reliable(inner).folder().names_in("checkpoints").unwrap();
    let (first, second) = (reliable(&inner), reliable(&inner));
    let of_first = CheckpointFolder::of(Place::Store(first.clone()));
    for minutes in [5, 10, 15] {
        of_first.write(&about(minutes), |to| to.write_all(&[7; 12_000_000])).unwrap();
        let found = of_first.last().unwrap().unwrap();
        assert_eq!(found.about, about(minutes));
        assert!(found.state().unwrap() == vec![7; 12_000_000]);
    }
    assert_eq!(objects(&inner), ["600-1.checkpoint", "900-1.checkpoint"]);
    // A run was ended before its commit, and a newer one is about to make its own.
    for name in ["1200-1.checkpoint", "1500-9.checkpoint"] {
        first.folder().upload(&format!("checkpoints/{name}"), &Bytes::from_static(b"x")).unwrap();
    }
    of_first.write(&about(20), |to| to.write_all(b"20")).unwrap();
    assert_eq!(objects(&inner), ["1200-1.checkpoint", "1500-9.checkpoint", "900-1.checkpoint"]);
    first.folder().remove("checkpoints/1500-9.checkpoint").unwrap();

    // It has read the log when none was there: three commits have been removed and made since.
    assert_eq!(second.commits().take().unwrap(), 2);
    let of_second = CheckpointFolder::of(Place::Store(second));
    let found = of_second.last().unwrap().unwrap();
    assert_eq!((found.about.clone(), found.state().unwrap()), (about(20), b"20".to_vec()));
    assert_eq!(of_first.write(&about(25), |to| to.write_all(b"25")).unwrap_err().code(), "output_superseded");
    assert_eq!(of_second.last_through().unwrap(), Some(about(20).through));
    of_second.write(&about(25), |to| to.write_all(b"of the second")).unwrap();
    assert_eq!(objects(&inner), ["1200-1.checkpoint", "1500-2.checkpoint"], "that of the first was never committed");
    assert_eq!(
        CheckpointFolder::of(Place::Store(reliable(&inner))).last().unwrap().unwrap().state().unwrap(),
        b"of the second"
    );
}

/// Runs that take a store from each other, in threads, while answers are lost.
#[test]
fn regression_whatever_answers_are_lost_no_run_commits_after_a_newer_one_has_taken_the_store() {
    let (mut ended, mut commits) = (0, 0);
    for seed in 0..40 {
        println!("seed {seed}");
        let inner = Arc::new(InMemory::new());
        let acknowledged: Vec<(u64, Vec<u64>)> = std::thread::scope(|scope| {
            let runs: Vec<_> = (0..4_u64)
                .map(|run| {
                    let objects = Unreliable::over(&inner, seed * 100 + run, 6);
                    scope.spawn(move || one_run(objects, run))
                })
                .collect();
            runs.into_iter().map(|run| run.join().unwrap()).collect()
        });

        let log = reliable(&inner);
        let read = |name: &String| -> Entry {
            serde_json::from_slice(&log.folder().read(&format!("{COMMITS}/{name}")).unwrap()).unwrap()
        };
        let entries: Vec<Entry> = log.folder().names_in(COMMITS).unwrap().iter().map(read).collect();
        // NB: of several attempts of a run to take the store, only the last is one.
        let is_taken = |at: usize, entry: &Entry| {
            let later = entries[at + 1..].iter();
            entry.commit == Commit::Taken && later.clone().all(|of| of.run != entry.run || of.commit != Commit::Taken)
        };
        let (mut newest, mut before) = (0, i64::MIN);
        let mut lines: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        for (at, entry) in entries.iter().enumerate() {
            if is_taken(at, entry) {
                newest = entry.generation;
            } else if entry.commit != Commit::Taken {
                assert_eq!(entry.generation, newest, "seed {seed}: {entry:?}");
            }
            match &entry.commit {
                Commit::Line { line, .. } => {
                    lines.entry(line["run"].as_u64().unwrap()).or_default().push(line["number"].as_u64().unwrap());
                }
                Commit::Rows { before: of } => before = before.max(*of),
                Commit::Taken | Commit::Checkpoint(_) => {}
            }
        }
        assert_eq!(log.commits().announced(), (before > i64::MIN).then_some(Nanos(before)));
        commits += entries.len();
        for (run, count) in acknowledged {
            ended += usize::from(count.len() < 30);
            let found = lines.remove(&run).unwrap_or_default();
            let missing: BTreeSet<u64> = count.iter().copied().collect();
            assert!(missing.iter().all(|number| found.iter().filter(|of| *of == number).count() == 1), "seed {seed}");
            assert!(found.is_sorted() && found.len() <= count.len() + 1, "seed {seed}: {found:?} of {count:?}");
        }
        if let Some(found) = CheckpointFolder::of(Place::Store(log)).last().unwrap() {
            let through = found.about.through.0.to_le_bytes();
            assert_eq!(through.as_slice(), found.state().unwrap(), "a checkpoint of another run");
        }
    }
    println!("{ended} of 160 runs were ended by another, {commits} commits");
    assert!(ended > 0);
}

/// Commits lines and checkpoints until another run has the store; gives the lines of which it knows that they are there.
fn one_run(objects: Unreliable, run: u64) -> (u64, Vec<u64>) {
    let objects: Arc<dyn ObjectStore> = Arc::new(objects);
    let store = insist(|| Store::of(Arc::clone(&objects), format!("run {run}"))).unwrap();
    let folder = CheckpointFolder::of(Place::Store(store.clone()));
    let mut acknowledged = Vec::new();
    for number in 0..30 {
        let line = json!({"run": run, "number": number});
        if insist(|| store.commits().append("log", line.clone())).is_none() {
            break;
        }
        acknowledged.push(number);
        let through = Nanos::from_seconds(60 * i64::try_from(100 * number + run).unwrap());
        if insist(|| store.commits().announce(through)).is_none() {
            break;
        }
        if number % 3 == 0 {
            // NB: a service does not try it again: what could not be written is left out.
            let written =
                folder.write(&About::new(3, String::new(), through), |to| to.write_all(&through.0.to_le_bytes()));
            match written {
                Err(error) if !error.may_pass() => break,
                _ => {}
            }
        }
    }
    (run, acknowledged)
}
