-- STRFTIME is made of parts and digits, and its months are public groups.
-- sfumato: epsilon=1, rows=4
SELECT STRFTIME(day, '%Y-%m') AS month, VAR(days) AS v FROM visits GROUP BY 1
----------------------------------------------------------------------------------------------------
WITH _pairs AS MATERIALIZED (
  SELECT
    _unit,
    k0,
    CAST(GREATEST(LEAST(COALESCE(SUM(q0), 0), 4398046511104), -4398046511104) AS BIGINT) AS s0,
    CAST(GREATEST(LEAST(COALESCE(SUM(q1), 0), 4398046511104), -4398046511104) AS BIGINT) AS s1,
    CAST(GREATEST(LEAST(COALESCE(SUM(q2), 0), 4398046511104), -4398046511104) AS BIGINT) AS s2
  FROM (
    SELECT
      "visits"."_unit" AS "_unit",
      (
        RIGHT(
          '000' || CAST(CAST(EXTRACT(YEAR FROM CAST("visits"."day" AS TIMESTAMP)) AS BIGINT) AS TEXT),
          CAST(4 AS BIGINT)
        ) || '-'
      ) || RIGHT(
        '000' || CAST(CAST(EXTRACT(MONTH FROM CAST("visits"."day" AS TIMESTAMP)) AS BIGINT) AS TEXT),
        CAST(2 AS BIGINT)
      ) AS "k0",
      CASE
        WHEN NOT CASE WHEN NOT "visits"."days" IS NULL THEN 1 END IS NULL
        THEN CAST(GREATEST(
          LEAST(
            CAST(CASE WHEN NOT "visits"."days" IS NULL THEN 1 END AS DOUBLE),
            CAST(1.0e0 AS DOUBLE)
          ),
          CAST(0.0e0 AS DOUBLE)
        ) AS INT)
      END AS "q0",
      TRY_CAST(CAST(CAST("visits"."days" AS DOUBLE) - CAST('25.0' AS DOUBLE) AS DOUBLE) * CAST(32768.0e0 AS DOUBLE) AS INT) AS "q1",
      CASE
        WHEN NOT (
          (
            CAST("visits"."days" AS DOUBLE) - CAST('25.0' AS DOUBLE)
          ) * (
            CAST("visits"."days" AS DOUBLE) - CAST('25.0' AS DOUBLE)
          )
        ) IS NULL
        THEN CAST(GREATEST(
          LEAST(
            CAST((
              CAST("visits"."days" AS DOUBLE) - CAST('25.0' AS DOUBLE)
            ) * (
              CAST("visits"."days" AS DOUBLE) - CAST('25.0' AS DOUBLE)
            ) AS DOUBLE) * CAST(1024.0e0 AS DOUBLE),
            CAST(640000.0e0 AS DOUBLE)
          ),
          CAST(0.0e0 AS DOUBLE)
        ) AS INT)
      END AS "q2"
    FROM (
      SELECT
        "patient" AS "_unit",
        "patient" AS "patient",
        "days" AS "days",
        "day" AS "day"
      FROM "visits"
      WHERE
        NOT "patient" IS NULL
    ) AS "visits"
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
    SUM(
      LEAST((
        ABS(s0) * 907668 + 15
      ) >> 4, 1073741823) + LEAST((
        ABS(s1) * 550861 + 4194303
      ) >> 22, 1073741823) + LEAST((
        ABS(s2) * 641001 + 4194303
      ) >> 22, 1073741823)
    ) AS norm
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
  COALESCE(SUM(w * s0), 0) AS s0,
  COALESCE(SUM(w * s1), 0) AS s1,
  COALESCE(SUM(w * s2), 0) AS s2
FROM _pairs
JOIN _weights
  USING (_unit)
GROUP BY
  k0;
