//! The short form of `fleetdiff calibrate`: a few runs of the rows of the table, at full noise. Rings are in `rings.rs`.

use std::time::Instant;

use fleetdiff_simulation::calibration::{Effort, MeasuredFigure, measure, table};

/// Runs of a row. A bound of .06 is exceeded from three runs in ten on, a bound of .95 is missed if three runs miss.
const RUNS: u64 = 10;
/// Runs of a row through the dataflow: of five, two exceed a bound of .06.
const THROUGH_THE_DATAFLOW: u64 = 5;

#[test]
fn null_calibration_short() {
    let (seed, threads) = (2, 2);
    let (mut outside, mut no_test, mut required, mut runs) = (Vec::new(), Vec::new(), 0, 0);
    let begun = Instant::now();
    for row in table().into_iter().filter(|row| !row.name.starts_with("rings")) {
        let runs_of_row = if row.runs_the_dataflow { THROUGH_THE_DATAFLOW } else { RUNS };
        let effort = Effort { runs: runs_of_row, seed, threads };
        let row_begun = Instant::now();
        let measured = measure(&row, effort, || {}).unwrap();
        println!("{}: {} runs in {:.1?}", row.name, measured.runs, row_begun.elapsed());
        assert!(measured.runs >= runs_of_row && measured.figures.len() == row.figures.len(), "{}", row.name);
        runs += measured.runs;
        for figure in &measured.figures {
            println!("{}: {}", row.name, in_words(figure));
            required += usize::from(figure.figure.required.is_some());
            if !figure.is_met() {
                outside.push(format!("{}: {}", row.name, in_words(figure)));
            }
        }
        // The twin: the same bounds on the same draws, with pods treated as copies of each other.
        let mut of_the_plain_test =
            measured.figures.iter().filter_map(MeasuredFigure::is_met_by_the_plain_test).peekable();
        if of_the_plain_test.peek().is_some() && of_the_plain_test.all(|is_met| is_met) {
            no_test.push(row.name);
        }
    }
    println!("{runs} runs of seed {seed}, {required} figures with a bound, {:.0?}", begun.elapsed());
    assert!(outside.is_empty(), "outside what is required: {outside:#?}");
    assert!(no_test.is_empty(), "the plain test is within all bounds of {no_test:?}: these fleets are no test");
}

fn in_words(figure: &MeasuredFigure) -> String {
    let error = figure.ours.standard_error.map_or_else(String::new, |error| format!(" +- {error:.3}"));
    let plain = figure.plain.map_or_else(String::new, |plain| format!(", plain {:.3}", plain.value));
    format!("{} {:.3}{error}, required {:?}{plain}", figure.figure.name, figure.ours.value, figure.figure.required)
}
