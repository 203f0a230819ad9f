-- One number, no groups: a unit has one pair, so its weight needs no join.
-- sfumato: epsilon=1, rows=4
SELECT COUNT(*) AS n FROM visits
----------------------------------------------------------------------------------------------------
WITH _pairs AS MATERIALIZED (
  SELECT
    _unit,
    LEAST(COUNT(*), 4398046511104) AS s0
  FROM (
    SELECT
      "visits"."_unit" AS "_unit"
    FROM (
      SELECT
        "patient" AS "_unit",
        "patient" AS "patient"
      FROM "visits"
      WHERE
        NOT "patient" IS NULL
    ) AS "visits"
  ) AS _rows
  WHERE
    NOT _unit IS NULL
  GROUP BY
    _unit
), _units AS (
  SELECT
    *,
    LEAST((
      s0 * 1048513 + 3
    ) >> 2, 1073741823) AS norm,
    1 AS t
  FROM _pairs
), _weighted AS (
  SELECT
    *,
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
  COALESCE(SUM(w * s0), 0) AS s0
FROM _weighted;
