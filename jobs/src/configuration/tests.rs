use std::collections::BTreeSet;

use fleetdiff_formats::Format;
use fleetdiff_schemas::alert::AlertType;
use fleetdiff_schemas::config::{Comparing, Config};
use fleetdiff_schemas::profile::{CountKind, ProfileType};
use fleetdiff_schemas::time::Nanos;
use fleetdiff_schemas::verdict::Severity;

use super::keys::Key;
use super::*;

/// The defaults, overridden by a file and variables.
fn loaded(text: &str, variables: &[(&str, &str)]) -> (Configuration, Vec<Problem>) {
    let (mut configuration, mut problems) = (Configuration::default(), Vec::new());
    file::take(text, "f.toml", &mut configuration, &mut problems);
    let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    configuration.take_variables(variables, &mut problems);
    configuration.check(&mut problems);
    (configuration, problems)
}

fn values(configuration: &Configuration) -> Vec<serde_json::Value> {
    KEYS.iter().map(|key| (key.get)(configuration)).collect()
}

#[test]
fn the_file_in_the_repository_is_the_defaults_with_every_key() {
    let written = Configuration::default().to_toml();
    let file = include_str!("../../../fleetdiff.toml");
    assert!(file == written, "fleetdiff.toml differs from what `fleetdiff watch --show-config` writes:\n{written}");
    let (read, problems) = loaded(file, &[]);
    assert_eq!(problems, []);
    assert_eq!(values(&read), values(&Configuration::default()));
    let names: BTreeSet<&str> = file.lines().filter_map(|line| line.split_once(" = ")).map(|(name, _)| name).collect();
    assert!(KEYS.iter().all(|key| names.contains(key.name())));
}

#[test]
fn the_dataflow_has_the_defaults_of_the_library() {
    assert_eq!(Configuration::default().dataflow(), Config::default());
}

#[test]
fn keys_are_unique_by_path_flag_and_variable_and_say_where_their_default_comes_from() {
    let distinct = |names: Vec<String>| names.iter().collect::<BTreeSet<_>>().len();
    assert_eq!(distinct(KEYS.iter().map(|key| key.path.to_owned()).collect()), KEYS.len());
    assert_eq!(distinct(KEYS.iter().map(|key| key.flag.to_owned()).collect()), KEYS.len());
    assert_eq!(distinct(KEYS.iter().map(super::keys::Key::variable).collect()), KEYS.len());
    for key in KEYS {
        assert!(key.meaning.ends_with('.') && !key.origin.is_empty(), "{key:?}");
    }
}

/// Every key reads what it writes, from a file and, if it is not a list of lists, from a variable.
#[test]
fn every_key_reads_back_what_it_writes() {
    let (other, problems) = loaded(
        "[dataflow]\nhop='5s'\nbase=['A','A2']\nhead='B'\ncell='all'\ncount_kind=['self']\nq=0.1\n[kafka]\nformat='otlp'\ncontention='block'\n[output]\nflush='1h'\n[alerts]\ntopic=''",
        &[],
    );
    assert_eq!(problems, []);
    let (again, problems) = loaded(&other.to_toml(), &[]);
    assert_eq!(problems, []);
    assert_eq!(values(&again), values(&other));
    assert_ne!(values(&again), values(&Configuration::default()));
    assert_eq!(again.dataflow().count_kinds, [CountKind::SelfCount]);
    assert_eq!((again.kafka.format, again.of_records().contention), (Format::Otlp, ProfileType::Block));
    assert!(matches!(again.dataflow().comparing, Comparing::Named { base, .. } if base.len() == 2));
}

