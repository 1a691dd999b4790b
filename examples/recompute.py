"""Recomputes every significant or flagged row of `cells` from the table `evidence` and compares all of its figures.

The figures are those of sections 5 and 16 of docs/semantics.md: levels, dispersions (phi) with the clumping in time (f) in them,
degrees of freedom, the statistic, its p-values, the ratio with its interval, the e-value that flags are raised by with its interval;
of rows `(all)` the ratio per request. What a test takes from the other functions of its cell is in `evidence` as columns. Only the
standard library computes; pyarrow reads. deploy.ipynb shows the same for one row, step by step.

    python examples/recompute.py OUTPUT
"""

import argparse
import json
import math
import sys
from collections import defaultdict
from pathlib import Path
from statistics import NormalDist

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

KEY = (
    "scope", "service", "profile_type", "measure", "count_kind", "base_build", "head_build", "region", "cohort", "function", "window_end_at",
)
SIGNIFICANT = ("regressed", "improved")
CLASSES = (1 / 4, 1, 4, 16, 64, 256)
# Spreads of the effect that the e-value bets on, equally.
BETS = (0.05, 0.2, 0.8, 3.2)
# The largest difference that is taken for rounding: in proportion, of ln p above -1 as it is.
CLOSE = 1e-9
# The same of ln p above -5: there p falls with the root of a statistic near 0, whose rounding shows.
CLOSE_NEAR_ONE = 1e-6


# ---- tails ----
def ln_tail(statistic, df):
    """ln P(F(1, df) > statistic): the incomplete beta function as a continued fraction."""
    if statistic <= 0:
        return 0.0
    a, b, x, y = df / 2, 0.5, df / (df + statistic), statistic / (df + statistic)
    ln_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) - a * math.log1p(statistic / df) + b * math.log(y)
    if x < (a + 1) / (a + b + 2):
        return ln_front + math.log(fraction(a, b, x) / a)
    return math.log1p(-math.exp(ln_front) * fraction(b, a, y) / b)


def fraction(a, b, x):
    """Lentz's method."""
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, 10_000):
        for term in (m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)), -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))):
            d, c = 1 / (1 + term * d), 1 + term / c
            value *= d * c
        if abs(d * c - 1) < 1e-16:
            break
    return value


def bisect(is_beyond, near, far):
    """The place between `near` and `far` from which on `is_beyond` holds."""
    while True:
        middle = (near + far) / 2
        if middle in (near, far):
            return middle
        near, far = (near, middle) if is_beyond(middle) else (middle, far)


