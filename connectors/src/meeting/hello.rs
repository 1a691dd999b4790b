//! What two processes say when one connects to the other.

use std::io::{self, Read, Write};
use std::net::TcpStream;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::{PATIENCE, Party, proof};

/// With what each connection begins: the words of this meeting and their version.
const WORDS: &str = "fleetdiff processes 1";
/// Most bytes of what is said here.
const MOST_BYTES: u32 = 256 * 1024;

/// For what a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Purpose {
    /// Questions and answers of the first process.
    Control,
    /// Records, in the meeting that has this number.
    Data { meeting: u64 },
}

/// What the process that connects says first.
#[derive(Debug, Serialize, Deserialize)]
struct Hello {
    words: String,
    program: String,
    purpose: Purpose,
    from: usize,
    to: usize,
    processes: usize,
    workers: usize,
    settings: String,
    /// So that no answer can be one that was heard before.
    nonce: [u8; 32],
}

/// What the other one answers, before it believes anything.
#[derive(Debug, Serialize, Deserialize)]
struct Challenge {
    nonce: [u8; 32],
    proof: [u8; 32],
}

/// What it says once it knows who has connected.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Verdict {
    /// It is one of the run.
    Welcome { meeting: u64 },
    /// It shall come again.
    Later,
    /// It is not, and what differs.
    Differs(String),
}

/// Why a connection is not used.
#[derive(Debug)]
pub(super) enum Refusal {
    /// Whoever is there does not speak as a process of the run.
    Stranger(String),
    /// A process of the run is configured otherwise.
    Differs(String),
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Self {
        Self::Stranger(error.to_string())
    }
}

/// Says to `other` who this process is.
pub(super) fn introduce(
    party: &Party,
    mut stream: TcpStream,
    other: usize,
    purpose: Purpose,
) -> Result<(TcpStream, Verdict), Refusal> {
    stream.set_read_timeout(Some(PATIENCE))?;
    let hello = Hello {
        words: WORDS.to_owned(),
        program: party.program.clone(),
        purpose,
        from: party.process,
        to: other,
        processes: party.hosts.len(),
        workers: party.workers,
        settings: party.settings.clone(),
        nonce: proof::nonce(),
    };
    let said = write(&mut stream, &hello)?;
    let (Challenge { nonce, proof }, _) = read(&mut stream)?;
    if !party.secret.is_proof(&proof, "answers", &said, &nonce) {
        return Err(Refusal::Differs("it has another secret".to_owned()));
    }
    write(&mut stream, &party.secret.proof("connects", &said, &nonce))?;
    let (verdict, _) = read(&mut stream)?;
    stream.set_read_timeout(None)?;
    Ok((stream, verdict))
}

/// Finds out who has connected. `None` if it shall come again, once this process knows of the meeting.
pub(super) fn receive(
    party: &Party,
    mut stream: TcpStream,
    meeting: Option<u64>,
) -> Result<Option<(TcpStream, usize, Purpose)>, Refusal> {
    stream.set_read_timeout(Some(PATIENCE))?;
    let (hello, said): (Hello, _) = read(&mut stream)?;
    if hello.words != WORDS {
        return Err(Refusal::Stranger("it speaks other words".to_owned()));
    }
    let nonce = proof::nonce();
    write(&mut stream, &Challenge { nonce, proof: party.secret.proof("answers", &said, &nonce) })?;
    let (proof, _): ([u8; 32], _) = read(&mut stream)?;
    if !party.secret.is_proof(&proof, "connects", &said, &nonce) {
        return Err(Refusal::Stranger("it does not know the secret of the run".to_owned()));
    }
    let verdict = verdict(party, &hello, meeting);
    write(&mut stream, &verdict)?;
    stream.set_read_timeout(None)?;
    match verdict {
        Verdict::Welcome { .. } => Ok(Some((stream, hello.from, hello.purpose))),
        Verdict::Later => Ok(None),
        Verdict::Differs(why) => Err(Refusal::Differs(format!("process {} is not one of this run: {why}", hello.from))),
    }
}

/// What follows from what a process says of itself.
fn verdict(party: &Party, hello: &Hello, meeting: Option<u64>) -> Verdict {
    let own = [party.hosts.len(), party.workers, party.process];
    let differs = |what: &str, its: &dyn std::fmt::Display, own: &dyn std::fmt::Display| {
        Verdict::Differs(format!("{what}: {its} for one, {own} for the other"))
    };
    let settings = different_settings(&hello.settings, &party.settings);
    if hello.program != party.program {
        differs("the version of the program", &hello.program, &party.program)
    } else if hello.processes != own[0] {
        differs("the number of processes", &hello.processes, &own[0])
    } else if hello.workers != own[1] {
        differs("the number of workers", &hello.workers, &own[1])
    } else if hello.to != own[2] || hello.from <= own[2] || hello.from >= own[0] {
        Verdict::Differs(format!(
            "process {} connects to process {}, which is at the address of process {}",
            hello.from, own[2], hello.to
        ))
    } else if !settings.is_empty() {
        Verdict::Differs(format!("settings that decide rows differ: {}", settings.join(", ")))
    } else {
        match (hello.purpose, meeting) {
            (Purpose::Control, Some(meeting)) if party.process == 0 => Verdict::Welcome { meeting },
            (Purpose::Data { meeting: its }, Some(meeting)) if its == meeting => Verdict::Welcome { meeting },
            (Purpose::Control | Purpose::Data { .. }, _) => Verdict::Later,
        }
    }
}

/// The settings in which two objects differ.
fn different_settings(one: &str, other: &str) -> Vec<String> {
    let read = |text: &str| serde_json::from_str::<Json>(text).unwrap_or_default();
    let (one, other) = (read(one), read(other));
    let mut different = Vec::new();
    compare("", &one, &other, &mut different);
    different
}

fn compare(path: &str, one: &Json, other: &Json, different: &mut Vec<String>) {
    match (one, other) {
        (Json::Object(one), Json::Object(other)) => {
            let keys: std::collections::BTreeSet<&String> = one.keys().chain(other.keys()).collect();
            for key in keys {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                let of = |object: &serde_json::Map<String, Json>| object.get(key).cloned().unwrap_or_default();
                compare(&path, &of(one), &of(other), different);
            }
        }
        _ if one == other => {}
        _ => different.push(format!("{path} ({one} and {other})")),
    }
}

/// Writes something said, and gives its bytes.
fn write(to: &mut impl Write, said: &impl Serialize) -> io::Result<Vec<u8>> {
    let bytes = serde_json::to_vec(said).map_err(io::Error::other)?;
    to.write_all(&u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_le_bytes())?;
    to.write_all(&bytes)?;
    Ok(bytes)
}

/// Reads something said, and gives its bytes too.
fn read<T: DeserializeOwned>(from: &mut impl Read) -> Result<(T, Vec<u8>), Refusal> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length);
    if length > MOST_BYTES {
        return Err(Refusal::Stranger("it speaks other words".to_owned()));
    }
    let mut bytes = Vec::new();
    from.take(u64::from(length)).read_to_end(&mut bytes)?;
    let said = serde_json::from_slice(&bytes).map_err(|_| Refusal::Stranger("it speaks other words".to_owned()))?;
    Ok((said, bytes))
}
