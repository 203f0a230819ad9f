-- A subquery by unit: one row each, so that no GROUP BY over pairs is needed.
-- sfumato: epsilon=1, delta=1e-6, rows=1
SELECT COUNT(*) AS n, AVG(visits) AS m FROM (SELECT patient, LEAST(COUNT(*), 20) AS visits FROM visits GROUP BY patient) AS t
----------------------------------------------------------------------------------------------------
SELECT
  4096 * CAST(COUNT(*) AS INT128) AS s0,
  4096 * CAST(COALESCE(SUM(GREATEST(LEAST(COALESCE(q1, 0), 10), -10)), 0) AS INT128) AS s1
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
  NOT _unit IS NULL;
