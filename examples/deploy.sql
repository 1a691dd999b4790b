-- The questions of deploy.ipynb in DuckDB's SQL: one table for each, and checks that stop with an error if they do not hold.
--
--     cd examples
--     fleetdiff demo --requests 40 --output out
--     duckdb -bail < deploy.sql
--
-- With a folder of your own, replace 'out/'. What each column means: docs/tables.md.

SET TimeZone = 'UTC';
CREATE OR REPLACE TEMP VIEW cells AS FROM 'out/cells/**/*.parquet';
CREATE OR REPLACE TEMP VIEW evidence AS FROM 'out/evidence/**/*.parquet';
CREATE OR REPLACE TEMP VIEW flags AS FROM 'out/flags/**/*.parquet';
CREATE OR REPLACE TEMP VIEW incidents AS FROM 'out/incidents/**/*.parquet';
CREATE OR REPLACE TEMP VIEW comparisons AS FROM 'out/comparisons/**/*.parquet';
CREATE OR REPLACE TEMP VIEW scaling AS FROM 'out/scaling/**/*.parquet';
CREATE OR REPLACE TEMP VIEW rings AS FROM 'out/rings/**/*.parquet';
CREATE OR REPLACE TEMP VIEW heap AS FROM 'out/heap/**/*.parquet';
CREATE OR REPLACE TEMP VIEW waiting AS FROM 'out/waiting/**/*.parquet';
CREATE OR REPLACE TEMP VIEW stacks AS FROM 'out/stacks/**/*.parquet';
CREATE OR REPLACE TEMP VIEW load_curves AS FROM 'out/load_curves/**/*.parquet';
CREATE OR REPLACE TEMP VIEW ledger AS FROM 'out/ledger/**/*.parquet';
CREATE OR REPLACE TEMP VIEW rejected AS FROM 'out/rejected/**/*.parquet';
CREATE OR REPLACE TEMP VIEW clocks AS FROM 'out/clocks/**/*.parquet';
CREATE OR REPLACE TEMP VIEW limits AS FROM 'out/limits/**/*.parquet';
CREATE OR REPLACE TEMP VIEW events AS
    FROM read_json('out/alerts.jsonl', columns = {id: 'VARCHAR', type: 'VARCHAR', time: 'TIMESTAMPTZ', data: 'JSON'});

-- A claim that holds, or an error that names it.
CREATE OR REPLACE TEMP MACRO must(holds, claim) AS CASE WHEN holds THEN claim ELSE error('not so: ' || claim) END;


-- ---- 1. The tables ----
CREATE OR REPLACE TEMP TABLE overview AS
          SELECT 'cells' AS "table", count(*) AS rows FROM cells
UNION ALL SELECT 'comparisons', count(*) FROM comparisons
UNION ALL SELECT 'evidence', count(*) FROM evidence
UNION ALL SELECT 'flags', count(*) FROM flags
UNION ALL SELECT 'incidents', count(*) FROM incidents
UNION ALL SELECT 'ledger', count(*) FROM ledger
UNION ALL SELECT 'rejected', count(*) FROM rejected
UNION ALL SELECT 'clocks', count(*) FROM clocks
UNION ALL SELECT 'limits', count(*) FROM limits
UNION ALL SELECT 'scaling', count(*) FROM scaling
UNION ALL SELECT 'rings', count(*) FROM rings
UNION ALL SELECT 'heap', count(*) FROM heap
UNION ALL SELECT 'waiting', count(*) FROM waiting
UNION ALL SELECT 'stacks', count(*) FROM stacks
UNION ALL SELECT 'load_curves', count(*) FROM load_curves
ORDER BY "table";
FROM overview;


-- ---- 2. What changed? (the dots of the volcano plot) ----
CREATE OR REPLACE TEMP VIEW of_window AS
SELECT * FROM cells
WHERE scope = 'window' AND count_kind = 'self' AND window_end_at = (SELECT max(window_end_at) FROM cells);