# ---- one arm ----
class Arm:
    """One arm of a row in the strata that both arms share."""

    def __init__(self, rows, exposure, strata):
        rows = [row for row in rows if row["stratum"] in strata]
        self.buckets = defaultdict(dict)
        for row in rows:
            self.buckets[row["bucket"]][row["stratum"]] = row
        self.pods = {bucket: max(next(iter(parts.values()))["pods"], 1) for bucket, parts in self.buckets.items()}
        self.n = {j: {s: float(row[exposure]) for s, row in parts.items()} for j, parts in self.buckets.items()}
        self.x = {j: {s: float(row["count"]) for s, row in parts.items()} for j, parts in self.buckets.items()}
        self.exposure, self.count = sum(row[exposure] for row in rows), sum(row["count"] for row in rows)
        self.shared = rows[0]
        self.clumping = clumping(rows) if exposure == "samples" else 1.0

    def weigh(self, by_load):
        """Weights of buckets: small functions count samples (`by_load` 0), large ones pods."""
        self.w = {j: 1 / (1 + by_load * sum(n.values()) / self.pods[j]) for j, n in self.n.items()}

    def weighted(self, figure, s):
        return sum(self.w[j] * figure[j][s] for j in self.buckets if s in figure[j])

    def dispersion(self, h, big_w, pooled, common):
        """Variance seen, and its degrees of freedom: residuals of a bucket are summed over strata before they are squared."""
        w, n, x = self.w, self.n, self.x
        total = {s: self.weighted(n, s) for s in h}
        share = {s: self.weighted(x, s) / total[s] for s in h}
        v = {j: sum(h[s] ** 2 * w[j] * n[j][s] for s in n[j]) for j in n}
        lev = {j: sum(h[s] ** 2 * (w[j] * n[j][s]) ** 2 / total[s] for s in n[j]) / v[j] for j in n}
        live = [j for j in n if 1 - lev[j] > 1e-9]
        if live:
            u = {j: sum(h[s] * w[j] * (x[j][s] - n[j][s] * share[s]) for s in n[j]) for j in live}
            of_live = sum(v[j] for j in live)
            seen = sum(u[j] ** 2 / (1 - lev[j]) for j in live) * sum(v.values()) / of_live
            part = {j: v[j] / of_live for j in live}
            both = 0.0
            for j in live:
                for k in live:
                    overlap = sum(h[s] ** 2 * w[j] * n[j][s] * w[k] * n[k][s] / total[s] for s in n[j] if s in n[k])
                    rho2 = 1.0 if j == k else overlap**2 / (v[j] * v[k] * (1 - lev[j]) * (1 - lev[k]))
                    both += part[j] * part[k] * rho2
            return seen / big_w**2, 1 / both
        if len(n) < 2:
            return math.nan, 0.0
        # Each pod is alone in its strata: residuals from the arm's level over all strata.
        rho = sum(h[s] * self.weighted(x, s) for s in h) / sum(common[s] * pooled[s] for s in h)
        u = {j: sum(h[s] * w[j] * (x[j][s] - rho * n[j][s] * pooled[s]) for s in n[j]) for j in n}
        y = {j: v[j] / sum(v.values()) for j in n}
        yz = [y[j] ** 2 / (1 - y[j]) for j in n]
        df = 1 / (sum(one**2 for one in y.values()) + sum(yz) ** 2 - sum(one**2 for one in yz))
        return sum(u[j] ** 2 / (1 - y[j]) for j in n) / big_w**2, df


def clumping(rows):
    """How much more the samples of a function come together in profiles than the load of pods explains, at least 1."""
    excess = sum(row["pairs"] - row["count"] * (row["count"] - 1) * row["concentration"] for row in rows)
    free = sum(row["count"] * (1 - row["concentration"]) for row in rows)
    return max(1.0, 1 + excess / free) if free > 0 else 1.0


