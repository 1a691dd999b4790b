//! The command line as a whole.

use clap::error::ErrorKind;

use super::*;

/// What no option takes, whatever number it is: it is far beyond every size, or none.
const NONSENSE: [&str; 6] = ["nan", "inf", "-inf", "-7", "-1e300", "1e300"];
/// What says a range.
const RANGE: [&str; 4] = ["expected", "between", "from", "number of a column"];

/// Why a command does not take the value of an option, if that is so.
fn refusal(command: &str, option: &str, value: &str) -> Option<String> {
    let found = Program::command().try_get_matches_from(["fleetdiff", command, &format!("--{option}={value}")]);
    let is_of_value = |kind| matches!(kind, ErrorKind::ValueValidation | ErrorKind::InvalidValue);
    found.err().filter(|fault| is_of_value(fault.kind())).map(|fault| fault.to_string())
}

/// Command and name of each option that takes a number and not any text.
fn numeric() -> Vec<(String, String)> {
    let mut found = Vec::new();
    for command in Program::command().get_subcommands() {
        for option in command.get_arguments().filter_map(clap::Arg::get_long) {
            let refuses = |value| refusal(command.get_name(), option, value).is_some();
            if refuses("zebra") && ["0.5", "1", "2"].iter().any(|number| !refuses(number)) {
                found.push((command.get_name().to_owned(), option.to_owned()));
            }
        }
    }
    found
}

#[test]
fn every_number_has_a_range_that_its_error_says() {
    let options = numeric();
    assert!(options.len() >= 20, "{options:?}");
    for (command, option) in options {
        for value in NONSENSE {
            let said = refusal(&command, &option, value).unwrap_or_default();
            let is_explained = said.contains(&format!("--{option}")) && RANGE.iter().any(|word| said.contains(word));
            assert!(is_explained, "fleetdiff {command} --{option}={value}: {said:?}");
        }
    }
}

#[test]
fn every_probability_and_part_is_below_five() {
    let of_one = ["q", "alpha", "power", "share", "late", "duplicates"];
    let options: Vec<_> = numeric().into_iter().filter(|(_, option)| of_one.contains(&option.as_str())).collect();
    assert_eq!(options.len(), of_one.len(), "{options:?}");
    for (command, option) in options {
        assert!(refusal(&command, &option, "5").is_some(), "fleetdiff {command} --{option}=5");
        assert_eq!(refusal(&command, &option, "0.5"), None);
    }
}
