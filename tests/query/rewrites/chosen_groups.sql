-- Groups that are chosen: votes beside the sums, and no group in which all votes are 0.
-- sfumato: epsilon=1, delta=1e-6, rows=4, keys=3
SELECT drug, COUNT(*) AS n, AVG(days) AS m FROM visits GROUP BY drug HAVING n > 100 ORDER BY n DESC LIMIT 5
----------------------------------------------------------------------------------------------------
WITH _pairs AS MATERIALIZED (
  SELECT
    _unit,
    k0,
    LEAST(COUNT(*), 4398046511104) AS s0,
    CAST(GREATEST(LEAST(COALESCE(SUM(q1), 0), 4398046511104), -4398046511104) AS BIGINT) AS s1,
    CAST(GREATEST(LEAST(COALESCE(SUM(q2), 0), 4398046511104), -4398046511104) AS BIGINT) AS s2
  FROM (
    SELECT
      "visits"."_unit" AS "_unit",
      "visits"."drug" AS "k0",
      CASE
        WHEN NOT CASE WHEN NOT "visits"."days" IS NULL THEN 1 END IS NULL
        THEN CAST(GREATEST(
          LEAST(
            CAST(CASE WHEN NOT "visits"."days" IS NULL THEN 1 END AS DOUBLE),
            CAST(1.0e0 AS DOUBLE)
          ),
          CAST(0.0e0 AS DOUBLE)
        ) AS INT)
      END AS "q1",
      TRY_CAST(CAST(CAST("visits"."days" AS DOUBLE) - CAST('25.0' AS DOUBLE) AS DOUBLE) * CAST(8192.0e0 AS DOUBLE) AS INT) AS "q2"
    FROM (
      SELECT
        "patient" AS "_unit",
        "patient" AS "patient",
        "drug" AS "drug",
        "days" AS "days"
      FROM "visits"
      WHERE
        NOT "patient" IS NULL
    ) AS "visits"
  ) AS _rows
  WHERE
    NOT k0 IS NULL AND NOT _unit IS NULL
  GROUP BY
    _unit,
    k0
), _units AS (
  SELECT
    _unit,
    COUNT(*) AS t,
    SUM(
      LEAST((
        s0 * 652776 + 3
      ) >> 2, 1073741823) * LEAST((
        s0 * 652776 + 3
      ) >> 2, 1073741823) + LEAST((
        ABS(s1) * 994278 + 7
      ) >> 3, 1073741823) * LEAST((
        ABS(s1) * 994278 + 7
      ) >> 3, 1073741823) + LEAST((
        ABS(s2) * 835553 + 1048575
      ) >> 20, 1073741823) * LEAST((
        ABS(s2) * 835553 + 1048575
      ) >> 20, 1073741823)
    ) AS norm
  FROM _pairs
  GROUP BY
    _unit
), _weights AS (
  SELECT
    _unit,
    CASE
      WHEN norm <= 1099511627776
      THEN 4096
      WHEN norm >= 1152921502459363329
      THEN 0
      ELSE CAST(FLOOR(CAST('4294967295.9960938' AS DOUBLE) / SQRT(CAST(norm AS DOUBLE))) AS BIGINT)
    END AS w,
    CASE
      WHEN t > 1000
      THEN 0
      ELSE CASE
        WHEN t <= 3
        THEN 4096
        ELSE CAST(FLOOR(CAST('7094.48010779567' AS DOUBLE) / SQRT(CAST(t AS DOUBLE))) AS BIGINT)
      END
    END AS v
  FROM _units
)
SELECT
  k0,
  COALESCE(SUM(w * s0), 0) AS s0,
  COALESCE(SUM(w * s1), 0) AS s1,
  COALESCE(SUM(w * s2), 0) AS s2,
  COALESCE(SUM(v), 0) AS v
FROM _pairs
JOIN _weights
  USING (_unit)
GROUP BY
  k0
HAVING
  SUM(v) > 0;