CREATE OR REPLACE TEMP TABLE volcano AS
SELECT function, region, cohort, adjusted_ratio, -adjusted_ln_p / ln(10) AS evidence, q_value, verdict
FROM of_window
WHERE NOT is_roll_up AND adjusted_ratio IS NOT NULL
ORDER BY evidence DESC, function, region, cohort;
FROM volcano LIMIT 10;


-- ---- 3. By how much, and where? ----
CREATE OR REPLACE TEMP TABLE forest AS
SELECT region, cohort, adjusted_ratio, adjusted_ratio_low, adjusted_ratio_high, verdict
FROM of_window
WHERE NOT is_roll_up AND function = (SELECT function FROM volcano LIMIT 1)
ORDER BY cohort, region;
FROM forest;

CREATE OR REPLACE TEMP TABLE per_request AS
SELECT region, cohort, per_request_ratio, per_request_ratio_low, per_request_ratio_high, verdict
FROM of_window
WHERE function = '(all)'
ORDER BY cohort, region;
FROM per_request;


-- ---- 4. One incident, from event to evidence ----
CREATE OR REPLACE TEMP TABLE event AS
SELECT type, time, data, data->>'$.incident_id' AS incident_id, (data->>'$.sequence')::BIGINT AS sequence
FROM events
WHERE data->>'$.cause' = (SELECT function FROM volcano LIMIT 1)
ORDER BY sequence DESC
LIMIT 1;
SELECT type, time, data->>'$.summary' AS summary, data->>'$.action' AS action FROM event;

CREATE OR REPLACE TEMP TABLE course AS
SELECT changed_at, state, severity, regressed_in, effect, effect_low, effect_high
FROM incidents
WHERE incident_id = (SELECT incident_id FROM event)
ORDER BY sequence;
FROM course;
SELECT must(count(*) = 1, 'the event has one row in incidents') AS "check" FROM incidents JOIN event USING (incident_id, sequence);

CREATE OR REPLACE TEMP TABLE flag_rows AS
SELECT flags.*
FROM flags
JOIN (
    SELECT link->>'$.flag_id' AS flag_id, (link->>'$.sequence')::BIGINT AS sequence
    FROM (SELECT unnest(from_json(data->'$.evidence', '["JSON"]')) AS link FROM event)
) USING (flag_id, sequence)
ORDER BY region, cohort, count_kind;
CREATE OR REPLACE TEMP TABLE flags_standing AS
SELECT flag_id, region, cohort, count_kind, raised_at, state, window_end_at, severity, adjusted_ratio FROM flag_rows;
FROM flags_standing;
SELECT must(count(*) = (SELECT json_array_length(data->'$.evidence') FROM event), 'each flag of the event has a row in flags') AS "check" FROM flag_rows;

CREATE OR REPLACE TEMP TABLE flagged AS
SELECT *
FROM cells
SEMI JOIN flag_rows USING (scope, service, profile_type, measure, count_kind, base_build, head_build, region, cohort, function)
WHERE window_end_at = (SELECT max(window_end_at) FROM cells)
ORDER BY region, cohort, count_kind;
CREATE OR REPLACE TEMP TABLE cells_of_incident AS
SELECT region, cohort, head_pods, head_share, base_pods, base_share, adjusted_ratio, ln_p_row, ln_e, verdict, support
FROM flagged;
FROM cells_of_incident;
SELECT must(count(*) = (SELECT count(*) FROM flag_rows), 'each flag has its row in cells') AS "check" FROM flagged;

CREATE OR REPLACE TEMP TABLE buckets AS
SELECT region, cohort, count_kind, arm, bucket, pods, sum(count)::BIGINT AS count, sum(samples)::BIGINT AS samples, sum(count) / sum(samples) AS share
FROM evidence
SEMI JOIN flagged USING (scope, service, profile_type, measure, count_kind, base_build, head_build, region, cohort, function, window_end_at)
GROUP BY region, cohort, count_kind, arm, bucket, pods
ORDER BY region, cohort, count_kind, arm, bucket;
FROM buckets LIMIT 10;