# ---- the test ----
class Test:
    """The test of one row."""

    def __init__(self, rows, of_all):
        exposure = "requests" if of_all else "samples"
        sides = [[row for row in rows if row["arm"] == name and row[exposure] > 0] for name in ("head", "base")]
        strata = sorted(set.intersection(*({row["stratum"] for row in side} for side in sides)))
        self.arms = [Arm(side, exposure, strata) for side in sides]
        pods = [sum(arm.pods.values()) for arm in self.arms]
        whole = sum(arm.exposure for arm in self.arms)
        cost, per_pod = sum(arm.count for arm in self.arms) / whole, whole / sum(pods)
        tau2 = [arm.shared["pod_variance"] for arm in self.arms]
        kappa = sum(t / k for t, k in zip(tau2, pods)) / sum(1 / k for k in pods) * cost * per_pod
        weights = 0 if kappa < 1 / 8 else min(CLASSES, key=lambda one: abs(math.log(kappa / one)))
        for arm in self.arms:
            arm.weigh(weights / per_pod)

        mass = [{s: arm.weighted(arm.n, s) for s in strata} for arm in self.arms]
        common = {s: mass[0][s] * mass[1][s] / (mass[0][s] + mass[1][s]) for s in strata}
        big_w = sum(common.values())
        h = [{s: mass[1 - i][s] / (mass[0][s] + mass[1][s]) for s in strata} for i in (0, 1)]
        counted = [{s: arm.weighted(arm.x, s) for s in strata} for arm in self.arms]
        pooled = {s: (counted[0][s] + counted[1][s]) / (mass[0][s] + mass[1][s]) for s in strata}
        mean = sum(common[s] * pooled[s] for s in strata) / big_w
        self.p = [sum(h[i][s] * counted[i][s] for s in strata) / big_w for i in (0, 1)]

        a, b, seen, own_df, ratio = [], [], [], [], []
        for i, arm in enumerate(self.arms):
            counting = sum(h[i][s] ** 2 * pooled[s] * sum(arm.w[j] ** 2 * arm.n[j][s] for j in arm.n if s in arm.n[j]) for s in strata)
            between = sum(sum(h[i][s] * arm.w[j] * n * pooled[s] for s, n in arm.n[j].items()) ** 2 / arm.pods[j] for j in arm.n)
            a.append((1 if of_all else 1 - cost) * counting / (mean * big_w**2))
            b.append(tau2[i] * between / (mean**2 * big_w**2))
            variance, df = arm.dispersion(h[i], big_w, pooled, common)
            is_seen = self.p[i] > 0 and df > 0
            own_df.append(df)
            seen.append(df if is_seen else 0.0)
            ratio.append(variance / (a[i] * self.p[i] + b[i] * self.p[i] ** 2) if is_seen else 0.0)
        self.phi = [self.moderated(i, seen, ratio, a[i], b[i]) for i in (0, 1)]
        earned = [seen[i] + arm.shared["calm"] * arm.shared["prior_df"] for i, arm in enumerate(self.arms)]
        dfs = [earned[i] if earned[i] > 0 else own_df[i] for i in (0, 1)]
        self.a, self.b = [f * one for f, one in zip(self.phi, a)], [f * one for f, one in zip(self.phi, b)]
        level = sum(self.p) / 2
        r = [self.a[i] / level + self.b[i] for i in (0, 1)]
        self.variance = sum(r)
        self.df = sum(r) ** 2 / sum(one**2 / df for one, df in zip(r, dfs))
        self.theta = -math.inf if self.p[0] == 0 else math.inf if self.p[1] == 0 else math.log(self.p[0] / self.p[1])

    def moderated(self, i, df, ratio, a, b):
        """phi: the dispersion seen, drawn towards what the other functions let expect, and never below counting noise."""
        own, other = self.arms[i].shared, self.arms[1 - i].shared
        centre, g = own["prior_dispersion"], own["prior_df"]
        if other["prior_df"] + df[1 - i] > 0:
            worth = other["prior_df"] + df[1 - i]
            expected = (other["prior_df"] * other["prior_dispersion"] + df[1 - i] * ratio[1 - i]) / worth
            centre *= max(1.0, expected / other["prior_dispersion"])
        drawn = [(d * centre + df[i] * ratio[i]) / (d + df[i]) if d + df[i] > 0 else 0.0 for d in (g, own["calm"] * g)]
        at = self.p[i] if self.p[i] > 0 else sum(self.p) / 2
        floor = self.arms[i].clumping / (1 + b * at / a)
        return max(*(drawn if g + df[i] > 0 else (1.0, 1.0)), floor)

    def statistic(self, c):
        """D(c): that the head's level is c times the base's."""
        (p1, p0), (a1, a0), (b1, b0) = self.p, self.a, self.b
        square, linear, rest = c * (b1 + b0), c * a0 + a1 - p1 * b0 - c * p0 * b1, p1 * a0 + p0 * a1
        root = math.sqrt(linear * linear + 4 * square * rest)
        m = 2 * rest / (linear + root) if linear > 0 else (root - linear) / (2 * square)
        return sum(deviance(y, level, a, b) for y, level, a, b in ((p1, c * m, a1, b1), (p0, m, a0, b0)))

    def ln_p(self, c):
        return ln_tail(self.statistic(c), self.df)

    def ln_p_band(self, c, min_effect):
        """That the change against c is at most the minimum effect."""
        away = self.theta - math.log(c)
        towards = math.copysign(min_effect, away)
        near, far = self.ln_p(c * math.exp(towards)), self.ln_p(c * math.exp(-towards))
        if abs(away) > min_effect:
            return near + math.log1p(math.exp(far - near)) - math.log(2)
        return math.log1p(-math.exp(near) / 2 + math.exp(far) / 2)

    def quantile(self, ln_p):
        """The statistic at which ln p is this."""
        return bisect(lambda x: ln_tail(x, self.df) < ln_p, 0.0, 1e9)

    def ln_e(self, ln_p):
        """ln of the e-value of a row with this ln p."""
        return ln_evidence(NormalDist().inv_cdf(max(math.exp(ln_p), 1e-300) / 2) ** 2, self.variance)

    def always_valid_interval(self):
        """The ratio with every ratio whose e-value is below 20."""
        z2 = bisect(lambda z2: ln_evidence(z2, self.variance) > math.log(20), 0.0, 1e9)
        return self.interval(math.log(2 * NormalDist().cdf(-math.sqrt(z2))))

    def change_of_share(self, shares):
        """The difference of two shares with its 95 % interval."""
        half = math.sqrt(self.quantile(math.log(0.05)) * sum(a * p + b * p * p for p, a, b in zip(self.p, self.a, self.b)))
        change = shares[0] - shares[1]
        return change, change - half, change + half

    def interval(self, ln_p=math.log(0.05)):
        """The ratio with every ratio that has a larger p, by default one above .05."""
        limit = self.quantile(ln_p)
        ends = (bisect(lambda x: self.statistic(math.exp(x)) > limit, self.theta, self.theta + far) for far in (-60.0, 60.0))
        return tuple(math.exp(x) for x in (self.theta, *ends))


