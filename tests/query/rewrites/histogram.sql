-- Rows fall into bins.
-- sfumato: epsilon=1, delta=1e-6, rows=4
SELECT HISTOGRAM(cost, [0, 10, 50, 100]) AS h FROM visits
----------------------------------------------------------------------------------------------------
WITH _cells AS MATERIALIZED (
  SELECT
    _unit,
    leaf,
    COUNT(*) AS c
  FROM (
    SELECT
      "visits"."_unit" AS "_unit",
      CASE
        WHEN "visits"."cost" >= CAST(0 AS BIGINT) AND "visits"."cost" <= CAST(100 AS BIGINT)
        THEN CASE
          WHEN "visits"."cost" < CAST(10 AS BIGINT)
          THEN CAST(0 AS BIGINT)
          ELSE CASE
            WHEN "visits"."cost" < CAST(50 AS BIGINT)
            THEN CAST(1 AS BIGINT)
            ELSE CAST(2 AS BIGINT)
          END
        END
      END AS "leaf"
    FROM (
      SELECT
        "patient" AS "_unit",
        "patient" AS "patient",
        "cost" AS "cost"
      FROM "visits"
      WHERE
        NOT "patient" IS NULL
    ) AS "visits"
  ) AS _rows
  WHERE
    NOT _unit IS NULL AND NOT leaf IS NULL
  GROUP BY
    _unit,
    leaf
), _pairs AS (
  SELECT
    _unit,
    CAST(LEAST(SUM(c), 4398046511104) AS BIGINT) AS s0
  FROM _cells
  GROUP BY
    _unit
), _units AS (
  SELECT
    _unit,
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
  leaf,
  SUM(w * c) AS s0
FROM _cells
JOIN _weights
  USING (_unit)
GROUP BY
  leaf;
