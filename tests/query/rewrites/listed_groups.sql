-- Groups that are given: rows of others count in no norm.
-- sfumato: epsilon=1, rows=4, keys.drug=x|y
SELECT drug, COUNT(*) AS n FROM visits GROUP BY drug
----------------------------------------------------------------------------------------------------
WITH _pairs AS MATERIALIZED (
  SELECT
    _unit,
    k0,
    LEAST(COUNT(*), 4398046511104) AS s0
  FROM (
    SELECT
      *
    FROM (
      SELECT
        "visits"."_unit" AS "_unit",
        "visits"."drug" AS "k0"
      FROM (
        SELECT
          "patient" AS "_unit",
          "patient" AS "patient",
          "drug" AS "drug"
        FROM "visits"
        WHERE
          NOT "patient" IS NULL
      ) AS "visits"
    ) AS _all
    WHERE
      CAST("k0" AS TEXT) IN ('x', 'y')
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
      s0 * 1048513 + 3
    ) >> 2, 1073741823)) AS norm
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
