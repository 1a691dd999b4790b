"""Vectors of load scaling (`scaling.json`): elasticities and their errors between pods by statsmodels (Poisson regression with a level for each
pod, clustered by pod), drift over time by NumPy. `python reference_scaling.py`, deterministic."""
import json
import os

import numpy as np
import statsmodels.api as sm
from scipy import stats

BLOCKS, BAND, ENOUGH = 15, 0.05, 200


def fit(load, requests, samples):
    served = requests > 0
    w, k = np.nonzero(served)
    y = samples[w, k]
    has = np.array([samples[served[:, pod], pod].sum() > 0 for pod in range(requests.shape[1])])
    w, k, y = w[has[k]], k[has[k]], y[has[k]]
    names = np.unique(k)
    x = np.column_stack([(k[:, None] == names[None, :]).astype(float), load[w]])
    model = sm.GLM(y, x, family=sm.families.Poisson(), offset=np.log(requests[w, k]))
    fitted = model.fit(tol=1e-14, maxiter=200, cov_type="cluster", cov_kwds={"groups": k, "use_correction": False})
    mean = np.zeros_like(requests)
    mean[w, k] = fitted.fittedvalues
    centre = np.where(mean.sum(0) > 0, (mean * load[:, None]).sum(0) / np.where(mean.sum(0) > 0, mean.sum(0), 1), 0)
    off = (load[:, None] - centre) * (mean > 0)
    information = (mean * off**2).sum()
    seen = np.where(mean > 0, samples, 0)
    score = ((seen - mean) * off).sum(1)
    relative = (seen - mean).sum(1) / np.sqrt(mean.sum(1))
    return {"beta": fitted.params[-1], "information": information, "between": fitted.cov_params()[-1, -1] * information**2,
            "over_time": (score**2).sum(), "relative": np.where(mean.sum(1) > 0, relative, 0), "samples": seen.sum()}


def elasticities(numbers, requests, functions):
    served = requests > 0
    kept = served.any(1)
    numbers, requests, served = np.array(numbers)[kept], requests[kept], served[kept]
    load = np.log(requests.sum(1) / served.sum(1))
    load = load - np.median(load)
    each = -(-(numbers[-1] - numbers[0] + 1) // BLOCKS)
    block = (numbers - numbers[0]) // each
    means = np.array([load[block == one].mean() for one in sorted(set(block))])
    rise = max(means[j] - means[i] for j in range(len(means)) for i in range(j + 1))
    fall = max(means[i] - means[j] for j in range(len(means)) for i in range(j + 1))
    pods, n = int(served.any(0).sum()), len(numbers)
    fits = [fit(load, requests, samples[kept]) for samples in functions]
    neighbours = np.nonzero(np.diff(numbers) == 1)[0]
    telling = [one for one in fits if one["samples"] >= ENOUGH]
    excess = np.mean([(one["relative"]**2).sum() / (n - 2) - 1 for one in telling])
    after = np.mean([(one["relative"][neighbours] * one["relative"][neighbours + 1]).mean() for one in telling])
    rho = 0.0
    if excess > 2 * np.sqrt(2 / (n * len(telling))):
        rho = float(np.clip((after / excess + 2 / n) / (1 - 4 / n), 0, 0.95))
    lasting = (1 + rho) / (1 - rho)
    left = n - 2 * lasting
    df = min(left * (1 - rho**2) / (1 + rho**2), pods - 1)
    slopes = []
    for one in fits:
        counting = one["information"]
        drift = max(one["over_time"] * n / left - counting, 0) * lasting
        error = np.sqrt(max(one["between"] * pods / (pods - 1), counting) + drift) / one["information"]
        if not (df >= 2 and left > 0):
            slopes.append(None)
            continue
        p = stats.t.logsf((abs(one["beta"]) - BAND) / error, df), stats.t.logsf((abs(one["beta"]) + BAND) / error, df)
        reach = stats.t.ppf(0.975, df) * error
        slopes.append({"beta": one["beta"], "error": error, "ln_p": float(np.logaddexp(*p)), "low": one["beta"] - reach, "high": one["beta"] + reach})
    return {"persistence": rho, "df": df, "span": float(np.exp(max(rise, fall))), "slopes": slopes}


def case(rng, pods, minutes, drift, autoscaled, gaps):
    numbers = [n for n in range(minutes) if not (gaps and n % 7 == 3)]
    ln_load = 0.8 * np.sin(np.pi * np.arange(minutes) / (minutes - 1))[numbers]
    uneven = np.exp(0.05 * rng.standard_normal((len(numbers), pods)))
    requests = np.exp(ln_load)[:, None] * np.exp(0.3 * rng.standard_normal(pods)) * 1000 * uneven
    if autoscaled:
        requests[ln_load < 0.4, pods // 2:] = 0
    requests = np.round(requests)
    functions = []
    for beta, rate in ((0.0, 30.0), (0.0, 9.0), (0.3, 6.0), (0.0, 3.0), (-1.0, 10.0), (1.5, 0.2), (0.0, 1.0)):
        course = np.zeros(minutes)
        for n in range(1, minutes):
            course[n] = 0.6 * course[n - 1] + 0.8 * drift * rng.standard_normal()
        mean = requests * np.exp(0.2 * rng.standard_normal(pods)) * rate / 1000 * np.exp(beta * ln_load + course[numbers])[:, None]
        functions.append((rng.poisson(mean) + (requests == 0) * rng.poisson(3.0, mean.shape)).astype(float))
    return numbers, requests, functions


def main():
    rng = np.random.default_rng(7)
    cases = []
    for pods in (3, 5, 20):
        for minutes in (14, 30, 47):
            for drift in (0.0, 0.2):
                autoscaled, gaps = rng.random() < 0.4 and pods > 3, rng.random() < 0.4
                numbers, requests, functions = case(rng, pods, minutes, drift, autoscaled, gaps)
                cases.append({"intervals": numbers, "requests": requests.tolist(), "samples": [one.tolist() for one in functions],
                              "expect": elasticities(numbers, requests, functions)})
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "scaling.json"), "w") as out:
        text = json.dumps(cases, separators=(",", ":")).replace(".0,", ",").replace(".0]", "]")
        out.write(text + "\n")


main()
