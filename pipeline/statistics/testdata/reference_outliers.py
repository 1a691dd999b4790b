#!/usr/bin/env python3
"""Reference for the test for a minority of outlying pods: predictive t per head pod on the log share less the pod's own scale, combined over pods.
numpy + scipy, on top of reference_ql.py.  python reference_outliers.py  writes outliers.json beside it (deterministic)."""
import json, math, os
import numpy as np
from scipy.stats import t as Td, chi2, beta as Bd
import reference_ql as R
MIN_PER_POD = 5.0; SCALE_FUNCTIONS = 1000; LARGEST_RESIDUAL = .98; FAR = .01; PRIOR = 20.0
def groups_of(n1, n0):
    """pods that share strata, directly or through others, are one group (time blocks: one group; hardware: one for each). n[S,P]. Returns group of each head and base pod"""
    n = np.concatenate([n1, n0], 1) > 0; g = np.arange(n.shape[1])
    while True:
        new = g.copy()
        for s in n: new[s] = new[s].min()
        if (new == g).all(): break
        g = new
    u = np.unique(g); g = np.searchsorted(u, g); return g[:n1.shape[1]], g[n1.shape[1]:]
def by_group(w, g, G): return np.array([w[g == k].sum(0) for k in range(G)])
def centre(y, u, t, g, G):
    w = 1/(t+u); W = by_group(w, g, G); return by_group(w*y, g, G)/W, W
def fit(y, u, g, G):
    """y, u [K,F]: log ratio and its sampling variance of base pods. Paule-Mandel: tau2 with sum (y-m_g)^2/(tau2+u) = K-G; as dispersion 1 + tau2 mu (below 1: the plain ratio), moderated over functions"""
    K, F = y.shape; df = K-G; mu = (1/u).mean(0)
    def q(t): m, _ = centre(y, u, t, g, G); return ((y-m[g])**2/(t+u)).sum(0)
    lo, hi = np.zeros(F), np.full(F, 1e-8)
    while (q(hi) > df).any(): hi = np.where(q(hi) > df, hi*4, hi)
    for _ in range(200): mid = (lo+hi)/2; up = q(mid) > df; lo, hi = np.where(up, mid, lo), np.where(up, hi, mid)
    q0 = q(np.zeros(F)); phi = np.where(q0 > df, 1+hi*mu, q0/df); pt, dt, pr = R.moderate(phi, mu, np.ones(F, bool), float(df)); tau2 = (pt-1)/mu; m, W = centre(y, u, tau2, g, G); return m, W, tau2, float(dt[0]), pr
def recalibrate(lp, lp0):
    """the tail of the pods' p as the base pods have it: beyond .01 their share and the mean excess of -ln p, never less than an exact p has"""
    far = lp0 < math.log(FAR); k = far.sum(); share = max(FAR, (k+PRIOR)/(lp0.size+PRIOR/FAR)); excess = max(1.0, ((math.log(FAR)-lp0[far]).sum()+PRIOR)/(k+PRIOR))
    def f(l): return np.where(l >= math.log(FAR), l*math.log(share)/math.log(FAR), math.log(share)-(math.log(FAR)-l)/excess)
    return f(lp), f(lp0), share, excess
