-- How many rows a unit has is bounded by nothing but us: the adviser looks for the sizes that there are.
-- sfumato: epsilon=1, delta=1e-6
SELECT AVG(many) AS mean FROM (SELECT patient, COUNT(*) AS many FROM visits GROUP BY patient) AS t
----------------------------------------------------------------------------------------------------
SELECT
  _unit,
  1 AS n,
  CAST(GREATEST(LEAST(COALESCE(q0, 0), 4611686018427387904), -4611686018427387904) AS BIGINT) AS q0
FROM (
  SELECT
    "part"."_unit" AS "_unit",
    CAST(GREATEST(
      LEAST(CAST("part"."many" AS DOUBLE), CAST(1048576.0e0 AS DOUBLE)),
      CAST(0.0e0 AS DOUBLE)
    ) AS INT) AS "q0"
  FROM (
    SELECT
      "groups"."_unit" AS "_unit",
      "groups"."key0" AS "patient",
      "groups"."aggregate0" AS "many"
    FROM (
      SELECT
        "visits"."_unit" AS "_unit",
        "visits"."patient" AS "key0",
        COUNT(CAST(1 AS BIGINT)) AS "aggregate0"
      FROM (
        SELECT
          "patient" AS "_unit",
          "patient" AS "patient"
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

WITH _pairs AS MATERIALIZED (
  SELECT
    _unit,
    CAST(GREATEST(LEAST(q0, 4398046511104), -4398046511104) AS INT128) AS s0
  FROM (
    SELECT
      *
    FROM _kept_0
  ) AS _rows
), _units AS (
  SELECT
    CASE
      WHEN SUM(ABS(s0)) > 0
      THEN CAST(FLOOR(2 * LOG(2, CAST(SUM(ABS(s0)) AS DOUBLE))) AS BIGINT)
    END AS b0
  FROM _pairs
  GROUP BY
    _unit
)
SELECT
  0 AS which,
  b0 AS bin,
  COUNT(*) AS units
FROM _units
WHERE
  NOT b0 IS NULL
GROUP BY
  b0;

SELECT
  4096 * CAST(COUNT(*) AS INT128) AS s0,
  COALESCE(SUM(GREATEST(LEAST(4096 * CAST(COALESCE(q1, 0) AS INT128), 5816), -5816)), 0) AS s1
FROM (
  SELECT
    "part"."_unit" AS "_unit",
    CAST(GREATEST(
      LEAST(CAST("part"."many" AS DOUBLE), CAST(1048576.0e0 AS DOUBLE)),
      CAST(0.0e0 AS DOUBLE)
    ) AS INT) AS "q1"
  FROM (
    SELECT
      "groups"."_unit" AS "_unit",
      "groups"."key0" AS "patient",
      "groups"."aggregate0" AS "many"
    FROM (
      SELECT
        "visits"."_unit" AS "_unit",
        "visits"."patient" AS "key0",
        COUNT(CAST(1 AS BIGINT)) AS "aggregate0"
      FROM (
        SELECT
          "patient" AS "_unit",
          "patient" AS "patient"
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

SELECT
  COALESCE(
    SUM(
      GREATEST(
        LEAST(
          4096 * CAST(1 AS INT128) - GREATEST(LEAST(4096 * CAST(1 AS INT128), 4096), -4096),
          0
        ),
        0
      )
    ),
    0
  ) AS s0,
  COALESCE(
    SUM(
      GREATEST(
        LEAST(
          4096 * CAST(COALESCE(q1, 0) AS INT128) - GREATEST(LEAST(4096 * CAST(COALESCE(q1, 0) AS INT128), 5816), -5816),
          1454
        ),
        -1454
      )
    ),
    0
  ) AS s1
FROM (
  SELECT
    "part"."_unit" AS "_unit",
    CAST(GREATEST(
      LEAST(CAST("part"."many" AS DOUBLE), CAST(1048576.0e0 AS DOUBLE)),
      CAST(0.0e0 AS DOUBLE)
    ) AS INT) AS "q1"
  FROM (
    SELECT
      "groups"."_unit" AS "_unit",
      "groups"."key0" AS "patient",
      "groups"."aggregate0" AS "many"
    FROM (
      SELECT
        "visits"."_unit" AS "_unit",
        "visits"."patient" AS "key0",
        COUNT(CAST(1 AS BIGINT)) AS "aggregate0"
      FROM (
        SELECT
          "patient" AS "_unit",
          "patient" AS "patient"
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
