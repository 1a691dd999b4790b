//! Processes of a run meet: in any order, among strangers, and only with those that know the secret and have the same settings.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use fleetdiff_connectors::meeting::{MeetingError, Met, Party, Secret};

type Meeting = JoinHandle<Result<Option<Met>, MeetingError>>;

fn hosts(count: usize) -> Vec<String> {
    let listeners: Vec<TcpListener> = (0..count).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    listeners.iter().map(|listener| listener.local_addr().unwrap().to_string()).collect()
}

fn party(process: usize, hosts: &[String]) -> Party {
    Party {
        process,
        workers: 2,
        hosts: hosts.to_vec(),
        secret: Secret::new(b"of these tests\n"),
        settings: r#"{"dataflow":{"window":"30m","q":0.05}}"#.to_owned(),
        program: "1.2.3".to_owned(),
    }
}

fn meets(party: Party, stop: &Arc<AtomicBool>) -> Meeting {
    let stop = Arc::clone(stop);
    std::thread::spawn(move || party.meet(&stop))
}

/// What the first process says once all are there.
const WORD: &[u8] = b"begin";

/// The first process says its word; the others wait for it.
fn first(party: Party, stop: &Arc<AtomicBool>) -> Meeting {
    let stop = Arc::clone(stop);
    std::thread::spawn(move || {
        let met = party.meet(&stop)?;
        for stream in met.iter().flat_map(|met| met.control.iter().flatten()) {
            (&*stream).write_all(WORD).unwrap();
        }
        Ok(met)
    })
}

#[test]
fn processes_meet_in_any_order_and_each_connection_leads_to_the_right_one() {
    let (hosts, stop) = (hosts(4), Arc::default());
    let mut meetings: Vec<(usize, Meeting)> = Vec::new();
    for process in [2, 0, 3, 1] {
        let party = party(process, &hosts);
        let meeting = if process == 0 { first(party, &stop) } else { meets(party, &stop) };
        meetings.push((process, meeting));
        std::thread::sleep(Duration::from_millis(100));
    }
    meetings.sort_by_key(|(process, _)| *process);
    let met: Vec<Met> = meetings.into_iter().map(|(_, meeting)| meeting.join().unwrap().unwrap().unwrap()).collect();
    for (process, Met { control, data }) in met.iter().enumerate() {
        assert_eq!((control.len(), data.len()), (4, 4));
        for other in 0..4 {
            assert_eq!(data[other].is_some(), other != process);
            assert_eq!(control[other].is_some(), other != process && (process == 0 || other == 0));
        }
        data.iter().flatten().for_each(|mut stream| stream.write_all(&[u8::try_from(process).unwrap()]).unwrap());
    }
    for Met { data, .. } in &met {
        for (other, stream) in data.iter().enumerate().filter_map(|(other, stream)| Some((other, stream.as_ref()?))) {
            let mut byte = [9];
            (&*stream).read_exact(&mut byte).unwrap();
            assert_eq!(usize::from(byte[0]), other);
        }
    }
    for mut stream in met[1..].iter().flat_map(|met| met.control.iter().flatten()) {
        let mut word = [0; WORD.len()];
        stream.read_exact(&mut word).unwrap();
        assert_eq!(word, WORD);
    }
}

