//! A server that speaks the protocol of Amazon S3, and another client of it: moto and boto3, which pip installs into the build folder.

use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use crate::tools::{environment, must};

const PACKAGES: [&str; 3] = ["moto[s3]==5.2.5", "flask==3.1.3", "flask-cors==6.0.5"];

/// Makes a bucket.
const MAKE: &str = "import boto3, sys; boto3.client('s3').create_bucket(Bucket=sys.argv[1])";
/// Prints the names of all objects of a bucket.
const LIST: &str = "
import boto3, sys
for page in boto3.client('s3').get_paginator('list_objects_v2').paginate(Bucket=sys.argv[1]):
    for one in page.get('Contents', []):
        print(one['Key'])";
/// Copies all objects of a bucket to a folder.
const COPY: &str = "
import boto3, os, sys
s3 = boto3.client('s3')
for page in s3.get_paginator('list_objects_v2').paginate(Bucket=sys.argv[1]):
    for one in page.get('Contents', []):
        to = os.path.join(sys.argv[2], one['Key'])
        os.makedirs(os.path.dirname(to), exist_ok=True)
        s3.download_file(sys.argv[1], one['Key'], to)";

static ENVIRONMENT: LazyLock<PathBuf> = LazyLock::new(|| environment("s3", &PACKAGES, &PACKAGES.join("\n")));

/// A server, which keeps everything in memory and ends with its owner.
pub struct S3 {
    server: Child,
    port: u16,
}

impl S3 {
    pub fn start() -> Self {
        // NB: another process may take the port before the server does; the tests of one binary do not.
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let server = Command::new(ENVIRONMENT.join("bin/python"))
            .args(["-m", "moto.server", "-H", "127.0.0.1", "-p", &port.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let s3 = Self { server, port };
        let deadline = Instant::now() + Duration::from_secs(60);
        while TcpStream::connect(("127.0.0.1", port)).and_then(|mut to| to.flush()).is_err() {
            assert!(Instant::now() < deadline, "moto does not start");
            std::thread::sleep(Duration::from_millis(100));
        }
        s3
    }

    /// The variables with which any client finds it.
    pub fn variables(&self) -> [(&'static str, String); 5] {
        [
            ("AWS_ENDPOINT_URL", format!("http://127.0.0.1:{}", self.port)),
            ("AWS_ACCESS_KEY_ID", "tests".to_owned()),
            ("AWS_SECRET_ACCESS_KEY", "of fleetdiff".to_owned()),
            ("AWS_REGION", "eu-west-1".to_owned()),
            ("NO_PROXY", "127.0.0.1".to_owned()),
        ]
    }

    /// Makes a bucket.
    pub fn make(&self, bucket: &str) {
        self.python(MAKE, &[bucket]);
    }

    /// The names of all objects of a bucket.
    pub fn objects(&self, bucket: &str) -> Vec<String> {
        self.python(LIST, &[bucket]).lines().map(str::to_owned).collect()
    }

    /// Copies all objects of a bucket to a folder.
    pub fn copy(&self, bucket: &str, to: &Path) {
        self.python(COPY, &[bucket, to.to_str().unwrap()]);
    }

    fn python(&self, program: &str, args: &[&str]) -> String {
        let mut python = Command::new(ENVIRONMENT.join("bin/python"));
        must(python.args(["-c", program]).args(args).envs(self.variables()).env("AWS_DEFAULT_REGION", "us-east-1"))
    }

    pub fn signal(&self, signal: &str) {
        let sent = Command::new("kill").args(["-s", signal, &self.server.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }
}

impl Drop for S3 {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}
