-- A frame by days within a unit's window; what it counts has no bound, so it is clamped to what WHERE says.
-- sfumato: epsilon=1, delta=1e-6, rows=1
SELECT AVG(recent) AS mean FROM (SELECT COUNT(*) OVER (PARTITION BY patient ORDER BY day RANGE BETWEEN INTERVAL 30 DAY PRECEDING AND CURRENT ROW) AS recent FROM visits) AS t WHERE recent <= 20
----------------------------------------------------------------------------------------------------
WITH _pairs AS MATERIALIZED (
  SELECT
    _unit,
    CAST(LEAST(SUM(1099511627776 + CAST(q1 AS BIGINT) - -11), 9223372036854775807) AS BIGINT) AS p
  FROM (
    SELECT
      "part"."_unit" AS "_unit",
      CAST(GREATEST(
        LEAST(
          CAST(CAST("part"."recent" AS DOUBLE) - CAST('10.0' AS DOUBLE) AS DOUBLE),
          CAST(10.0e0 AS DOUBLE)
        ),
        CAST(-10.0e0 AS DOUBLE)
      ) AS INT) AS "q1"
    FROM (
      SELECT
        "visits"."_unit" AS "_unit",
        COUNT(CAST(1 AS BIGINT)) OVER (
          PARTITION BY "visits"."_unit"
          ORDER BY DATE_DIFF('day', CAST('1970-01-01' AS DATE), "visits"."day") ASC
          RANGE BETWEEN 30 PRECEDING AND CURRENT ROW
        ) AS "recent"
      FROM (
        SELECT
          "patient" AS "_unit",
          "patient" AS "patient",
          "day" AS "day"
        FROM "visits"
        WHERE
          NOT "patient" IS NULL
      ) AS "visits"
    ) AS "part"
    WHERE
      "part"."recent" <= CAST(20 AS BIGINT)
  ) AS _rows
  WHERE
    NOT _unit IS NULL
  GROUP BY
    _unit
), _units AS (
  SELECT
    *,
    LEAST((
      (
        p >> 40
      ) * 856182 + 1
    ) >> 1, 1073741823) + LEAST(
      (
        ABS(
          GREATEST(
            LEAST((
              p & 1099511627775
            ) + -11 * (
              p >> 40
            ), 4398046511104),
            -4398046511104
          )
        ) * 992675 + 15
      ) >> 4,
      1073741823
    ) AS norm,
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
  COALESCE(SUM(w * (
    p >> 40
  )), 0) AS s0,
  COALESCE(
    SUM(
      w * GREATEST(
        LEAST((
          p & 1099511627775
        ) + -11 * (
          p >> 40
        ), 4398046511104),
        -4398046511104
      )
    ),
    0
  ) AS s1
FROM _weighted;
