-- With Laplace noise lengths add up, and weights are quotients of integers.
-- sfumato: epsilon=1, rows=4, keys=2
SELECT ward, SUM(days) AS s, COUNT(DISTINCT patient) AS p FROM visits GROUP BY ward
----------------------------------------------------------------------------------------------------
WITH _pairs AS MATERIALIZED (
  SELECT
    _unit,
    k0,
    CAST(GREATEST(LEAST(COALESCE(SUM(q0), 0), 4398046511104), -4398046511104) AS BIGINT) AS s0
  FROM (
    SELECT
      "visits"."_unit" AS "_unit",
      "visits"."ward" AS "k0",
      TRY_CAST(CAST("visits"."days" AS DOUBLE) * CAST(16384.0e0 AS DOUBLE) AS INT) AS "q0"
    FROM (
      SELECT
        "patient" AS "_unit",
        "patient" AS "patient",
        "ward" AS "ward",
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
    SUM(LEAST((
      ABS(s0) * 671048 + 2097151
    ) >> 21, 1073741823)) AS norm
  FROM _pairs
  GROUP BY
    _unit
), _weights AS (
  SELECT
    _unit,
    CASE
      WHEN norm <= 1048576
      THEN 4096
      WHEN norm >= 1073741823
      THEN 0
      ELSE CAST(4294967296 // norm AS BIGINT)
    END AS w,
    LEAST(4096, 8192 // t) AS v
  FROM _units
)
SELECT
  k0,
  COALESCE(SUM(w * s0), 0) AS s0,
  COALESCE(SUM(v), 0) AS v
FROM _pairs
JOIN _weights
  USING (_unit)
GROUP BY
  k0;
