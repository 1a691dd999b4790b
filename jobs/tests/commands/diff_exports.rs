//! `diff --format` for other programs, on pods as they were recorded.

use std::fs;
use std::path::{Path, PathBuf};

use fleetdiff_diff::compare::nobody;
use fleetdiff_diff::export::columns::COLUMNS;
use fleetdiff_diff::export::json::JSON_SCHEMA;
use fleetdiff_formats::{Format, Labels, Options};
use fleetdiff_schemas::profile::{ProfileType, Temporality};
use fleetdiff_schemas::time::{Nanos, TimeRange};
use serde_json::Value;
use tempfile::TempDir;

use super::program::{Run, recorded, run};

/// The last two profiles of pods that serve sessions: builds A and A2, and build B with another encoding.
const BASE: [&str; 3] = ["rd-00", "rd-01", "rd-04"];
const HEAD: [&str; 2] = ["rd-08", "rd-09"];

fn profiles(pods: &[&str]) -> Vec<String> {
    let of_pod = |pod: &&str| {
        let folder = recorded("rd-listpack").join("profiles").join(pod);
        ["cpu-010.folded.gz", "cpu-011.folded.gz"].map(|file| folder.join(file).to_str().unwrap().to_owned())
    };
    pods.iter().flat_map(of_pod).collect()
}

fn diff(base: &[String], head: &[String], more: &[&str]) -> Run {
    let named = |side: &'static str, files: &[String]| [vec![side.to_owned()], files.to_vec()].concat();
    let arguments = [vec!["diff".to_owned()], named("--base", base), named("--head", head)].concat();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).chain(more.iter().copied()).collect();
    run(&arguments)
}

fn written(more: &[&str]) -> String {
    let run = diff(&profiles(&BASE), &profiles(&HEAD), more);
    assert_eq!(run.code, 0, "{}", run.stderr);
    run.stdout
}

/// The lines of all files, `root;...;leaf COUNT`, added up.
fn samples(pods: &[&str]) -> u64 {
    let decode = |file: &String| {
        let parts = Format::Folded.decoder(&Options::default()).decode(&fs::read(file).unwrap(), &Ok(labels()));
        parts.into_iter().map(|part| part.unwrap().total()).sum::<u64>()
    };
    profiles(pods).iter().map(decode).sum()
}

fn labels() -> Labels {
    Labels {
        identity: nobody().into(),
        profile_type: ProfileType::Cpu,
        temporality: Temporality::Delta,
        window: Some(TimeRange { start: Nanos(1), end: Nanos(2) }),
        sent_at: None,
        requests: None,
        requests_window: None,
        unit: None,
        period: None,
        root_is_thread: false,
    }
}

#[test]
fn json_of_recorded_pods_fits_the_schema() {
    let document: Value = serde_json::from_str(&written(&["--format", "json", "--q", "0.1"])).unwrap();
    let schema: Value = serde_json::from_str(JSON_SCHEMA).unwrap();
    let validator = jsonschema::options().build(&schema).unwrap();
    let problems: Vec<String> =
        validator.iter_errors(&document).map(|fault| format!("{}: {fault}", fault.instance_path())).collect();
    assert_eq!(problems, Vec::<String>::new());
    assert_eq!(document["base"]["samples"], samples(&BASE));
    assert_eq!(document["head"]["labels"], serde_json::json!(profiles(&HEAD)));
    assert_eq!(document["settings"]["q"], 0.1);
    assert_eq!(document["spread"]["known"], "tentative");
    assert!(document["spread"]["sentence"].as_str().unwrap().contains("fewer than 5 runs"));
    let findings = document["findings"].as_array().unwrap();
    let sums = findings.iter().filter(|row| row["count_kind"] == "self").map(|row| row["head_count"].as_u64().unwrap());
    assert_eq!(sums.sum::<u64>(), samples(&HEAD));
    let table = written(&["--q", "0.1"]);
    assert_eq!(table.lines().next(), document["headline"].as_str());
}

