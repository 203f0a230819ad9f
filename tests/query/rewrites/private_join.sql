-- Two private tables meet in their unit.
-- sfumato: epsilon=1, delta=1e-6, rows=4
SELECT SUM(minutes) AS s FROM visits JOIN calls ON patient = who WHERE days > 3
----------------------------------------------------------------------------------------------------
WITH _pairs AS MATERIALIZED (
  SELECT
    _unit,
    CAST(GREATEST(LEAST(COALESCE(SUM(q0), 0), 4398046511104), -4398046511104) AS BIGINT) AS s0
  FROM (
    SELECT
      "visits"."_unit" AS "_unit",
      TRY_CAST(CAST("calls"."minutes" AS DOUBLE) * CAST(32768.0e0 AS DOUBLE) AS INT) AS "q0"
    FROM (
      SELECT
        "patient" AS "_unit",
        "patient" AS "patient",
        "days" AS "days"
      FROM "visits"
      WHERE
        NOT "patient" IS NULL
    ) AS "visits"
    JOIN (
      SELECT
        "who" AS "_unit",
        "who" AS "who",
        "minutes" AS "minutes"
      FROM "calls"
      WHERE
        NOT "who" IS NULL
    ) AS "calls"
      ON CAST("visits"."_unit" AS TEXT) = CAST("calls"."_unit" AS TEXT)
    WHERE
      "visits"."days" > CAST(3.0e0 AS DOUBLE)
  ) AS _rows
  WHERE
    NOT _unit IS NULL
  GROUP BY
    _unit
), _units AS (
  SELECT
    *,
    LEAST((
      ABS(s0) * 559207 + 4194303
    ) >> 22, 1073741823) AS norm,
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
