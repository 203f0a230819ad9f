-- What clocks show in a zone: a tree of comparisons with the moments at which they change.
-- sfumato: epsilon=1, rows=4
SELECT COUNT(*) AS n FROM visits WHERE EXTRACT(HOUR FROM CAST(day AS TIMESTAMPTZ) AT TIME ZONE 'Europe/Berlin') = 2
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
        "patient" AS "patient",
        "day" AS "day"
      FROM "visits"
      WHERE
        NOT "patient" IS NULL
    ) AS "visits"
    WHERE
      CAST(EXTRACT(HOUR FROM CAST(CASE
        WHEN CAST("visits"."day" AS TIMESTAMP) < CAST('2024-03-31 01:00:00' AS TIMESTAMP)
        THEN CAST("visits"."day" AS TIMESTAMP) + INTERVAL '3600' SECOND
        ELSE CASE
          WHEN CAST("visits"."day" AS TIMESTAMP) < CAST('2024-10-27 01:00:00' AS TIMESTAMP)
          THEN CAST("visits"."day" AS TIMESTAMP) + INTERVAL '7200' SECOND
          ELSE CAST("visits"."day" AS TIMESTAMP) + INTERVAL '3600' SECOND
        END
      END AS TIMESTAMP)) AS BIGINT) = CAST(2 AS BIGINT)
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
