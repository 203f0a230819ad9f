-- A comma join: WHERE equates the units by way of a third table, the engine meets each on the units themselves.
-- sfumato: epsilon=1, delta=1e-6, rows=4
SELECT COUNT(*) AS n
FROM visits AS v, calls AS c, (SELECT patient, MAX(day) AS last FROM visits GROUP BY patient) AS m
WHERE m.patient = v.patient AND c.who = m.patient AND v.day = m.last
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
    JOIN (
      SELECT
        "who" AS "_unit",
        "who" AS "who"
      FROM "calls"
      WHERE
        NOT "who" IS NULL
    ) AS "calls"
      ON CAST("visits"."_unit" AS TEXT) = CAST("calls"."_unit" AS TEXT)
    JOIN (
      SELECT
        "groups"."_unit" AS "_unit",
        "groups"."key0" AS "patient",
        "groups"."aggregate0" AS "last"
      FROM (
        SELECT
          "visits"."_unit" AS "_unit",
          "visits"."patient" AS "key0",
          MAX("visits"."day") AS "aggregate0"
        FROM (
          SELECT
            "patient" AS "_unit",
            "patient" AS "patient",
            "day" AS "day"
          FROM "visits"
          WHERE
            NOT "patient" IS NULL
        ) AS "visits"
        GROUP BY
          1,
          2
      ) AS "groups"
    ) AS "part"
      ON CAST("visits"."_unit" AS TEXT) = CAST("part"."_unit" AS TEXT)
    WHERE
      (
        CAST("calls"."who" AS TEXT) = CAST("part"."patient" AS TEXT)
      )
      AND (
        "part"."last" = "visits"."day"
      )
      AND (
        CAST("part"."patient" AS TEXT) = CAST("visits"."patient" AS TEXT)
      )
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
