//! The likelihood ratio of two levels whose variance is A mu + B mu^2 in each arm.

/// One arm's level of a function with its variance.
#[derive(Clone, Copy, Debug)]
pub struct Level {
    /// The share, or the count per request.
    pub level: f64,
    /// A: the variance of counting.
    pub linear: f64,
    /// B: the variance between pods.
    pub quadratic: f64,
}

impl Level {
    /// The variance at this level.
    pub fn variance(&self) -> f64 {
        self.linear * self.level + self.quadratic * self.level * self.level
    }

    /// 2 x the integral from `mu` to the level y of (y - t) / (A t + B t^2) (`dev1`).
    fn deviance(&self, mu: f64) -> f64 {
        let (y, a, b) = (self.level, self.linear, self.quadratic);
        let off = y - mu;
        let first = if y > 0.0 { y * ln_ratio(y, mu, off) } else { 0.0 };
        let second = if b * y.max(mu) < 1e-9 * a {
            off
        } else {
            let k = a / b;
            (y + k) * ln_ratio(y + k, mu + k, off)
        };
        (2.0 / a * (first - second)).max(0.0)
    }
}

/// ln(`one` / `other`), whose difference is `off`: exact where they are close, and where one is a tiny part of the other.
fn ln_ratio(one: f64, other: f64, off: f64) -> f64 {
    let r = off / other;
    if r.abs() < 0.5 { r.ln_1p() } else { (one / other).ln() }
}

/// The statistic of head = `ratio` x base; the common level is the root of a quadratic (`deviance`).
pub fn deviance(head: &Level, base: &Level, ratio: f64) -> f64 {
    let a = ratio * (base.quadratic + head.quadratic);
    let b = ratio * base.linear + head.linear - head.level * base.quadratic - ratio * base.level * head.quadratic;
    let d = head.level * base.linear + base.level * head.linear;
    let root = (b * b + 4.0 * a * d).sqrt();
    let mu = match () {
        () if b > 0.0 => 2.0 * d / (b + root),
        () if a > 0.0 => (root - b) / (2.0 * a),
        () => root - b,
    };
    let mu = mu.max(1e-300);
    head.deviance(ratio * mu) + base.deviance(mu)
}