/// A rewrite that cannot be used is reported when the configuration is read, with its pattern.
#[test]
fn rewrites_are_read_and_checked() {
    let (file, problems) = loaded("[dataflow]\nrewrites = ['^v\\d{1,3}\\. => v.', ' => ']", &[]);
    assert_eq!(problems, []);
    assert_eq!(file.of_files().rewrites.apply("v12.run".into()), "v.run");
    assert_eq!(file.of_records().rewrites, file.of_files().rewrites);
    let variable = [("FLEETDIFF_DATAFLOW_REWRITES", r#"["a{1,2} => b", "c => d"]"#)];
    assert_eq!(loaded("", &variable).0.of_files().rewrites.apply("aac".into()), "bd");
    let single = [("FLEETDIFF_DATAFLOW_REWRITES", "a{1,2} => b")];
    assert_eq!(loaded("", &single).0.of_files().rewrites.apply("aac".into()), "bc");
    let (_, problems) = loaded("[dataflow]\nrewrites = ['(x => y']", &[]);
    assert!(matches!(problems.as_slice(), [problem] if problem.to_string().contains("\"(x\"")), "{problems:?}");
}

/// A rule that nobody knows is reported when the configuration is read, with the nearest one.
#[test]
fn rules_of_names_are_switched_off_by_name() {
    let lambda = "shop.Cart$$Lambda$4/52.run";
    assert_eq!(loaded("", &[]).0.of_files().name_rules.apply(lambda), "shop.Cart$$Lambda.run");
    let (file, problems) = loaded("[dataflow]\nname_rules_off = ['jvm-lambda', 'go']", &[]);
    assert_eq!(problems, []);
    assert_eq!(file.of_files().name_rules.apply(lambda), lambda);
    assert_eq!(file.of_records().name_rules, file.of_files().name_rules);
    let (variable, problems) = loaded("", &[("FLEETDIFF_DATAFLOW_NAME_RULES_OFF", "go, jvm-lambda")]);
    assert_eq!((variable.of_files().name_rules, problems), (file.of_files().name_rules, Vec::new()));
    let (_, problems) = loaded("[dataflow]\nname_rules_off = ['jvm-lamda']", &[]);
    assert!(
        matches!(problems.as_slice(), [problem] if problem.key == "dataflow.name_rules_off" && problem.what.contains("did you mean \"jvm-lambda\"?")),
        "{problems:?}"
    );
}

#[test]
fn a_shard_is_read_and_what_is_none_is_refused() {
    let (whole, _) = loaded("", &[]);
    assert!(whole.dataflow().shard.is_whole() && whole.sender() == "fleetdiff.profiles");
    let (file, problems) = loaded("[kafka]\nshard = '2/3'", &[]);
    assert_eq!(problems, []);
    assert_eq!((file.dataflow().shard.to_string().as_str(), file.sender().as_str()), ("2/3", "fleetdiff.profiles/2/3"));
    assert!(
        file.of_topic_as_json().contains(r#""shard":"2/3""#) && whole.of_topic_as_json().contains(r#""shard":"1/1""#)
    );
    let variable = loaded("", &[("FLEETDIFF_KAFKA_SHARD", "3/3")]).0;
    assert_eq!(variable.dataflow().shard.to_string(), "3/3");
    for text in ["'0/3'", "'4/3'", "'2'", "'two/three'", "''", "'-1/3'", "2"] {
        let (_, problems) = loaded(&format!("[kafka]\nshard = {text}"), &[]);
        let said = problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
        assert!(
            problems.len() == 1 && said.contains("kafka.shard: ") && said.contains("is not a shard I/N"),
            "{text}: {said}"
        );
    }
}

#[test]
fn idle_functions_are_read_and_checked() {
    let (file, problems) = loaded("[dataflow]\nidle = ['wait*', '!call']\nidle_defaults = false", &[]);
    assert_eq!(problems, []);
    let config = file.dataflow();
    assert_eq!((config.idle_defaults, config.idle), (false, vec!["wait*".into(), "!call".into()]));
    let variable = |text| loaded("", &[("FLEETDIFF_DATAFLOW_IDLE", text)]).0.dataflow().idle;
    assert_eq!(variable("get<int, long>"), ["get<int, long>".into()]);
    assert_eq!(variable(r#"["a", "b"]"#), ["a".into(), "b".into()]);
    for text in ["idle = ['']", "idle = ['!']", "idle = ['*']", "idle_defaults = 1", "idle = 'wait'"] {
        let (_, problems) = loaded(&format!("[dataflow]\n{text}"), &[]);
        assert_eq!(problems.len(), 1, "{text}: {problems:?}");
    }
}

#[test]
fn the_environment_wins_over_the_file() {
    let variables = [
        ("FLEETDIFF_DATAFLOW_WARM_UP", "7s"),
        ("FLEETDIFF_DATAFLOW_COUNT_KIND", "total"),
        ("FLEETDIFF_SERVICE_HOST", "10.0.0.1"),
        ("HOME", "/"),
    ];
    let (configuration, problems) = loaded("[dataflow]\nwarm_up = \"1s\"\nwindow = \"20m\"", &variables);
    assert_eq!(problems, [], "variables of others are left alone");
    let config = configuration.dataflow();
    assert_eq!((config.warm_up, config.window), (Nanos::from_seconds(7), Nanos::from_seconds(1200)));
    assert_eq!(config.count_kinds, [CountKind::Total]);
}

#[test]
fn all_problems_are_reported_with_key_and_line() {
    let text = "[dataflow]\nwindw = \"30m\"\nwarm_up = 60\nq = 2.0\n\n[kafka]\nformat = \"nettrace\"\nbrokers = [1]\n[kafak]\nx = 1\n[kafka.client]\nsasl.password = \"hunter2\"\n";
    let (_, problems) = loaded(text, &[("FLEETDIFF_RUN_WORKERS", "many")]);
    let reported: Vec<String> = problems.iter().map(ToString::to_string).collect();
    let expected = [
        ("f.toml:2: dataflow.windw: unknown key", "warm_up"),
        ("f.toml:3: dataflow.warm_up: 60 is not a duration", "30s"),
        ("f.toml:7: kafka.format: \"nettrace\" is not one of", "delta"),
        ("f.toml:8: kafka.brokers: [1] is not a string", ""),
        ("f.toml:9: kafak: unknown", "kafka.identity"),
        ("f.toml:12: kafka.client.sasl: ", "in quotes"),
        ("FLEETDIFF_RUN_WORKERS: run.workers: \"many\" is not a whole number", ""),
        ("dataflow.q: must be between 0 and 1", ""),
    ];
    assert_eq!(reported.len(), expected.len(), "{reported:#?}");
    for (start, part) in expected {
        assert!(reported.iter().any(|one| one.starts_with(start) && one.contains(part)), "{start} in {reported:#?}");
    }
}

#[test]
fn a_file_that_is_no_toml_is_reported_by_line_without_its_text() {
    let (_, problems) = loaded("[kafka.client]\n\"sasl.password\" = hunter2\n[dataflow]\nwindow = \"5x\"\n", &[]);
    let reported = format!("{problems:?}");
    assert!(reported.contains("f.toml:2") && reported.contains("f.toml:4"), "{reported}");
    assert!(!reported.contains("hunter2"), "{reported}");
}

#[test]
fn secrets_come_from_file_or_environment_and_are_shown_nowhere() {
    let file = "[kafka.client]\n\"sasl.username\" = \"hunter1\"\n\"security.protocol\" = \"SASL_SSL\"\n\"socket.keepalive.enable\" = true\n";
    let (configuration, problems) = loaded(file, &[("FLEETDIFF_KAFKA_CLIENT_SASL_PASSWORD", "hunter2")]);
    assert_eq!(problems, []);
    let properties = &configuration.kafka.client.properties;
    assert_eq!(properties.get("sasl.password").map(String::as_str), Some("hunter2"));
    assert_eq!(properties.get("socket.keepalive.enable").map(String::as_str), Some("true"));
    let shown = format!(
        "{}{}{}{}{configuration:?}",
        configuration.to_toml(),
        configuration.shown(),
        configuration.of_topic_as_json(),
        configuration.of_fleet_as_json()
    );
    assert!(!shown.contains("hunter"), "{shown}");
    assert!(shown.contains("SASL_SSL") && shown.contains("\"sasl.password\" is set but not shown"));
}

#[test]
fn the_json_of_a_run_holds_what_decides_rows_and_nothing_else() {
    let config = Config { window: Nanos::from_seconds(60), ..Config::default() };
    let json: serde_json::Value = serde_json::from_str(&Configuration::of_dataflow(config).of_fleet_as_json()).unwrap();
    assert_eq!(json["dataflow"]["window"], "1m");
    assert_eq!(json["dataflow"]["count_kind"], serde_json::json!(["self", "total"]));
    assert!(json.get("kafka").is_none() && json.get("run").is_none());
    let json: serde_json::Value = serde_json::from_str(&Configuration::default().of_topic_as_json()).unwrap();
    assert_eq!(
        json["kafka"]["identity"]["service"],
        serde_json::json!(["service.name", "k8s.deployment.name", "k8s.statefulset.name", "k8s.daemonset.name"])
    );
    assert!(json["kafka"].get("brokers").is_none());
}

#[test]
fn receivers_are_read_with_their_defaults_and_secrets_from_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("url"), "https://hooks.example/services/hunter2\n").unwrap();
    std::fs::write(folder.path().join("own.jinja"), "{}").unwrap();
    let text = "[[receivers]]\nname = \"oncall\"\nkind = \"alertmanager\"\nurl = \"http://am:9093/hunter3\"\nresend_every = \"15s\"\n\
        minimum_severity = \"ticket\"\nheaders = { \"X-Scope\" = \"hunter4\" }\n\
        [[receivers]]\nname = \"chat\"\nkind = \"slack\"\nurl_file = \"url\"\ntemplate = \"own.jinja\"\nevents = [\"raised\", \"verdict\"]\nservices = [\"check*\"]\n";
    let (mut configuration, mut problems) = (Configuration::default(), Vec::new());
    file::take(text, folder.path().join("f.toml").to_str().unwrap(), &mut configuration, &mut problems);
    configuration.check(&mut problems);
    assert_eq!(problems, []);
    let receivers = configuration.receivers().unwrap();
    assert_eq!(receivers[0].endpoint.to_string(), "http://am:9093");
    assert_eq!((receivers[0].resend_every.as_secs(), receivers[0].filter.minimum_severity), (15, Severity::Ticket));
    assert_eq!((receivers[0].headers.len(), receivers[0].filter.events.len()), (1, 6));
    assert_eq!(receivers[1].endpoint.to_string(), "https://hooks.example");
    assert_eq!(receivers[1].filter.events, [AlertType::IncidentRaised, AlertType::Verdict]);
    assert_eq!(receivers[1].template.as_deref(), Some("{}"));
    let shown = format!("{}{configuration:?}{receivers:?}", configuration.to_toml());
    assert!(!shown.contains("hunter"), "{shown}");
    assert!(shown.contains("# url is set but not shown") && shown.contains("\nresend_every = \"15s\"\n"), "{shown}");
}

#[test]
fn the_example_of_a_receiver_has_every_key_with_a_value_that_it_takes() {
    let file = include_str!("../../../fleetdiff.toml");
    let (_, example) = file.split_once("# [[receivers]]\n").unwrap();
    let is_key = |line: &&str| line.split_once(" = ").is_some_and(|(name, _)| !name.contains(' '));
    let lines: Vec<&str> = example.lines().filter_map(|line| line.strip_prefix("# ")).filter(is_key).collect();
    assert_eq!(lines.len(), receivers::RECEIVER_KEYS.len() + 1, "{lines:?}");
    let (_, problems) = loaded(&format!("[[receivers]]\n{}", lines.join("\n")), &[]);
    // Only what does not go together is wrong.
    let kinds: BTreeSet<&str> = problems.iter().map(|problem| problem.key.as_str()).collect();
    let expected = ["receivers.bearer_token_file", "receivers.events", "receivers.template", "receivers.url"];
    assert_eq!(kinds, expected.into(), "{problems:?}");
}

#[test]
fn problems_of_receivers_have_key_and_line_and_show_no_secret() {
    let text = "[[receivers]]\nname = \"a b\"\nkind = \"pager\"\nurl = \"hunter2\"\nurll = \"hunter3\"\ntimeout = \"0s\"\n\
        headers = [\"hunter4\"]\n[[receivers]]\nname = \"x\"\nkind = \"alertmanager\"\nevents = [\"raised\"]\n";
    let (_, problems) = loaded(text, &[]);
    let reported: Vec<String> = problems.iter().map(ToString::to_string).collect();
    for (start, part) in [
        ("f.toml:1: receivers.name: ", "letters"),
        ("f.toml:3: receivers.kind: ", "alertmanager"),
        ("f.toml:1: receivers.url: must be a URL", ""),
        ("f.toml:5: receivers.urll: unknown key", "bearer_token_env"),
        ("f.toml:7: receivers.headers: ", "table"),
        ("f.toml:1: receivers.timeout: ", "longer"),
        ("f.toml:8: receivers.url: must be given once", "url_env"),
        ("f.toml:8: receivers.events: ", "slack"),
    ] {
        assert!(reported.iter().any(|one| one.starts_with(start) && one.contains(part)), "{start} in {reported:#?}");
    }
    assert!(!format!("{reported:?}").contains("hunter"), "{reported:#?}");
    let (_, problems) = loaded("[receivers]\nname = \"x\"\n", &[]);
    assert!(format!("{problems:?}").contains("write [[receivers]]"), "{problems:?}");
    let (configuration, problems) =
        loaded("[[receivers]]\nname = \"x\"\nkind = \"webhook\"\nurl_env = \"FLEETDIFF_NO_SUCH\"\n", &[]);
    assert_eq!(problems, []);
    assert!(configuration.receivers().unwrap_err().to_string().contains("no variable FLEETDIFF_NO_SUCH"));
}

/// The same holds for keys as for options of one command: whatever is no sensible number has a problem that names the key.
#[test]
fn no_key_takes_a_number_that_is_none() {
    let takes = |key: &Key, text: &str| {
        let mut configuration = Configuration::default();
        if !(key.set_text)(&mut configuration, text) {
            return false;
        }
        let mut problems = Vec::new();
        configuration.check(&mut problems);
        !problems.iter().any(|problem| problem.key == key.path)
    };
    let is_number = |key: &&Key| !takes(key, "zebra") && ["0.5", "1", "2"].iter().any(|text| takes(key, text));
    let numbers: Vec<&Key> = KEYS.iter().filter(is_number).collect();
    assert!(numbers.len() >= 10, "{numbers:?}");
    for key in numbers {
        for text in ["nan", "inf", "-inf", "-7", "-1e300", "1e300"] {
            assert!(!takes(key, text), "{} = {text}", key.path);
        }
    }
}
