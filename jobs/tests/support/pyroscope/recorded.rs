//! A server that answers as a real one did: each request that is recorded, and no other.

use std::collections::BTreeMap;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::http::{Answer, Headers, Request, answer, header, receive, send};

/// When the pods that are recorded began, in nanoseconds since the Unix epoch: a whole minute.
pub const RECORDED: u64 = 1_795_895_400_000_000_000;

/// A request: path, form, tenant, body.
pub type Asked = [String; 4];

/// Answers by request.
pub type Book = BTreeMap<Asked, Answer>;

pub fn base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/pyroscope/recorded.jsonl")
}

/// Bodies that are text stand as they are.
fn written(form: &str, body: &[u8]) -> String {
    if form.ends_with("proto") { base64(body) } else { String::from_utf8(body.to_vec()).unwrap() }
}

fn read(form: &str, body: &str) -> Vec<u8> {
    if form.ends_with("proto") { STANDARD.decode(body).unwrap() } else { body.as_bytes().to_vec() }
}

fn asked(path: &str, headers: &[(String, String)], body: &[u8]) -> Asked {
    let form = header(headers, "content-type").unwrap_or_default();
    let body = written(&form, body);
    [path.to_owned(), form, header(headers, "x-scope-orgid").unwrap_or_default(), body]
}

/// A server; requests go to `of`, whose answer is given.
fn serve(of: impl Fn(&str, Headers, Vec<u8>) -> Answer + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let of = Arc::new(of);
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let (connection, of) = (connection.unwrap(), Arc::clone(&of));
            std::thread::spawn(move || {
                let Some((path, headers, body)) = receive(&connection) else { return };
                answer(&connection, &of(&path, headers, body));
            });
        }
    });
    address
}

/// The address of a server that answers what is recorded.
pub fn play() -> String {
    let mut book = Book::new();
    for line in fs::read_to_string(path()).unwrap().lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let text = |name: &str| line[name].as_str().unwrap().to_owned();
        let form = text("answer_form");
        let status = u16::try_from(line["status"].as_u64().unwrap()).unwrap();
        let answer = Answer { status, body: read(&form, &text("answer")), form };
        book.insert([text("path"), text("form"), text("tenant"), text("asked")], answer);
    }
    serve(move |path, headers, body| {
        let asked = asked(path, &headers, &body);
        let unknown = || Answer { status: 501, form: "text/plain".to_owned(), body: b"not recorded".to_vec() };
        book.get(&asked).cloned().unwrap_or_else(unknown)
    })
}

/// The address of a server that asks another one, and the book of what that answers.
pub fn record(of: String) -> (String, Arc<Mutex<Book>>) {
    let book = Arc::new(Mutex::new(Book::new()));
    let kept = Arc::clone(&book);
    let address = serve(move |path, mut headers, body| {
        let asked = asked(path, &headers, &body);
        headers.retain(|(name, _)| !["host", "content-length", "connection"].contains(&name.as_str()));
        let answer = send(&of, &Request { method: "POST", path, headers, body }).unwrap();
        kept.lock().unwrap().insert(asked, answer.clone());
        answer
    });
    (address, book)
}

/// Writes what was recorded.
pub fn keep(book: &Book) {
    let line = |(asked, answer): (&Asked, &Answer)| {
        let [path, form, tenant, asked] = asked;
        let body = written(&answer.form, &answer.body);
        let line = json!({
            "path": path, "form": form, "tenant": tenant, "asked": asked,
            "status": answer.status, "answer_form": answer.form, "answer": body,
        });
        format!("{line}\n")
    };
    fs::write(path(), book.iter().map(line).collect::<String>()).unwrap();
}