def ln_evidence(z2, variance):
    """ln of the mean of what the bets return at this z^2."""
    returns = [math.log(variance / (variance + t * t)) / 2 + z2 * t * t / (2 * (variance + t * t)) for t in BETS]
    largest = max(returns)
    return largest + math.log(sum(math.exp(one - largest) for one in returns) / len(BETS))


def deviance(y, m, a, b):
    first = y * math.log(y / m) if y > 0 else 0.0
    k = a / b if b * max(y, m) >= 1e-9 * a else None
    second = y - m if k is None else (y + k) * math.log1p((y - m) / (m + k))
    return max(0.0, 2 / a * (first - second))


def with_interval(name, ratio, factor=1.0):
    return {name + end: value / factor for end, value in zip(("", "_low", "_high"), ratio)}


def recompute(rows, row, min_effect):
    """The figures of a row of `cells`, from its evidence."""
    of_all = row["function"] == "(all)"
    test = Test(rows, of_all)
    if of_all:
        ln_p = test.ln_p(1.0)
        return {"per_request_ln_p": ln_p, "ln_e": test.ln_e(ln_p), **with_interval("per_request_ratio", test.interval())}
    factor, *ends = (test.arms[0].shared[name] for name in ("normalization_factor", "smallest_factor", "largest_factor"))
    found = {
        "head_count": test.arms[0].count,
        "base_count": test.arms[1].count,
        "head_total": test.arms[0].exposure,
        "base_total": test.arms[1].exposure,
        "head_dispersion": test.phi[0],
        "base_dispersion": test.phi[1],
        "df": test.df,
        "statistic": test.statistic(factor),
        "ln_p": test.ln_p(1.0),
        "adjusted_ln_p": 0.0,
        "ln_p_row": 0.0,
        **with_interval("share_delta", test.change_of_share([arm.count / arm.exposure for arm in test.arms])),
    }
    # Against every admissible factor the function must have moved in the same direction.
    if all((test.theta - math.log(one)) * (test.theta - math.log(factor)) > 0 for one in ends):
        found["adjusted_ln_p"] = max(test.ln_p(one) for one in ends)
        found["ln_p_min_effect"] = max(test.ln_p_band(one, min_effect) for one in ends)
        # What the base's own young pods showed is not in `evidence`.
        young = -math.inf if row["young_ln_p"] is None else row["young_ln_p"]
        found["ln_p_row"] = min(0.0, max(found["adjusted_ln_p"], found["ln_p_min_effect"], young))
    # The e-value of what the base's own young pods showed, too.
    if row["young_ln_p"] is None:
        found["ln_e"] = test.ln_e(found["adjusted_ln_p"])
    if row["head_count"] > 0 and row["base_count"] > 0:
        ratio = test.interval()
        found.update(with_interval("ratio", ratio), **with_interval("adjusted_ratio", ratio, factor))
        if row["always_valid_ratio"] is not None:
            found.update(with_interval("always_valid_ratio", test.always_valid_interval(), factor))
    return found


