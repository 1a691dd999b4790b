"""Vectors of load scaling (`scaling.json`): Poisson regression with a level for each pod by statsmodels, two-way clustered errors from its
one-way ones. `python reference_scaling.py`, deterministic."""
import json
import os

import numpy as np
import statsmodels.api as sm
from scipy import stats

BLOCKS, BAND = 15, 0.05


def blocks(numbers):
    each = -(-(numbers[-1] - numbers[0] + 1) // BLOCKS)
    place = [(number - numbers[0]) // each for number in numbers]
    names = sorted(set(place))
    return np.array([names.index(one) for one in place])


def slope(numbers, requests, samples):
    served = requests > 0
    kept = served.any(1)
    numbers, requests, samples, served = np.array(numbers)[kept], requests[kept], samples[kept], served[kept]
    load = np.log(requests.sum(1) / served.sum(1))
    load = load - np.median(load)
    block = blocks(list(numbers))
    of_block = np.array([load[block == one].mean() for one in range(block.max() + 1)])
    rise = max(of_block[j] - of_block[i] for j in range(len(of_block)) for i in range(j + 1))
    fall = max(of_block[i] - of_block[j] for j in range(len(of_block)) for i in range(j + 1))
    pods = served.any(0)
    w, k = np.nonzero(served)
    y = samples[w, k]
    has = np.array([samples[served[:, pod], pod].sum() > 0 if pods[pod] else False for pod in range(requests.shape[1])])
    use = has[k]
    w, k, y = w[use], k[use], y[use]
    names = np.unique(k)
    x = np.column_stack([(k[:, None] == names[None, :]).astype(float), load[w]])
    model = sm.GLM(y, x, family=sm.families.Poisson(), offset=np.log(requests[w, k]))
    def variance(groups):
        fit = model.fit(tol=1e-14, maxiter=200, cov_type="cluster", cov_kwds={"groups": groups, "use_correction": False})
        return fit.params[-1], fit.cov_params()[-1, -1]
    pods, groups = int(pods.sum()), int(block.max()) + 1
    beta, by_pod = variance(k)
    _, by_block = variance(block[w])
    _, by_both = variance(k * 1000 + block[w])
    by_pod, by_block = by_pod * pods / (pods - 1), by_block * groups / (groups - 2)
    error = np.sqrt(max(by_pod + by_block - by_both, by_pod, by_block))
    df = min(pods - 1, groups - 2)
    p = stats.t.logsf((abs(beta) - BAND) / error, df), stats.t.logsf((abs(beta) + BAND) / error, df)
    reach = stats.t.ppf(0.975, df) * error
    return {"beta": beta, "error": error, "df": df, "ln_p": float(np.logaddexp(*p)), "low": beta - reach, "high": beta + reach,
            "rise": rise, "fall": fall}


def case(rng, pods, minutes, beta, rate, autoscaled, gaps):
    numbers = [n for n in range(minutes) if not (gaps and n % 7 == 3)]
    ln_load = 0.8 * np.sin(np.pi * np.arange(minutes) / (minutes - 1))[numbers]
    requests = np.exp(ln_load)[:, None] * np.exp(0.3 * rng.standard_normal(pods)) * 1000 * np.exp(0.05 * rng.standard_normal((len(numbers), pods)))
    if autoscaled:
        requests[ln_load < 0.4, pods // 2:] = 0
    requests = np.round(requests)
    mean = requests * np.exp(0.2 * rng.standard_normal(pods)) * rate / 1000 * np.exp(beta * ln_load)[:, None]
    mean = mean * np.exp(0.03 * rng.standard_normal(len(numbers)))[:, None]
    samples = rng.poisson(mean) + (requests == 0) * rng.poisson(3.0, mean.shape)
    return numbers, requests, samples.astype(float)


def main():
    rng = np.random.default_rng(7)
    cases = []
    for pods in (3, 5, 20, 40):
        for minutes in (12, 30, 47):
            for beta, rate in ((0.0, 30.0), (0.3, 2.0), (-1.0, 10.0), (1.5, 0.2)):
                autoscaled, gaps = rng.random() < 0.4 and pods > 3, rng.random() < 0.4
                numbers, requests, samples = case(rng, pods, minutes, beta, rate, autoscaled, gaps)
                cases.append({"intervals": numbers, "requests": requests.tolist(), "samples": samples.tolist(),
                              "expect": slope(numbers, requests, samples)})
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "scaling.json"), "w") as out:
        out.write("[\n" + ",\n".join(json.dumps(one, separators=(",", ":")) for one in cases) + "\n]\n")


main()
