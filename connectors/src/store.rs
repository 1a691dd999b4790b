//! Where a service keeps what it writes: a local folder, or an object store that outlives the machine.
//!
//! In a store nothing is locked. Its [log of commits](commits) says whose it is: whoever takes it is its newest generation, and an
//! older one ends at its next commit. Everything else is created once under a name that depends on what it holds, or is named by a
//! commit, so that what an older one still writes until then harms nobody.

use std::fmt::{Display, Formatter};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use fleetdiff_schemas::time::Nanos;
use object_store::aws::{AmazonS3Builder, S3ConditionalPut};
use object_store::path::Path as Location;
use object_store::prefix::PrefixStore;
use object_store::{ClientOptions, ObjectStore, RetryConfig};
use tokio::runtime::{Builder, Runtime};

use crate::folder::Folder;
use crate::output::{OutputError, STORE_HINT};

pub mod commits;

use commits::Commits;

/// How long one request may take. A store that does not answer must be said to be unreachable before anybody wonders.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// For how long a request that failed is sent again; whoever writes decides whether it tries for longer.
const RETRY_FOR: Duration = Duration::from_secs(4);
/// How the address of a store begins.
const SCHEME: &str = "s3://";
/// The variables that name the server, first hit wins, as in the clients of others.
const ENDPOINTS: [&str; 3] = ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"];

/// Where a service keeps what it writes.
#[derive(Clone, Debug)]
pub enum Place {
    /// A local folder, which a lock protects.
    Folder(PathBuf),
    /// An object store.
    Store(Store),
}

impl Place {
    /// What a command is given to read: a folder, or the address of a store, which stays with whoever has it.
    ///
    /// # Errors
    /// [`OutputError::Unreadable`]: see [`Store::open`].
    pub fn to_read(name: &Path) -> Result<Self, OutputError> {
        let Some(address) = name.to_str().filter(|name| name.starts_with(SCHEME)) else { return Ok(Self::from(name)) };
        let address: StoreAddress = address.parse().map_err(|what: &str| OutputError::Unreadable {
            path: address.to_owned(),
            detail: what.to_owned(),
            hint: STORE_HINT,
        })?;
        Store::open(&address).map(Self::Store)
    }

    /// A part of it.
    pub(crate) fn below(&self, name: &str) -> Self {
        match self {
            Self::Folder(root) => Self::Folder(root.join(name)),
            Self::Store(store) => Self::Store(store.below(name)),
        }
    }

    /// Takes a store from whoever has it, and says so. A folder has a lock instead.
    ///
    /// # Errors
    /// See [`Commits::take`].
    pub fn take(&self) -> Result<(), OutputError> {
        if let Self::Store(store) = self {
            let generation = store.commits.take()?;
            tracing::info!(
                "{store} belongs to this run, its generation {generation}; an older one that still runs ends at its next commit"
            );
        }
        Ok(())
    }

    /// Makes sure that no newer run has taken the place, as far as this one knows.
    ///
    /// # Errors
    /// [`OutputError::Superseded`].
    pub fn check(&self) -> Result<(), OutputError> {
        match self {
            Self::Folder(_) => Ok(()),
            Self::Store(store) => store.commits.check(),
        }
    }

    /// The run is about to write rows of before this instant.
    ///
    /// # Errors
    /// See [`Commits::announce`].
    pub fn announce(&self, before: Nanos) -> Result<(), OutputError> {
        match self {
            Self::Folder(_) => Ok(()),
            Self::Store(store) => store.commits.announce(before),
        }
    }

    /// Before when another run may have written rows, or may be writing them still; nothing is known of a folder but its files.
    pub fn announced(&self) -> Option<Nanos> {
        match self {
            Self::Folder(_) => None,
            Self::Store(store) => store.commits.announced(),
        }
    }
}

impl Display for Place {
    fn fmt(&self, to: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Folder(root) => root.display().fmt(to),
            Self::Store(store) => store.fmt(to),
        }
    }
}

impl From<&Path> for Place {
    fn from(root: &Path) -> Self {
        Self::Folder(root.to_owned())
    }
}

impl From<&Place> for Place {
    fn from(place: &Place) -> Self {
        place.clone()
    }
}

/// The address of an object store: `s3://BUCKET/PREFIX`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreAddress {
    bucket: String,
    prefix: Location,
}