#[test]
fn who_differs_is_refused_and_the_others_go_on() {
    let (hosts, stop) = (hosts(2), Arc::default());
    let waiting = first(party(0, &hosts), &stop);
    let differs: [(Party, &str); 5] = [
        (Party { secret: Secret::new(b"another"), ..party(1, &hosts) }, "it has another secret"),
        (Party { secret: Secret::default(), ..party(1, &hosts) }, "it has another secret"),
        (
            Party { program: "1.2.4".to_owned(), ..party(1, &hosts) },
            "the version of the program: 1.2.4 for one, 1.2.3 for",
        ),
        (Party { workers: 3, ..party(1, &hosts) }, "the number of workers: 3 for one, 2 for the other"),
        (
            Party { settings: r#"{"dataflow":{"window":"5m","q":0.05}}"#.to_owned(), ..party(1, &hosts) },
            r#"settings that decide rows differ: dataflow.window ("5m" and "30m")"#,
        ),
    ];
    for (party, why) in differs {
        let refused = meets(party, &stop).join().unwrap().unwrap_err().to_string();
        assert!(refused.contains(why), "{why:?} is missing in: {refused}");
        assert!(refused.starts_with("process 0 at 127.0.0.1:"), "{refused}");
    }
    let mut longer = hosts.clone();
    longer.push("127.0.0.1:1".to_owned());
    let refused = meets(party(1, &longer), &stop).join().unwrap().unwrap_err().to_string();
    assert!(refused.contains("the number of processes: 3 for one, 2 for the other"), "{refused}");

    assert!(meets(party(1, &hosts), &stop).join().unwrap().unwrap().is_some());
    assert!(waiting.join().unwrap().unwrap().is_some());
}

/// What strangers send, cut off at any place, keeps nobody from meeting.
#[test]
fn strangers_are_dropped() {
    let (hosts, stop) = (hosts(2), Arc::default());
    let waiting = first(party(0, &hosts), &stop);
    let hello = br#"{"words":"fleetdiff processes 1","program":"1.2.3","purpose":"Control","from":1,"to":0,"processes":2,"workers":2,"settings":"{}","nonce":[]}"#;
    let framed = |bytes: &[u8]| [&u32::try_from(bytes.len()).unwrap().to_le_bytes()[..], bytes].concat();
    let mut open = Vec::new();
    let whole = framed(hello);
    let cuts = (0..whole.len()).step_by(7).map(|cut| whole[..cut].to_vec());
    let others = [
        b"GET / HTTP/1.1\r\n\r\n".to_vec(),
        vec![0xff; 9000],
        framed(b"{}"),
        framed(&[b'['; 60_000]),
        u32::MAX.to_le_bytes().to_vec(),
    ];
    for bytes in cuts.chain(others) {
        let mut stream = loop {
            match TcpStream::connect(&*hosts[0]) {
                Ok(stream) => break stream,
                Err(_) => std::thread::sleep(Duration::from_millis(10)),
            }
        };
        // It may have been dropped already.
        drop(stream.write_all(&bytes));
        open.push(stream);
        if open.len() % 2 == 0 {
            open.pop();
        }
    }
    assert!(meets(party(1, &hosts), &stop).join().unwrap().unwrap().is_some());
    assert!(waiting.join().unwrap().unwrap().is_some());
}

/// What one process has answered is no answer to another: whoever has heard it cannot take its place.
#[test]
fn an_answer_that_was_heard_before_is_refused() {
    let (hosts, stop) = (hosts(2), Arc::<AtomicBool>::default());
    let read = |stream: &mut TcpStream| {
        let mut length = [0; 4];
        stream.read_exact(&mut length).unwrap();
        let mut bytes = vec![0; usize::try_from(u32::from_le_bytes(length)).unwrap()];
        stream.read_exact(&mut bytes).unwrap();
        [&length[..], &bytes].concat()
    };
    // Somebody between the two, who passes on the first words and keeps the answer.
    let real = hosts.clone();
    let waiting = first(party(0, &real), &stop);
    let between = TcpListener::bind("127.0.0.1:0").unwrap();
    let seen = vec![between.local_addr().unwrap().to_string(), hosts[1].clone()];
    let deceived = meets(party(1, &seen), &stop);
    let (mut from, _) = between.accept().unwrap();
    let hello = read(&mut from);
    let mut to = loop {
        match TcpStream::connect(&*hosts[0]) {
            Ok(stream) => break stream,
            Err(_) => std::thread::sleep(Duration::from_millis(10)),
        }
    };
    to.write_all(&hello).unwrap();
    let answer = read(&mut to);
    drop(from);
    let (mut from, _) = between.accept().unwrap();
    assert_ne!(read(&mut from), hello, "each hello is another");
    from.write_all(&answer).unwrap();
    let refused = deceived.join().unwrap().unwrap_err().to_string();
    assert!(refused.contains("it has another secret"), "{refused}");
    stop.store(true, Ordering::Release);
    assert!(waiting.join().unwrap().unwrap().is_none(), "it was stopped while it waited");
}

#[test]
fn an_address_that_is_taken_is_said() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let hosts = [taken.local_addr().unwrap().to_string(), "127.0.0.1:1".to_owned()];
    let error = party(0, &hosts).meet(&AtomicBool::new(false)).unwrap_err();
    assert!(error.to_string().starts_with(&format!("cannot listen at {}", hosts[0])), "{error}");
}
