-- FILTER and CASE become what a row adds; casts cannot fail.
-- sfumato: epsilon=1, delta=1e-6, rows=4, bounds.t=0..9
SELECT COUNT(*) FILTER (WHERE days > 7) AS long, SUM(CAST(drug AS DOUBLE)) AS t, AVG(CASE WHEN ward = 'a' THEN days END) AS a FROM visits
----------------------------------------------------------------------------------------------------
WITH _pairs AS MATERIALIZED (
  SELECT
    _unit,
    CAST(GREATEST(LEAST(COALESCE(SUM(q0), 0), 4398046511104), -4398046511104) AS BIGINT) AS s0,
    CAST(GREATEST(LEAST(COALESCE(SUM(q1), 0), 4398046511104), -4398046511104) AS BIGINT) AS s1,
    CAST(GREATEST(LEAST(COALESCE(SUM(q2), 0), 4398046511104), -4398046511104) AS BIGINT) AS s2,
    CAST(GREATEST(LEAST(COALESCE(SUM(q3), 0), 4398046511104), -4398046511104) AS BIGINT) AS s3
  FROM (
    SELECT
      "visits"."_unit" AS "_unit",
      CASE
        WHEN NOT CASE WHEN "visits"."days" > CAST(7.0e0 AS DOUBLE) THEN 1 END IS NULL
        THEN CAST(GREATEST(
          LEAST(
            CAST(CASE WHEN "visits"."days" > CAST(7.0e0 AS DOUBLE) THEN 1 END AS DOUBLE),
            CAST(1.0e0 AS DOUBLE)
          ),
          CAST(0.0e0 AS DOUBLE)
        ) AS INT)
      END AS "q0",
      CASE
        WHEN NOT CASE
          WHEN ISFINITE(TRY_CAST(CAST("visits"."drug" AS TEXT) AS DOUBLE))
          THEN TRY_CAST(CAST("visits"."drug" AS TEXT) AS DOUBLE)
        END IS NULL
        THEN CAST(GREATEST(
          LEAST(
            CAST(CASE
              WHEN ISFINITE(TRY_CAST(CAST("visits"."drug" AS TEXT) AS DOUBLE))
              THEN TRY_CAST(CAST("visits"."drug" AS TEXT) AS DOUBLE)
            END AS DOUBLE) * CAST(32768.0e0 AS DOUBLE),
            CAST(294912.0e0 AS DOUBLE)
          ),
          CAST(0.0e0 AS DOUBLE)
        ) AS INT)
      END AS "q1",
      CASE
        WHEN NOT CASE
          WHEN NOT CASE WHEN "visits"."ward" = 'a' THEN "visits"."days" END IS NULL
          THEN 1
        END IS NULL
        THEN CAST(GREATEST(
          LEAST(
            CAST(CASE
              WHEN NOT CASE WHEN "visits"."ward" = 'a' THEN "visits"."days" END IS NULL
              THEN 1
            END AS DOUBLE),
            CAST(1.0e0 AS DOUBLE)
          ),
          CAST(0.0e0 AS DOUBLE)
        ) AS INT)
      END AS "q2",
      TRY_CAST(CAST(CAST(CASE WHEN "visits"."ward" = 'a' THEN "visits"."days" END AS DOUBLE) - CAST('25.0' AS DOUBLE) AS DOUBLE) * CAST(16384.0e0 AS DOUBLE) AS INT) AS "q3"
    FROM (
      SELECT
        "patient" AS "_unit",
        "patient" AS "patient",
        "ward" AS "ward",
        "drug" AS "drug",
        "days" AS "days"
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
      ABS(s0) * 568300 + 7
    ) >> 3, 1073741823) + LEAST((
      ABS(s1) * 1010310 + 4194303
    ) >> 22, 1073741823) + LEAST((
      ABS(s2) * 784253 + 15
    ) >> 4, 1073741823) + LEAST((
      ABS(s3) * 727423 + 4194303
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
  COALESCE(SUM(w * s0), 0) AS s0,
  COALESCE(SUM(w * s1), 0) AS s1,
  COALESCE(SUM(w * s2), 0) AS s2,
  COALESCE(SUM(w * s3), 0) AS s3
FROM _weighted;