impl FromStr for StoreAddress {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const WHAT: &str = "must be s3://BUCKET or s3://BUCKET/PREFIX";
        let rest = text.strip_prefix(SCHEME).ok_or(WHAT)?;
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
        if bucket.is_empty() || !bucket.bytes().all(is_name) {
            return Err(WHAT);
        }
        Ok(Self { bucket: bucket.to_owned(), prefix: Location::parse(prefix).map_err(|_| WHAT)? })
    }
}

impl Display for StoreAddress {
    fn fmt(&self, to: &mut Formatter<'_>) -> std::fmt::Result {
        write!(to, "{SCHEME}{}", self.bucket)?;
        if self.prefix.as_ref().is_empty() { Ok(()) } else { write!(to, "/{}", self.prefix) }
    }
}

/// An object store, as far as it is below one prefix. Clones are handles to the same one.
#[derive(Clone)]
pub struct Store {
    objects: Arc<dyn ObjectStore>,
    /// NB: one for all of its clones. Connections are kept, and end with the runtime in which they began.
    runtime: Arc<Runtime>,
    /// How messages name it.
    shown: String,
    commits: Arc<Commits>,
}

impl Store {
    /// A store that speaks the protocol of Amazon S3. Server, region and credentials are those that the environment says in the
    /// variables of its other clients (`AWS_ENDPOINT_URL`, `AWS_REGION`, `AWS_ACCESS_KEY_ID` and so on), or that the machine has.
    ///
    /// Nobody is superseded by this alone: that is what [`Commits::take`] does.
    ///
    /// # Errors
    /// [`OutputError::Unreadable`]: it cannot be reached or read, or its log of commits is damaged.
    pub fn open(address: &StoreAddress) -> Result<Self, OutputError> {
        let endpoint = ENDPOINTS.iter().find_map(|name| std::env::var(name).ok());
        let is_plain = endpoint.as_deref().is_some_and(|endpoint| endpoint.starts_with("http://"));
        let client = ClientOptions::new()
            .with_timeout(REQUEST_TIMEOUT)
            .with_connect_timeout(CONNECT_TIMEOUT)
            .with_allow_http(is_plain);
        let builder = AmazonS3Builder::from_env()
            .with_bucket_name(&address.bucket)
            .with_client_options(client)
            .with_retry(RetryConfig { retry_timeout: RETRY_FOR, ..RetryConfig::default() })
            .with_conditional_put(S3ConditionalPut::ETagMatch);
        let builder = endpoint.into_iter().fold(builder, AmazonS3Builder::with_endpoint);
        let refused = |error: object_store::Error| OutputError::Unreadable {
            path: address.to_string(),
            detail: error.to_string(),
            hint: STORE_HINT,
        };
        let bucket = builder.build().map_err(refused)?;
        Self::of(Arc::new(PrefixStore::new(bucket, address.prefix.clone())), address.to_string())
    }

    /// Any store that can create an object only if it is absent; `shown` is how messages name it.
    ///
    /// # Errors
    /// See [`Store::open`].
    pub fn of(objects: Arc<dyn ObjectStore>, shown: String) -> Result<Self, OutputError> {
        let runtime = Builder::new_multi_thread().worker_threads(1).thread_name("store").enable_all().build();
        let runtime = runtime.map_err(|error| OutputError::Unreadable {
            path: shown.clone(),
            detail: error.to_string(),
            hint: STORE_HINT,
        })?;
        let runtime = Arc::new(runtime);
        let folder = Folder::of_store(Arc::clone(&objects), Arc::clone(&runtime), &shown);
        Ok(Self { objects, runtime, shown, commits: Arc::new(Commits::open(folder)?) })
    }

    /// What has been committed.
    pub fn commits(&self) -> &Commits {
        &self.commits
    }

    pub(crate) fn folder(&self) -> Folder {
        Folder::of_store(Arc::clone(&self.objects), Arc::clone(&self.runtime), &self.shown)
    }

    fn below(&self, name: &str) -> Self {
        let objects = PrefixStore::new(Arc::clone(&self.objects), name);
        Self { objects: Arc::new(objects), shown: format!("{}/{name}", self.shown), ..self.clone() }
    }
}

impl Display for Store {
    fn fmt(&self, to: &mut Formatter<'_>) -> std::fmt::Result {
        to.write_str(&self.shown)
    }
}

impl std::fmt::Debug for Store {
    fn fmt(&self, to: &mut Formatter<'_>) -> std::fmt::Result {
        to.write_str(&self.shown)
    }
}
