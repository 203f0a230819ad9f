-- Subqueries over the unit's own rows: the engine ties each to the unit of the row around it.
-- sfumato: epsilon=1, delta=1e-6, rows=2
SELECT COUNT(*) AS n, COUNT_IF(days >= (SELECT MAX(w.days) FROM visits AS w WHERE w.patient = v.patient)) AS long
FROM visits AS v
WHERE EXISTS (SELECT 1 FROM calls AS c WHERE c.who = v.patient AND c.minutes > v.days)
  AND v.patient IN (SELECT who FROM calls WHERE minutes < 30)
----------------------------------------------------------------------------------------------------
WITH _pairs AS MATERIALIZED (
  SELECT
    _unit,
    LEAST(COUNT(*), 4398046511104) AS s0,
    CAST(GREATEST(LEAST(COALESCE(SUM(q1), 0), 4398046511104), -4398046511104) AS BIGINT) AS s1
  FROM (
    SELECT
      "visits"."_unit" AS "_unit",
      CASE
        WHEN NOT CASE
          WHEN "visits"."days" >= (
            SELECT
              "_groups"."aggregate0" AS "max(visits_2.days)"
            FROM (
              SELECT
                MAX(
                  CASE
                    WHEN "visits_2"."days" = CAST(0.0e0 AS DOUBLE)
                    THEN CAST(0.0e0 AS DOUBLE)
                    ELSE "visits_2"."days"
                  END
                ) AS "aggregate0"
              FROM (
                SELECT
                  "patient" AS "_unit",
                  "patient" AS "patient",
                  "days" AS "days"
                FROM "visits"
                WHERE
                  NOT "patient" IS NULL
              ) AS "visits_2"
              WHERE
                "visits_2"."_unit" = "visits"."_unit"
            ) AS "_groups"
          )
          THEN 1
        END IS NULL
        THEN CAST(GREATEST(
          LEAST(
            CAST(CASE
              WHEN "visits"."days" >= (
                SELECT
                  "_groups"."aggregate0" AS "max(visits_2.days)"
                FROM (
                  SELECT
                    MAX(
                      CASE
                        WHEN "visits_2"."days" = CAST(0.0e0 AS DOUBLE)
                        THEN CAST(0.0e0 AS DOUBLE)
                        ELSE "visits_2"."days"
                      END
                    ) AS "aggregate0"
                  FROM (
                    SELECT
                      "patient" AS "_unit",
                      "patient" AS "patient",
                      "days" AS "days"
                    FROM "visits"
                    WHERE
                      NOT "patient" IS NULL
                  ) AS "visits_2"
                  WHERE
                    "visits_2"."_unit" = "visits"."_unit"
                ) AS "_groups"
              )
              THEN 1
            END AS DOUBLE),
            CAST(1.0e0 AS DOUBLE)
          ),
          CAST(0.0e0 AS DOUBLE)
        ) AS INT)
      END AS "q1"
    FROM (
      SELECT
        "patient" AS "_unit",
        "patient" AS "patient",
        "days" AS "days"
      FROM "visits"
      WHERE
        NOT "patient" IS NULL
    ) AS "visits"
    WHERE
      (
        EXISTS(
          SELECT
            CAST(1 AS BIGINT) AS "1"
          FROM (
            SELECT
              "who" AS "_unit",
              "who" AS "who",
              "minutes" AS "minutes"
            FROM "calls"
            WHERE
              NOT "who" IS NULL
          ) AS "calls"
          WHERE
            CAST("calls"."_unit" AS TEXT) = CAST("visits"."_unit" AS TEXT)
            AND "calls"."minutes" > "visits"."days"
        )
      )
      AND (
        CAST("visits"."_unit" AS TEXT) IN (
          SELECT
            CAST("_members"."_unit" AS TEXT)
          FROM (
            SELECT
              "calls"."_unit" AS "_unit",
              "calls"."who" AS "who"
            FROM (
              SELECT
                "who" AS "_unit",
                "who" AS "who",
                "minutes" AS "minutes"
              FROM "calls"
              WHERE
                NOT "who" IS NULL
            ) AS "calls"
            WHERE
              "calls"."minutes" < CAST(30.0e0 AS DOUBLE)
          ) AS "_members"
        )
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
    ) >> 2, 1073741823) + LEAST((
      ABS(s1) * 1048513 + 3
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
  COALESCE(SUM(w * s0), 0) AS s0,
  COALESCE(SUM(w * s1), 0) AS s1
FROM _weighted;
