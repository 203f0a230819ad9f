-- Rows fall into leaves; a row weighs what its unit weighs.
-- sfumato: epsilon=1, delta=1e-6, rows=4
SELECT ward, MEDIAN(days) AS m, QUANTILE(days, 0.9) AS q FROM visits GROUP BY ward
----------------------------------------------------------------------------------------------------
WITH _cells AS MATERIALIZED (
  SELECT
    _unit,
    k0,
    leaf,
    COUNT(*) AS c
  FROM (
    SELECT
      "visits"."_unit" AS "_unit",
      "visits"."ward" AS "k0",
      TRY_CAST(FLOOR("visits"."days" * CAST(64.0e0 AS DOUBLE)) AS BIGINT) AS "leaf"
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
    NOT k0 IS NULL AND NOT _unit IS NULL AND NOT leaf IS NULL
  GROUP BY
    _unit,
    k0,
    leaf
), _pairs AS (
  SELECT
    _unit,
    k0,
    CAST(LEAST(SUM(c), 4398046511104) AS BIGINT) AS s0
  FROM _cells
  GROUP BY
    _unit,
    k0
), _units AS (
  SELECT
    _unit,
    SUM(
      LEAST((
        s0 * 1048513 + 3
      ) >> 2, 1073741823) * LEAST((
        s0 * 1048513 + 3
      ) >> 2, 1073741823)
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
  leaf,
  SUM(w * c) AS s0
FROM _cells
JOIN _weights
  USING (_unit)
GROUP BY
  k0,
  leaf;