def outliers(X1, n1, X0, n0, min_per_pod=MIN_PER_POD, min_count=R.MIN_COUNT):
    """X[S,P,F] counts, n[S,P] samples. Head = 1, base = 0. Strata without an arm are dropped, and pods that are in no other."""
    X1, X0, n1, n0 = (np.asarray(v, float) for v in (X1, X0, n1, n0)); keep = (n1.sum(1) > 0) & (n0.sum(1) > 0); X1, X0, n1, n0 = X1[keep], X0[keep], n1[keep], n0[keep]
    i1, i0 = n1.sum(0) > 0, n0.sum(0) > 0; X1, n1, X0, n0 = X1[:, i1], n1[:, i1], X0[:, i0], n0[:, i0]; K1, K0, F = n1.shape[1], n0.shape[1], X1.shape[2]; g1, g0 = groups_of(n1, n0); G = int(g0.max())+1; df = K0-G
    p = (X1.sum(1)+X0.sum(1))/(n1.sum(1)+n0.sum(1))[:, None]; E1, E0 = np.einsum("sf,sp->pf", p, n1), np.einsum("sf,sp->pf", p, n0); x1, x0 = X1.sum(0), X0.sum(0); tot = x1.sum(0)+x0.sum(0)
    ok = (tot >= min_count) & (tot < n1.sum()+n0.sum()) & (E1.mean(0) >= min_per_pod) & (E0.mean(0) >= min_per_pod) & (df > 0); idx = np.flatnonzero(ok); nan = lambda *s: np.full(s, np.nan)
    out = dict(tested=ok, groups=G, ln_p=nan(F), ln_p_fisher=nan(F), ln_p_against=nan(F), tau2=nan(F), t=nan(K1, F), log_ratio=nan(K1, F), ln_p_pod=nan(K1, F), head_scale=np.zeros(K1), base_scale=np.zeros(K0), df=0.0, tail_share=FAR, tail_excess=1.0)
    if not len(idx): return out
    x1, x0, E1, E0 = x1[:, idx], x0[:, idx], np.maximum(E1[:, idx], 1e-6), np.maximum(E0[:, idx], 1e-6); u1, u0 = 1/E1, 1/E0; # a pod whose strata lack the function weighs nothing
    y1, y0 = np.log((x1+.5)/(E1+.5)), np.log((x0+.5)/(E0+.5)); c1, c0 = np.zeros(K1), np.zeros(K0)
    if len(idx) >= 20:  # the pod's own scale, over the best counted functions
        b = np.sort(np.argsort(-tot[idx], kind="stable")[:SCALE_FUNCTIONS]); m, W, tau2, _, _ = fit(y0[:, b], u0[:, b], g0, G); s = lambda y, u, g: np.array([math.log(R.scale_tukey_from(y[i, b]-m[g[i]], u[i, b]+tau2)) for i in range(len(y))]); c1, c0 = s(y1, u1, g1), s(y0, u0, g0)
    E1, E0 = np.maximum(E1*np.exp(c1)[:, None], 1e-6), np.maximum(E0*np.exp(c0)[:, None], 1e-6); u1, u0 = 1/E1, 1/E0
    m, W, tau2, _, _ = fit(np.log((x0+.5)/(E0+.5)), u0, g0, G); mu = E0.mean(0); a = tau2*mu; o = mu*(2+3*a)/(1+3*a+3*a*a)  # the offset under which ln(x+o) has no skewness; none for large counts of pods that differ
    y1, y0 = (1+o/E1)*np.log((x1+o)/(E1+o)), (1+o/E0)*np.log((x0+o)/(E0+o)); m, W, tau2, D, _ = fit(y0, u0, g0, G)
    t = (y1-m[g1])/np.sqrt(tau2+u1+1/W[g1]); lp = math.log(2)+Td.logsf(np.abs(t), D); pair = np.bincount(g0)[g0] > 1  # a base pod alone in its group has no residual
    r2 = ((y0-m[g0])**2)[pair]/(tau2+u0-1/W[g0])[pair]; r2 = np.minimum(r2, LARGEST_RESIDUAL*D); lp0 = math.log(2)+Td.logsf(np.sqrt(r2*(D-1)/(D-r2)), D-1) if D > 1 else np.zeros_like(r2)
    q, q0, share, excess = recalibrate(lp, lp0); T, C = -2*q.sum(0), -2*q0.sum(0)*df/pair.sum(); fisher = chi2.logsf(T, 2*K1); against = np.where(C > 0, Bd.logsf(T/(T+np.where(C > 0, C, 1)), K1, df), 0.0)
    for k, v in dict(ln_p=np.maximum(fisher, against), ln_p_fisher=fisher, ln_p_against=against, tau2=tau2).items(): out[k][idx] = v
    out["t"][:, idx] = t; out["ln_p_pod"][:, idx] = q; out["log_ratio"][:, idx] = np.log((x1+.5)/(E1+.5))-np.log((x0.sum(0)+.5)/(E0.sum(0)+.5)); out.update(head_scale=c1, base_scale=c0, df=D, tail_share=share, tail_excess=excess, lam=C/(2*df)); return out
if __name__ == "__main__":
    HERE = os.path.dirname(os.path.abspath(__file__)); rng = np.random.default_rng(404); cases = []
    def J(v):
        v = R.J(v); return {math.inf: "inf", -math.inf: "-inf"}.get(v, v) if isinstance(v, float) else v
    for name, S, K1, K0, F, cv, rate, hit, nested in (("one-stratum", 1, 10, 24, 40, .1, 20000, 1, False), ("blocks", 3, 6, 12, 30, .1, 8000, 2, False), ("hardware", 2, 6, 11, 25, .2, 8000, 1, True), ("sparse", 1, 8, 20, 60, .05, 400, 0, False), ("few-functions", 1, 5, 8, 10, .1, 20000, 1, False), ("one-head-pod", 1, 1, 30, 30, .1, 20000, 1, False), ("two-base-pods", 1, 3, 2, 25, .1, 20000, 0, False), ("one-base-pod", 1, 3, 1, 25, .1, 20000, 0, False), ("two-base-pods-few-functions", 1, 3, 2, 10, .1, 20000, 0, False), ("hardware-only-functions", 2, 6, 11, 25, .1, 8000, 1, True), ("heavy-tails", 1, 12, 40, 60, .6, 20000, 0, False)):
        base = np.arange(1, F+1)**-1.0; base /= base.sum(); drift = np.exp(.1*rng.standard_normal((S, F))); arms = []
        for K in (K1, K0):
            z = rng.standard_t(3, (K, F))/math.sqrt(3) if name == "heavy-tails" else rng.standard_normal((K, F)); m = np.exp(cv*z)
            if K is K1 and hit: m[:hit, 3] *= 1.8
            X = np.zeros((S, K, F), int)
            for s in range(S):
                w = base*m*drift[s]; w /= w.sum(1, keepdims=True); X[s] = rng.poisson(w*rate*np.exp(.3*rng.standard_normal((K, 1))))
            if name == "hardware-only-functions": X[0, :, 7] = 0
            if nested: X[(np.arange(K)+1) % S, np.arange(K)] = 0
            if name == "blocks" and K == K1: X[0] = 0  # the head came later; its first block has no head at all
            if name == "blocks" and K == K0: X[2, :3] = 0
            arms.append(X)
        X1, X0 = arms; n1, n0 = X1.sum(2), X0.sum(2); r = outliers(X1, n1, X0, n0)
        cases.append(dict(name=name, head=X1.tolist(), base=X0.tolist(), expect={k: J(v) for k, v in r.items() if k != "lam"}))
    json.dump(cases, open(f"{HERE}/outliers.json", "w"))
