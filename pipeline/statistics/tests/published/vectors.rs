//! Reading the vectors and comparing with them.

use std::collections::BTreeMap;
use std::path::Path;

use fleetdiff_statistics::live::live_rows_of;
use fleetdiff_statistics::tails::F1Tail;
use fleetdiff_statistics::{Arm, BucketCounts, BucketRow, Contrast, Stratum};
use fleetdiff_statistics::{LiveRows, MIN_COUNT, MIN_EFFECT, Model, Moments};
use serde_json::Value;

/// The text of a vector file.
pub fn text(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A JSON file; a bare NaN counts as null.
pub fn json(name: &str) -> Value {
    serde_json::from_str(&text(name).replace("NaN", "null")).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The cases of a JSON file that is one list.
pub fn cases(name: &str) -> Vec<Value> {
    json(name).as_array().cloned().unwrap_or_else(|| panic!("{name} is a list"))
}

/// The rows of a CSV file without its header, as fields.
pub fn rows(name: &str) -> Vec<Vec<String>> {
    text(name).lines().skip(1).map(|line| line.split(',').map(str::to_owned).collect()).collect()
}

/// A field of a CSV row as a number.
pub fn number(field: &str) -> f64 {
    field.parse().unwrap_or_else(|error| panic!("{field}: {error}"))
}

/// A JSON number, null as NaN, "inf" and "-inf" as infinities, booleans as 1 and 0.
pub fn float(value: &Value) -> f64 {
    match value {
        Value::Null => f64::NAN,
        Value::Bool(yes) => f64::from(u8::from(*yes)),
        Value::String(text) => number(text),
        other => other.as_f64().unwrap_or_else(|| panic!("{other} is a number")),
    }
}

/// A JSON list of numbers.
pub fn floats(value: &Value) -> Vec<f64> {
    list(value).iter().map(float).collect()
}

/// A JSON list.
pub fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap_or_else(|| panic!("{value} is a list"))
}

/// Counts numbers compared and remembers the worst.
pub struct Compared {
    what: String,
    count: usize,
    worst: f64,
}

impl Compared {
    pub fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), count: 0, worst: 0.0 }
    }

    /// |actual - expected| <= tolerance |expected|, or at most `floor`; NaN equals NaN, infinities themselves.
    pub fn relative_above(&mut self, actual: f64, expected: f64, tolerance: f64, floor: f64, at: &str) {
        self.count += 1;
        let what = &self.what;
        if !expected.is_finite() {
            assert!(
                actual.to_bits() == expected.to_bits() || actual.is_nan() && expected.is_nan(),
                "{what} {at}: {actual}, not {expected}"
            );
            return;
        }
        let off = (actual - expected).abs();
        let relative = if off <= floor { 0.0 } else { off / expected.abs() };
        assert!(relative <= tolerance, "{what} {at}: {actual}, not {expected} (relative error {relative:e})");
        self.worst = self.worst.max(relative);
    }

    pub fn relative(&mut self, actual: f64, expected: f64, tolerance: f64, at: &str) {
        self.relative_above(actual, expected, tolerance, 1e-300, at);
    }

    /// ln p against p: relative in p, in ln p below 1e-200.
    pub fn ln_p(&mut self, actual: f64, p: f64, tolerance: f64, at: &str) {
        if p > 0.0 && p < 1e-200 {
            self.relative(actual, p.ln(), 1e-6, at);
        } else if p.is_nan() || p > 0.0 {
            self.relative(actual.exp(), p, tolerance, at);
        } else {
            self.count += 1;
            assert!(actual < -690.0, "{} {at}: ln p {actual}, but p underflows", self.what);
        }
    }

    pub fn equal<T: PartialEq + std::fmt::Debug>(&mut self, actual: &T, expected: &T, at: &str) {
        self.count += 1;
        assert_eq!(actual, expected, "{} {at}", self.what);
    }

    /// Says what was done; nothing compared is a failure.
    pub fn finish(self) {
        eprintln!("{}: {} values compared, worst relative error {:.1e}", self.what, self.count, self.worst);
        assert!(self.count > 0, "{}: nothing was compared", self.what);
    }
}

/// One arm of a vector file: by stratum and bucket, the counts by function; exposures; pods by bucket.
pub struct ArmData {
    pub counts: Vec<Vec<Vec<f64>>>,
    pub exposures: Vec<Vec<f64>>,
    pub pods: Vec<f64>,
}

impl ArmData {
    pub fn new(counts_sbf: &Value, exposures_sb: &Value, pods: &Value) -> Self {
        let counts = list(counts_sbf).iter().map(|s| list(s).iter().map(floats).collect()).collect();
        Self { counts, exposures: list(exposures_sb).iter().map(floats).collect(), pods: floats(pods) }
    }

    /// The arm in a stratum, buckets numbered from `offset`; only those with exposure.
    pub fn stratum(&self, stratum: usize, offset: usize) -> Arm<'_> {
        let buckets = self.counts[stratum].iter().zip(&self.exposures[stratum]).enumerate();
        let rows = buckets.map(|(bucket, (counts, &exposure))| whole(exposure, offset + bucket, counts));
        Arm { rows: rows.filter(|row| row.exposure > 0).collect() }
    }

    pub fn pods(&self, offset: usize) -> BTreeMap<u16, u32> {
        let pods = self.pods.iter().enumerate();
        pods.map(|(bucket, pods)| {
            (u16::try_from(offset + bucket).expect("few buckets"), format!("{pods}").parse().expect("whole pods"))
        })
        .collect()
    }
}

fn whole(exposure: f64, bucket: usize, counts: &Vec<f64>) -> BucketRow<'_> {
    let exposure = format!("{exposure}").parse().expect("whole exposure");
    let counts: &dyn BucketCounts = counts;
    BucketRow { bucket: u16::try_from(bucket).expect("few buckets"), exposure, counts: vec![counts] }
}

/// The contrast of several cells, cell x stratum as strata; pods of different cells are different pods.
pub fn contrast<'a>(cells: &[(&'a ArmData, &'a ArmData)]) -> Contrast<'a> {
    let functions = cells[0].0.counts[0][0].len();
    let (mut strata, mut head_pods, mut base_pods) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
    let (mut of_head, mut of_base) = (0, 0);
    for &(head, base) in cells {
        for stratum in 0..head.counts.len() {
            strata.push(Stratum { head: head.stratum(stratum, of_head), base: base.stratum(stratum, of_base) });
        }
        head_pods.extend(head.pods(of_head));
        base_pods.extend(base.pods(of_base));
        of_head += head.pods.len();
        of_base += base.pods.len();
    }
    Contrast::new(functions, strata, head_pods, base_pods)
}

/// The rows of shares whose e-value may reach a floor.
pub fn live_rows(contrast: &Contrast<'_>, normalization: Option<f64>, e_floor: f64) -> LiveRows {
    live_rows_of(Moments::measure(contrast, Model::Share, MIN_COUNT), normalization, e_floor, MIN_EFFECT)
}

/// ln P(F(1, `d2`) > `f`).
pub fn ln_f1_tail(f: f64, d2: f64) -> f64 {
    F1Tail::new(d2).ln_tail(f)
}
