-- Groups that the schema tells. The count and the sum are packed into one number per pair.
-- sfumato: epsilon=1, delta=1e-6, rows=4
SELECT ward, COUNT(*) AS n, SUM(cost) AS s FROM visits GROUP BY ward
----------------------------------------------------------------------------------------------------
WITH _pairs AS MATERIALIZED (
  SELECT
    _unit,
    k0,
    CAST(LEAST(SUM(1099511627776 + q1), 9223372036854775807) AS BIGINT) AS p
  FROM (
    SELECT
      "visits"."_unit" AS "_unit",
      "visits"."ward" AS "k0",
      TRY_CAST(CAST("visits"."cost" AS DOUBLE) AS INT) AS "q1"
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
        (
          p >> 40
        ) * 741410 + 3
      ) >> 2, 1073741823) * LEAST((
        (
          p >> 40
        ) * 741410 + 3
      ) >> 2, 1073741823) + LEAST((
        ABS((
          p & 1099511627775
        )) * 949005 + 511
      ) >> 9, 1073741823) * LEAST((
        ABS((
          p & 1099511627775
        )) * 949005 + 511
      ) >> 9, 1073741823)
    ) AS norm
  FROM _pairs
  GROUP BY
    _unit
), _weights AS (
  SELECT
    _unit,
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
  k0,
  COALESCE(SUM(w * (
    p >> 40
  )), 0) AS s0,
  COALESCE(SUM(w * (
    p & 1099511627775
  )), 0) AS s1
FROM _pairs
JOIN _weights
  USING (_unit)
GROUP BY
  k0;