#[test]
fn csv_and_parquet_hold_the_rows_of_json() {
    let document: Value = serde_json::from_str(&written(&["--format", "json"])).unwrap();
    let findings = document["findings"].as_array().unwrap();
    let table = written(&["--format", "csv"]);
    assert_eq!(table.lines().count(), findings.len() + 1);
    assert_eq!(table.lines().next().unwrap().split(',').collect::<Vec<_>>(), COLUMNS.map(|column| column.name));
    assert!(table.lines().any(|line| line.starts_with("lpFind,,,self,")), "{table}");
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("findings.parquet");
    assert_eq!(written(&["--format", "parquet", "--output", file.to_str().unwrap()]), "");
    let bytes = fs::read(&file).unwrap();
    assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"), "{} bytes", bytes.len());
    let holds = |text: &str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
    assert!(holds("fleetdiff.headline") && holds(document["headline"].as_str().unwrap()));
}

#[test]
fn markdown_shows_what_is_significant() {
    let comment = written(&["--format", "markdown", "--top", "1"]);
    assert!(
        comment.starts_with("**")
            && comment.contains("\n| function | base | head | ratio (95 % interval) | verdict |\n"),
        "{comment}"
    );
    assert_eq!(comment.lines().filter(|line| line.starts_with("| `")).count(), 1, "{comment}");
    assert!(
        comment.contains("\n... and 3 more significant functions.\n")
            && comment.contains(". With fewer than 5 runs per side"),
        "{comment}"
    );
}