-- ---- 5. The flag, recomputed from its counts ----
-- The ratio of every row of `evidence` (docs/semantics.md, section 5, steps 3 and 4); of `(all)` per request.
CREATE OR REPLACE TEMP VIEW exposed AS
SELECT *, CASE WHEN function = '(all)' THEN requests ELSE samples END AS n FROM evidence WHERE n > 0;

CREATE OR REPLACE TEMP TABLE ratios AS
WITH by_bucket AS (
    SELECT scope, service, profile_type, measure, count_kind, base_build, head_build, region, cohort, function, window_end_at, arm, bucket,
           any_value(pods) AS pods, any_value(pod_variance) AS pod_variance, sum(n)::DOUBLE AS load, sum(count)::DOUBLE AS count
    FROM exposed
    GROUP BY ALL
),
by_row AS (
    SELECT scope, service, profile_type, measure, count_kind, base_build, head_build, region, cohort, function, window_end_at,
           sum(pods) FILTER (arm = 'head') AS k1, sum(pods) FILTER (arm = 'base') AS k0,
           any_value(pod_variance) FILTER (arm = 'head') AS t1, any_value(pod_variance) FILTER (arm = 'base') AS t0,
           sum(load) / sum(pods) AS per_pod, sum(count) / sum(load) AS cost,
           (t1 / k1 + t0 / k0) / (1 / k1 + 1 / k0) * cost * per_pod AS kappa,
           CASE WHEN kappa < 1 / 8 THEN 0 ELSE 4.0::DOUBLE ** least(greatest(round(log2(kappa) / 2), -1), 4) END AS class
    FROM by_bucket
    GROUP BY ALL
),
weighed AS (
    SELECT exposed.*, 1 / (1 + class / per_pod * load / exposed.pods) AS w
    FROM exposed
    JOIN by_bucket
        USING (scope, service, profile_type, measure, count_kind, base_build, head_build, region, cohort, function, window_end_at, arm, bucket)
    JOIN by_row USING (scope, service, profile_type, measure, count_kind, base_build, head_build, region, cohort, function, window_end_at)
),
by_stratum AS (
    SELECT scope, service, profile_type, measure, count_kind, base_build, head_build, region, cohort, function, window_end_at, stratum,
           any_value(normalization_factor) AS factor,
           sum(w * n) FILTER (arm = 'head') AS n1, sum(w * n) FILTER (arm = 'base') AS n0,
           sum(w * count) FILTER (arm = 'head') AS x1, sum(w * count) FILTER (arm = 'base') AS x0
    FROM weighed
    GROUP BY ALL
)
SELECT scope, service, profile_type, measure, count_kind, base_build, head_build, region, cohort, function, window_end_at,
       sum(x1 * n0 / (n1 + n0)) / sum(x0 * n1 / (n1 + n0)) AS found, any_value(factor) AS factor
FROM by_stratum
GROUP BY ALL
ORDER BY ALL;

SELECT must(count(*) > 0 AND max(abs(found / coalesce(ratio, per_request_ratio) - 1)) < 1e-13, 'each ratio follows from its evidence') AS "check",
       must(max(abs(found / factor / adjusted_ratio - 1)) < 1e-13, 'each adjusted ratio is the ratio by the normalization factor') AS "check"
FROM ratios
JOIN cells USING (scope, service, profile_type, measure, count_kind, base_build, head_build, region, cohort, function, window_end_at);

