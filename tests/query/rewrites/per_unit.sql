-- A subquery by unit: one row each, so that no GROUP BY over pairs is needed.
-- sfumato: epsilon=1, delta=1e-6, rows=1
SELECT COUNT(*) AS n, AVG(visits) AS m FROM (SELECT patient, LEAST(COUNT(*), 20) AS visits FROM visits GROUP BY patient) AS t
----------------------------------------------------------------------------------------------------
WITH _pairs AS MATERIALIZED (
  SELECT
    _unit,
    LEAST(1, 4398046511104) AS s0,
    CAST(GREATEST(LEAST(COALESCE(q1, 0), 4398046511104), -4398046511104) AS BIGINT) AS s1
  FROM (
    SELECT
      "part"."_unit" AS "_unit",
      TRY_CAST(CAST(CAST("part"."visits" AS DOUBLE) - CAST('10.0' AS DOUBLE) AS DOUBLE) AS INT) AS "q1"
    FROM (
      SELECT
        "groups"."_unit" AS "_unit",
        "groups"."key0" AS "patient",
        LEAST("groups"."aggregate0", CAST(20 AS BIGINT)) AS "visits"
      FROM (
        SELECT
          "visits"."_unit" AS "_unit",
          "visits"."patient" AS "key0",
          COUNT(CAST(1 AS BIGINT)) AS "aggregate0"
        FROM (
          SELECT
            "patient" AS "_unit",
            "patient" AS "patient",
            "ward" AS "ward",
            "drug" AS "drug",
            "days" AS "days",
            "cost" AS "cost",
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
  ) AS _rows
  WHERE
    NOT _unit IS NULL
), _units AS (
  SELECT
    *,
    LEAST((
      s0 * 741410 + 0
    ) >> 0, 1073741823) * LEAST((
      s0 * 741410 + 0
    ) >> 0, 1073741823) + LEAST((
      ABS(s1) * 593128 + 7
    ) >> 3, 1073741823) * LEAST((
      ABS(s1) * 593128 + 7
    ) >> 3, 1073741823) AS norm,
    1 AS t
  FROM _pairs
), _weighted AS (
  SELECT
    *,
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
  COALESCE(SUM(w * s0), 0) AS s0,
  COALESCE(SUM(w * s1), 0) AS s1
FROM _weighted;
