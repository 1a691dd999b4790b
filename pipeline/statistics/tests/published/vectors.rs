//! Reading the vectors and comparing with them.

use std::collections::BTreeMap;
use std::path::Path;

use fleetdiff_statistics::fano::fano_of_arm;
use fleetdiff_statistics::tails::F1Tail;
use fleetdiff_statistics::{Arm, Arms, BucketRow, Contrast};
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

    /// |actual - expected| <= tolerance; NaN equals NaN, infinities themselves.
    pub fn absolute(&mut self, actual: f64, expected: f64, tolerance: f64, at: &str) {
        if !expected.is_finite() {
            self.relative(actual, expected, 0.0, at);
            return;
        }
        self.count += 1;
        let off = (actual - expected).abs();
        assert!(off <= tolerance, "{} {at}: {actual}, not {expected} (off by {off:e})", self.what);
        self.worst = self.worst.max(off);
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

    /// How many values were compared.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Says what was done; nothing compared is a failure.
    pub fn finish(self) {
        eprintln!("{}: {} values compared, worst error {:.1e}", self.what, self.count, self.worst);
        assert!(self.count > 0, "{}: nothing was compared", self.what);
    }
}

/// One arm of a vector file: by stratum and bucket, the counts by function, samples and requests; pods by bucket; hops.
#[derive(Debug)]
pub struct ArmData {
    pub counts: Vec<Vec<Vec<f64>>>,
    pub samples: Vec<Vec<f64>>,
    pub requests: Vec<Vec<f64>>,
    pub pods: Vec<f64>,
    /// By function, over all strata.
    pub hop_pairs: Vec<f64>,
    /// By stratum and bucket.
    pub hop_concentrations: Vec<Vec<f64>>,
}

impl ArmData {
    pub fn new(arm: &Value) -> Self {
        let by_stratum = |key: &str| list(&arm[key]).iter().map(floats).collect();
        let counts: Vec<Vec<Vec<f64>>> =
            list(&arm["counts"]).iter().map(|s| list(s).iter().map(floats).collect()).collect();
        let all = |f: usize| counts.iter().flatten().map(|row| row[f]).sum::<f64>();
        let hop_pairs = floats(&arm["hop_squares"]).iter().enumerate().map(|(f, squares)| squares - all(f)).collect();
        Self {
            samples: by_stratum("totals"),
            requests: by_stratum("requests"),
            pods: floats(&arm["pods"]),
            hop_pairs,
            counts,
            hop_concentrations: by_stratum("hop_q"),
        }
    }

    /// Strata of buckets of one pod each, a request a sample, one hop; an empty bucket is not there.
    pub fn of_pods(counts: Vec<Vec<Vec<f64>>>) -> Self {
        let sum = |stratum: &Vec<Vec<f64>>| {
            stratum.iter().map(|counts| counts.iter().fold(0.0, |sum, x| sum + x)).collect::<Vec<f64>>()
        };
        let samples: Vec<Vec<f64>> = counts.iter().map(sum).collect();
        Self {
            requests: samples.clone(),
            hop_concentrations: samples.iter().map(|stratum| vec![1.0; stratum.len()]).collect(),
            pods: vec![1.0; samples[0].len()],
            hop_pairs: vec![0.0; counts[0][0].len()],
            samples,
            counts,
        }
    }

    /// The arm in a stratum; pairs that share a hop are those of all strata and lie in the first.
    pub fn stratum(&self, stratum: usize) -> Arm<'_> {
        let mut rows = Vec::new();
        for (bucket, counts) in self.counts[stratum].iter().enumerate() {
            rows.push(BucketRow {
                bucket: u16::try_from(bucket).expect("few buckets"),
                samples: whole(self.samples[stratum][bucket]),
                requests: whole(self.requests[stratum][bucket]),
                hop_concentration: self.hop_concentrations[stratum][bucket],
                counts: vec![counts],
            });
        }
        Arm { rows, hop_pairs: if stratum == 0 { vec![&self.hop_pairs] } else { Vec::new() } }
    }

    pub fn pods(&self) -> BTreeMap<u16, u32> {
        (0..).zip(&self.pods).map(|(bucket, pods)| (bucket, format!("{pods}").parse().expect("whole pods"))).collect()
    }

    /// Clumping in time over all strata, by function.
    pub fn fano(&self) -> Vec<f64> {
        let strata: Vec<Arm<'_>> = (0..self.counts.len()).map(|stratum| self.stratum(stratum)).collect();
        fano_of_arm(strata.iter(), self.hop_pairs.len())
    }
}

fn whole(value: f64) -> u64 {
    format!("{value}").parse().expect("a whole number")
}

/// Both arms of a case.
pub fn arms(case: &Value) -> Arms<ArmData> {
    Arms { head: ArmData::new(&case["head"]), base: ArmData::new(&case["base"]) }
}

/// The contrast of two arms.
pub fn contrast(arms: &Arms<ArmData>) -> Contrast<'_> {
    let functions = arms.head.counts[0][0].len();
    let strata = (0..arms.head.counts.len()).map(|stratum| arms.as_ref().map(|arm| arm.stratum(stratum)));
    Contrast::new(functions, strata.collect(), arms.as_ref().map(ArmData::pods))
}

/// ln P(F(1, `d2`) > `f`).
pub fn ln_f1_tail(f: f64, d2: f64) -> f64 {
    F1Tail::new(d2).ln_tail(f)
}