-- The p-value: the tail of F with 1 and df degrees of freedom beyond the statistic, which is the integral of sin^(df - 1) up to the
-- angle whose tangent is sqrt(df / statistic), over the whole of it (Simpson's rule). Where several normalization factors are
-- admissible, the p-value is the largest over them; these rows are left out. The statistic itself is recomputed by recompute.py.
CREATE OR REPLACE TEMP TABLE tails AS
WITH tested AS (
    SELECT *, atan2(sqrt(df), sqrt(statistic)) AS angle
    FROM cells
    SEMI JOIN (FROM evidence WHERE smallest_factor = largest_factor)
        USING (scope, service, profile_type, measure, count_kind, base_build, head_build, region, cohort, function, window_end_at)
    WHERE adjusted_ln_p IS NOT NULL AND statistic > 0
),
steps AS (SELECT range AS i, CASE WHEN i = 2000 THEN 1 WHEN i % 2 = 1 THEN 4 ELSE 2 END AS part FROM range(1, 2001))
SELECT scope, count_kind, region, cohort, function, window_end_at, statistic, df, adjusted_ln_p,
       ln(sum(part * exp((df - 1) * (ln(sin(i * angle / 2000)) - ln(sin(angle))))) * angle / 6000) + (df - 1) * ln(sin(angle))
           - (ln(pi()) / 2 + lgamma(df / 2) - lgamma((df + 1) / 2) - ln(2)) AS found
FROM tested, steps
GROUP BY scope, count_kind, region, cohort, function, window_end_at, statistic, df, angle, adjusted_ln_p
ORDER BY ALL;
SELECT must(count(*) > 0 AND max(abs(found - adjusted_ln_p)) < 1e-6, 'each p-value is the tail of its statistic') AS "check" FROM tails;

-- The flag: weighted e-BH over all rows of the epoch (docs/semantics.md, section 8), as it stood at the last report. q is 0.05.
CREATE OR REPLACE TEMP TABLE live_rule AS
WITH family AS (
    SELECT *, function = '(all)' AS of_all,
           sqrt(least(greatest((head_count + base_count) / (head_total + base_total), 0.0005), 0.02)) AS u
    FROM cells
    SEMI JOIN flagged USING (service, base_build, head_build)
    WHERE scope = 'epoch' AND NOT is_roll_up AND ln_e IS NOT NULL AND window_end_at = (SELECT max(window_end_at) FROM cells)
),
figures AS (SELECT count(*) AS m, count(*) FILTER (of_all) AS rows_all, avg(u) FILTER (NOT of_all) AS mean_u FROM family),
weighted AS (
    SELECT family.*, m,
           CASE WHEN of_all THEN 0.1 * m / rows_all ELSE CASE WHEN rows_all > 0 THEN 0.9 ELSE 1 END * u / mean_u END::DOUBLE AS w,
           ln_e + ln(w) AS x
    FROM family, figures
),
decided AS (
    SELECT *, row_number() OVER (ORDER BY x DESC, function, region) AS k, ln(m / 0.05) - ln(k) AS needed FROM weighted
)
SELECT function, count_kind, region, cohort, ln_e AS used, w AS weight, x, needed, cause
FROM decided
WHERE k <= (SELECT max(k) FROM decided WHERE x >= needed)
ORDER BY k;
FROM live_rule;


-- ---- 6. What the other rows are for, and what came in ----
CREATE OR REPLACE TEMP TABLE kinds AS
SELECT scope,
       CASE WHEN function IN ('_rare', '_unsymbolised', '(all)') THEN function
            WHEN is_roll_up THEN 'function, over several cells'
            ELSE 'function in a cell' END AS "row",
       verdict, reason, count(*) AS rows
FROM cells
WHERE window_end_at = (SELECT max(window_end_at) FROM cells)
GROUP BY ALL
ORDER BY scope, "row", verdict, reason NULLS FIRST;
FROM kinds;

CREATE OR REPLACE TEMP TABLE aa_check AS
SELECT base_kind, sum(aa_check_tests)::BIGINT AS aa_check_tests, sum(aa_check_flags)::BIGINT AS aa_check_flags
FROM comparisons
WHERE NOT is_roll_up AND aa_check_tests IS NOT NULL
GROUP BY base_kind
ORDER BY base_kind;
FROM aa_check;

CREATE OR REPLACE TEMP TABLE received AS
SELECT profile_type, sum(COLUMNS('samples_(?:received|counted|warm_up|drain|idle|late_dropped|duplicate|superseded|carried_over|rejected)'))::BIGINT AS '\0'
FROM ledger
GROUP BY profile_type
ORDER BY profile_type;
FROM received;
SELECT must(
    bool_and(
        samples_received = samples_counted + samples_warm_up + samples_drain + samples_idle + samples_late_dropped + samples_duplicate
            + samples_superseded + samples_carried_over + samples_rejected
    ),
    'the ledger balances'
) AS "check"
FROM ledger;