# ---- an output folder ----
def difference(name, found, expected):
    if expected is None:
        return math.inf
    if "ln_p" in name:
        # On the log scale where p is near 1, else in proportion.
        return abs(found - expected) / max(1.0, abs(expected))
    return 0.0 if found == expected else abs(found - expected) / max(abs(found), abs(expected))


def read(folder, is_wanted=None):
    """The rows of a table for which `is_wanted` holds, and what its first file says about the run."""
    files = [pq.ParquetFile(file) for file in sorted(folder.rglob("*.parquet"))]
    tables = (file.read() for file in files)
    rows = [row for table in tables for row in (table.filter(is_wanted(table)) if is_wanted else table).to_pylist()]
    return rows, files[0].metadata.metadata


class Comparison:
    """What recomputing an output folder came to."""

    def __init__(self):
        self.recomputed, self.significant = 0, 0
        # The largest difference by figure, and every difference beyond rounding in words.
        self.largest, self.failures = defaultdict(float), []

    def add(self, key, row, evidence, min_effect):
        self.recomputed += 1
        places = {(one["stratum"], one["arm"], one["bucket"]) for one in evidence}
        if len(places) < len(evidence):
            self.failures.append(f"{key}: the key of evidence is not unique")
        for name, found in recompute(evidence, row, min_effect).items():
            off = difference(name, found, row[name])
            self.largest[name] = max(self.largest[name], off)
            near_one = "ln_p" in name and found > -5
            if not off <= (CLOSE_NEAR_ONE if near_one else CLOSE):
                self.failures.append(f"{key}: {name} is {row[name]}, recomputed {found}")


def compare(output):
    """Recomputes every row of an output folder that has evidence, and compares it with the figures of `cells`."""
    behind = defaultdict(list)
    for row in read(output / "evidence")[0]:
        behind[tuple(row[name] for name in KEY)].append(row)
    functions = pa.array(sorted({key[KEY.index("function")] for key in behind}), pa.string())

    def is_wanted(table):
        is_significant = pc.is_in(table["verdict"], pa.array(SIGNIFICANT))
        return pc.or_(is_significant, pc.is_in(table["function"], functions))

    rows, about = read(output / "cells", is_wanted)
    min_effect = json.loads(about[b"fleetdiff.configuration"])["dataflow"]["min_effect"]
    done = Comparison()
    for row in rows:
        key = tuple(row[name] for name in KEY)
        evidence = behind.pop(key, None)
        is_significant = row["verdict"] in SIGNIFICANT and row["reason"] != "rare"
        done.significant += is_significant
        if evidence is not None:
            done.add(key, row, evidence, min_effect)
        elif is_significant:
            done.failures.append(f"{key}: significant, without evidence")
    done.failures += [f"{key}: evidence without a row" for key in behind]
    return done


def main():
    parser = argparse.ArgumentParser(description="Recomputes the significant rows of an output folder from its table evidence.")
    parser.add_argument("output", type=Path, help="the folder that fleetdiff wrote")
    done = compare(parser.parse_args().output)
    for name, off in done.largest.items():
        print(f"{name}: largest difference {off:.1e}")
    for failure in done.failures[:20]:
        print(f"FAILED {failure}", file=sys.stderr)
    print(f"{done.recomputed} rows recomputed, {done.significant} of them significant, {len(done.failures)} failures")
    return 1 if done.failures or not done.significant else 0


if __name__ == "__main__":
    sys.exit(main())
