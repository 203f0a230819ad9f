-- SUM(DISTINCT ...) and MODE per unit: windows within the unit mark the rows that count, and plain aggregates follow.
-- sfumato: epsilon=1, delta=1e-6, rows=1
SELECT SUM(spent) AS total, COUNT(*) FILTER (WHERE often = 'a') AS n FROM (SELECT patient, SUM(DISTINCT cost) AS spent, MODE(ward) AS often FROM visits GROUP BY patient HAVING SUM(DISTINCT cost) <= 400) AS t
----------------------------------------------------------------------------------------------------
SELECT
  4096 * CAST(COALESCE(SUM(GREATEST(LEAST(COALESCE(q0, 0), 400), -400)), 0) AS INT128) AS s0,
  4096 * CAST(COALESCE(SUM(GREATEST(LEAST(COALESCE(q1, 0), 1), -1)), 0) AS INT128) AS s1
FROM (
  SELECT
    "part"."_unit" AS "_unit",
    CASE
      WHEN NOT "part"."spent" IS NULL
      THEN CAST(GREATEST(
        LEAST(CAST("part"."spent" AS DOUBLE), CAST(400.0e0 AS DOUBLE)),
        CAST(0.0e0 AS DOUBLE)
      ) AS INT)
    END AS "q0",
    CASE
      WHEN NOT CASE WHEN "part"."often" = 'a' THEN 1 END IS NULL
      THEN CAST(GREATEST(
        LEAST(CAST(CASE WHEN "part"."often" = 'a' THEN 1 END AS DOUBLE), CAST(1.0e0 AS DOUBLE)),
        CAST(0.0e0 AS DOUBLE)
      ) AS INT)
    END AS "q1"
  FROM (
    SELECT
      "groups"."_unit" AS "_unit",
      "groups"."key0" AS "patient",
      "groups"."aggregate0" AS "spent",
      "groups"."aggregate1" AS "often"
    FROM (
      SELECT
        "_chosen"."_unit" AS "_unit",
        "_chosen"."c0" AS "key0",
        CAST(CASE
          WHEN SUM(CASE WHEN "_chosen"."_place0" = CAST(1 AS BIGINT) THEN "_chosen"."c2" END) < CAST(CAST(-9223372036854775808 AS BIGINT) AS INT128)
          THEN CAST(CAST(-9223372036854775808 AS BIGINT) AS INT128)
          WHEN SUM(CASE WHEN "_chosen"."_place0" = CAST(1 AS BIGINT) THEN "_chosen"."c2" END) > CAST(CAST(9223372036854775807 AS BIGINT) AS INT128)
          THEN CAST(CAST(9223372036854775807 AS BIGINT) AS INT128)
          ELSE SUM(CASE WHEN "_chosen"."_place0" = CAST(1 AS BIGINT) THEN "_chosen"."c2" END)
        END AS BIGINT) AS "aggregate0",
        MIN(CASE WHEN "_chosen"."_place1" = CAST(1 AS BIGINT) THEN "_chosen"."c1" END) AS "aggregate1"
      FROM (
        SELECT
          "_frequent"."_unit" AS "_unit",
          "_frequent"."c0" AS "c0",
          "_frequent"."c1" AS "c1",
          "_frequent"."c2" AS "c2",
          ROW_NUMBER() OVER (PARTITION BY "_frequent"."_unit", "_frequent"."c0", "_frequent"."c2") AS "_place0",
          ROW_NUMBER() OVER (
            PARTITION BY "_frequent"."_unit", "_frequent"."c0"
            ORDER BY "_frequent"."_often1" DESC, "_frequent"."c1" ASC
          ) AS "_place1"
        FROM (
          SELECT
            "visits"."_unit" AS "_unit",
            "visits"."patient" AS "c0",
            "visits"."ward" AS "c1",
            "visits"."cost" AS "c2",
            COUNT("visits"."ward") OVER (PARTITION BY "visits"."_unit", "visits"."patient", "visits"."ward") AS "_often1"
          FROM (
            SELECT
              "patient" AS "_unit",
              "patient" AS "patient",
              "ward" AS "ward",
              "cost" AS "cost"
            FROM "visits"
            WHERE
              NOT "patient" IS NULL
          ) AS "visits"
        ) AS "_frequent"
      ) AS "_chosen"
      GROUP BY
        1,
        2
    ) AS "groups"
    WHERE
      "groups"."aggregate0" <= CAST(400 AS BIGINT)
  ) AS "part"
) AS _rows
WHERE
  NOT _unit IS NULL;
