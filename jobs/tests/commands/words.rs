//! The words that users read are those of the field, with one word per meaning.
//!
//! Checked are README, CHANGELOG, the documentation (including the descriptions of all columns, from which
//! `docs/tables.md` is generated), the examples, the alert schema, and the help of subcommands.

use std::path::{Path, PathBuf};

use super::program::run;

/// A word or phrase in its wrong sense, and its replacement.
const WORDS: &[(&str, &str)] = &[
    ("called", "significant (rejected by a report's test), flagged (raised by the live rule), named"),
    ("calls rows", "decides which rows are significant"),
    ("dearer", "more expensive"),
    ("costs less", "cheaper"),
    ("cost less", "cheaper"),
    ("alike", "equivalent, equally, similar"),
    ("noise", "no change, spread between pods"),
    ("unlike", "different, imbalance"),
    ("told", "recognised, said, an error"),
    ("set against", "compared with"),
    ("self-check", "A/A check"),
    ("not known yet", "inconclusive: needs N more minutes or pods"),
    ("cannot be judged", "inconclusive: needs N more minutes or pods"),
    ("nobody knows", "inconclusive"),
    ("the past", "history"),
    ("whereabouts", "strata detail"),
    ("kinship", "overlap"),
    ("cell's scale", "normalization factor"),
    ("common scale", "normalization factor"),
];

/// Old names of options, keys and columns.
const NAMES: &[(&str, &str)] = &[
    ("--by", "--factor"),
    ("--lasts", "--duration"),
    ("--spread", "--partitions-used"),
    ("--delta", "--min-effect"),
    ("--baseline", "--history"),
    ("--baseline-every", "--history-every"),
    ("dataflow.delta", "dataflow.min_effect"),
    ("dataflow.baseline", "dataflow.history"),
    ("dataflow.baseline_every", "dataflow.history_every"),
    ("baseline_every", "history_every"),
    ("self_check_tests", "aa_check_tests"),
    ("self_check_flags", "aa_check_flags"),
    ("samples_baseline", "samples_carried_over"),
    ("ln_p_delta", "ln_p_min_effect"),
    ("tau2", "head_pod_variance, base_pod_variance"),
    ("d0", "the prior's degrees of freedom"),
    ("s02", "the dispersion that the prior expects"),
];

/// Lines that may contain such a word: the file, a part of the line, and why.
const ALLOWED: &[(&str, &str, &str)] = &[
    ("CHANGELOG.md", "| `", "the table of renames has the old names beside the new"),
    ("CHANGELOG.md", "| options", "the table of renames has the old names beside the new"),
];

/// Subcommands whose help is checked.
const HELP: &[&str] = &[
    "demo",
    "replay",
    "report",
    "watch",
    "test-receivers",
    "publish",
    "pull",
    "generate",
    "delta",
    "diff",
    "calibrate",
    "power",
    "completions",
    "man",
];

/// Lower-case words of a text, with one blank between them and at both ends. Characters of names (`-`, `_`, a dot
/// inside) are kept.
fn normalised(text: &str) -> String {
    let blank_or = |character: char| {
        let in_names = character.is_alphanumeric() || "-_.'/".contains(character);
        if in_names { character.to_ascii_lowercase() } else { ' ' }
    };
    let spaced: String = text.chars().map(blank_or).collect();
    let words: Vec<&str> =
        spaced.split(' ').map(|word| word.trim_matches(['.', '\''])).filter(|word| !word.is_empty()).collect();
    format!(" {} ", words.join(" "))
}

/// What is wrong with a text, one line each. Phrases are found across the end of a line too.
fn wrong_words(name: &str, text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let mut wrong = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        if ALLOWED.iter().any(|(file, part, _)| name.ends_with(file) && line.contains(part)) {
            continue;
        }
        let next = lines.get(index + 1).copied().unwrap_or_default();
        let (here, both) = (normalised(line), normalised(&format!("{line} {next}")));
        for (word, instead) in WORDS.iter().chain(NAMES) {
            let padded = format!(" {word} ");
            let across = both.contains(&padded) && !normalised(next).contains(&padded);
            if here.contains(&padded) || (word.contains(' ') && across) {
                wrong.push(format!("{name}:{}: {word:?}, use {instead}: {}", index + 1, line.trim()));
            }
        }
    }
    wrong
}

fn documents() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut documents = vec![root.join("README.md"), root.join("CHANGELOG.md"), root.join("schemas/alert.schema.json")];
    let pages = ["docs", "examples"].map(|folder| std::fs::read_dir(root.join(folder)).unwrap());
    let is_document =
        |path: &PathBuf| path.extension().is_some_and(|one| ["md", "sql", "ipynb"].iter().any(|&all| one == all));
    documents.extend(pages.into_iter().flatten().map(|entry| entry.unwrap().path()).filter(is_document));
    documents.sort();
    documents
}

/// What people read in a document: of a notebook its sources, without what they printed.
fn text_of(path: &Path) -> String {
    let text = std::fs::read_to_string(path).unwrap();
    if path.extension().is_none_or(|extension| extension != "ipynb") {
        return text;
    }
    let notebook: serde_json::Value = serde_json::from_str(&text).unwrap();
    let sources = notebook["cells"].as_array().unwrap().iter().flat_map(|cell| cell["source"].as_array().unwrap());
    let text: String = sources.map(|line| format!("{}\n", line.as_str().unwrap().trim_end())).collect();
    assert!(text.contains("One deploy"), "{text}");
    text
}

#[test]
fn documents_use_the_words_of_the_field() {
    let documents = documents();
    assert!(documents.len() > 18, "only {} documents were looked at", documents.len());
    let wrong: Vec<String> =
        documents.iter().flat_map(|path| wrong_words(&path.display().to_string(), &text_of(path))).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn help_uses_the_words_of_the_field() {
    for subcommand in HELP {
        let help = run(&[subcommand, "--help"]).stdout;
        assert!(help.len() > 200, "{help}");
        let wrong = wrong_words(&format!("fleetdiff {subcommand} --help"), &help);
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}

/// The twin: each word is found, in capitals, before a full stop and across the end of a line, and not within another word.
#[test]
fn wrong_words_are_found() {
    for (word, _) in WORDS.iter().chain(NAMES) {
        let text = format!("The row is\n{}.\n", word.to_uppercase());
        assert_eq!(wrong_words("a.md", &text).len(), 1, "{word}");
    }
    assert_eq!(wrong_words("a.md", "it costs\nless").len(), 1);
    assert_eq!(wrong_words("a.md", "recalled, `--baseline-only`, scale, untold, deltas"), Vec::<String>::new());
    assert_eq!(wrong_words("CHANGELOG.md", "| `cells` | `ln_p_min_effect` | `ln_p_delta` |"), Vec::<String>::new());
}
