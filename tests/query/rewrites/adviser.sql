-- Without limits: how many groups, how long, then the sums and the totals.
-- sfumato: epsilon=1, delta=1e-6
SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward
----------------------------------------------------------------------------------------------------
SELECT
  _unit,
  k0,
  COUNT(*) AS n
FROM (
  SELECT
    "visits"."_unit" AS "_unit",
    "visits"."ward" AS "k0"
  FROM (
    SELECT
      "patient" AS "_unit",
      "patient" AS "patient",
      "ward" AS "ward"
    FROM "visits"
    WHERE
      NOT "patient" IS NULL
  ) AS "visits"
) AS _rows
WHERE
  NOT _unit IS NULL AND NOT k0 IS NULL
GROUP BY
  _unit,
  k0;

WITH _pairs AS MATERIALIZED (
  SELECT
    _unit,
    CAST(GREATEST(LEAST(n, 4398046511104), -4398046511104) AS INT128) AS s0
  FROM (
    SELECT
      *
    FROM _kept_0
  ) AS _rows
), _units AS (
  SELECT
    CASE
      WHEN SUM(s0 * s0) > 0
      THEN CAST(FLOOR(1 * LOG(2, CAST(SUM(s0 * s0) AS DOUBLE))) AS BIGINT)
    END AS b0,
    CASE
      WHEN SUM(ABS(s0)) > 0
      THEN CAST(FLOOR(2 * LOG(2, CAST(SUM(ABS(s0)) AS DOUBLE))) AS BIGINT)
    END AS b1
  FROM _pairs
  GROUP BY
    _unit
)
SELECT
  0 AS which,
  b0 AS bin,
  COUNT(*) AS units
FROM _units
WHERE
  NOT b0 IS NULL
GROUP BY
  b0
UNION ALL
SELECT
  1 AS which,
  b1 AS bin,
  COUNT(*) AS units
FROM _units
WHERE
  NOT b1 IS NULL
GROUP BY
  b1;

WITH _pairs AS MATERIALIZED (
  SELECT
    _unit,
    k0,
    LEAST(n, 4398046511104) AS s0
  FROM (
    SELECT
      *
    FROM _kept_0
  ) AS _rows
), _units AS (
  SELECT
    _unit,
    COUNT(*) AS t,
    SUM(
      LEAST((
        s0 * 1048513 + 0
      ) >> 0, 1073741823) * LEAST((
        s0 * 1048513 + 0
      ) >> 0, 1073741823)
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
    END AS w
  FROM _units
)
SELECT
  k0,
  COALESCE(SUM(w * s0), 0) AS s0
FROM _pairs
JOIN _weights
  USING (_unit)
GROUP BY
  k0;

WITH _pairs AS MATERIALIZED (
  SELECT
    _unit,
    k0,
    LEAST(n, 4398046511104) AS s0
  FROM (
    SELECT
      *
    FROM _kept_0
  ) AS _rows
), _units AS (
  SELECT
    _unit,
    SUM(
      LEAST((
        s0 * 1048513 + 0
      ) >> 0, 1073741823) * LEAST((
        s0 * 1048513 + 0
      ) >> 0, 1073741823)
    ) AS norm,
    SUM(s0) AS m0
  FROM _pairs
  GROUP BY
    _unit
), _weighted AS (
  SELECT
    m0,
    CASE
      WHEN norm <= 1099511627776
      THEN 4096
      WHEN norm >= 1152921502459363329
      THEN 0
      ELSE CAST(FLOOR(CAST('4294967295.9960938' AS DOUBLE) / SQRT(CAST(norm AS DOUBLE))) AS BIGINT)
    END AS w
  FROM _units
)
SELECT
  COALESCE(SUM(GREATEST(LEAST(CAST(4096 - w AS INT128) * m0, 1024), -1024)), 0) AS s0
FROM _weighted;