#[test]
fn stacks_of_both_sides_are_whole() {
    let (base, head) = (samples(&BASE), samples(&HEAD));
    let mut sums = [0, 0];
    for line in written(&["--format", "difffolded"]).lines() {
        let mut fields = line.rsplitn(3, ' ');
        sums[1] += fields.next().unwrap().parse::<u64>().unwrap();
        sums[0] += fields.next().unwrap().parse::<u64>().unwrap();
        assert!(fields.next().unwrap().contains(';'), "{line}");
    }
    assert_eq!(sums, [base, head]);
    let file: Value = serde_json::from_str(&written(&["--format", "speedscope"])).unwrap();
    assert_eq!(
        [&file["profiles"][0]["endValue"], &file["profiles"][1]["endValue"]],
        [&Value::from(base), &Value::from(head)]
    );
    let names: Vec<&str> =
        file["shared"]["frames"].as_array().unwrap().iter().map(|frame| frame["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"lpFind") && names.len() > 50, "{names:?}");
}

fn exist(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// What the pair holds is compared like what it was made of.
#[test]
fn a_pair_of_pprof_files_is_read_again() {
    let folder = TempDir::new().unwrap();
    let name = |name: &str| -> PathBuf { folder.path().join(name) };
    assert_eq!(written(&["--format", "pprof", "--output", name("redis").to_str().unwrap()]), "");
    assert_eq!(written(&["--format", "pprof", "--output", name("redis.v2.pb.gz").to_str().unwrap()]), "");
    assert_eq!(
        exist(folder.path()),
        ["redis.base.pb.gz", "redis.head.pb.gz", "redis.v2.base.pb.gz", "redis.v2.head.pb.gz"]
    );
    let side = |side: &str| vec![name(&format!("redis.{side}.pb.gz")).to_str().unwrap().to_owned()];
    let again = diff(&side("base"), &side("head"), &["--format", "difffolded"]);
    assert_eq!(again.code, 0, "{}", again.stderr);
    assert!(again.stdout == written(&["--format", "difffolded"]), "other stacks");
    assert!(again.stdout.lines().count() > 100);
}

#[test]
fn what_makes_no_sense_is_refused_before_anything_is_read() {
    let nowhere = ["nowhere.folded".to_owned()];
    let cases: [(&[&str], &str, &str); 4] = [
        (&["--format", "parquet"], "--format parquet writes binary data and needs a file", "--output FILE"),
        (&["--format", "pprof"], "--format pprof writes binary data and needs a file", "NAME.base.pb.gz"),
        (&["--format", "json", "--top", "3"], "so --top 3 does not apply", "remove --top"),
        (&["--format", "speedscope", "--top", "0"], "so --top 0 does not apply", "remove --top"),
    ];
    for (arguments, said, hint) in cases {
        let run = diff(&nowhere, &nowhere, arguments);
        assert_eq!(run.code, 2, "{arguments:?}: {}", run.stderr);
        assert!(
            run.stderr.contains(said) && run.stderr.contains(hint) && run.stdout.is_empty(),
            "{arguments:?}: {}",
            run.stderr
        );
    }
    let unknown = diff(&nowhere, &nowhere, &["--format", "yaml"]);
    assert!(unknown.code == 2 && unknown.stderr.contains("difffolded"), "{}", unknown.stderr);
    let missing = diff(&profiles(&BASE), &profiles(&HEAD), &["--format", "csv", "--output", "/nowhere/table.csv"]);
    assert!(missing.code == 1 && missing.stderr.contains("cannot write /nowhere/table.csv"), "{}", missing.stderr);
}

/// The first line says what was found, in the same words in every output, whatever was found.
#[test]
fn one_sentence_in_every_output() {
    let folder = tempfile::TempDir::new().unwrap();
    let runs = |name: &str, encode: u64, many: u64| -> Vec<String> {
        let write = |number: u64| {
            let path = folder.path().join(format!("{name}{number}.folded"));
            let mut text =
                format!("main;serve;encode {}\nmain;serve;rest {}\n", encode + 7 * number, 500 + 11 * number);
            for other in 0..30 {
                text.push_str(&format!("main;other{other} {}\n", 1_000 + (other * 37 + number * 13) % 29));
            }
            std::fs::write(&path, text).unwrap();
            path.to_str().unwrap().to_owned()
        };
        (0..many).map(write).collect()
    };
    let few = |name: &str| {
        let path = folder.path().join(format!("{name}.folded"));
        std::fs::write(&path, "main;work 6\nmain;rest 4\n").unwrap();
        vec![path.to_str().unwrap().to_owned()]
    };
    let cases = [
        (runs("same", 2_000, 5), runs("same-too", 2_000, 5), "nothing is significant: "),
        (runs("old", 2_000, 5), runs("new", 4_000, 5), "encode costs x "),
        (runs("one", 2_000, 1), runs("other", 8_000, 1), "encode stands out: x "),
        (few("few"), few("as-few"), "not enough data: "),
    ];
    for (base, head, begins) in &cases {
        let output = |format: &str| {
            let mut arguments = vec!["diff", "--format", format, "--base"];
            arguments.extend(base.iter().map(String::as_str));
            arguments.push("--head");
            arguments.extend(head.iter().map(String::as_str));
            let made = run(&arguments);
            assert_eq!(made.code, 0, "{}", made.stderr);
            made.stdout
        };
        let document: serde_json::Value = serde_json::from_str(&output("json")).unwrap();
        let sentence = document["headline"].as_str().unwrap().to_owned();
        assert!(sentence.starts_with(begins), "{sentence}");
        assert_eq!(output("table").lines().next(), Some(&*sentence));
        let comment = output("markdown").replace('\\', "");
        assert!(comment.starts_with(&format!("**{sentence}**\n")), "{sentence}: {comment}");
        assert!(output("html").contains(&format!("<p id=\"headline\">{sentence}</p>")), "{sentence}");
        assert!(output("svg").contains(&format!(">{sentence}</text>")), "{sentence}");
    }
    // The caller of the culprit follows it, and nowhere stands above it.
    let [(_, _, _), (base, head, _), ..] = &cases;
    let mut arguments = vec!["diff", "--format", "json", "--base"];
    arguments.extend(base.iter().map(String::as_str));
    arguments.push("--head");
    arguments.extend(head.iter().map(String::as_str));
    let document: serde_json::Value = serde_json::from_str(&run(&arguments).stdout).unwrap();
    assert!(document["headline"].as_str().unwrap().contains("; its caller follows"), "{}", document["headline"]);
    let totals: Vec<&serde_json::Value> =
        document["findings"].as_array().unwrap().iter().filter(|row| row["count_kind"] == "total").collect();
    assert_eq!((&totals[0]["function"], &totals[1]["function"]), (&"encode".into(), &"serve".into()));
    assert_eq!(totals[1]["cause"], "encode");
}
