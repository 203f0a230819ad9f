-- A join along a declared key names no unit: beside the row that the key leads to, it is known.
-- sfumato: epsilon=1, delta=1e-6, rows=2
SELECT shop, SUM(price) AS s FROM orders, items WHERE "order" = id GROUP BY shop
----------------------------------------------------------------------------------------------------
WITH _pairs AS MATERIALIZED (
  SELECT
    _unit,
    k0,
    CAST(GREATEST(LEAST(COALESCE(SUM(q0), 0), 4398046511104), -4398046511104) AS BIGINT) AS s0
  FROM (
    SELECT
      "orders"."_unit" AS "_unit",
      "orders"."shop" AS "k0",
      TRY_CAST(CAST("items"."price" AS DOUBLE) * CAST(65536.0e0 AS DOUBLE) AS INT) AS "q0"
    FROM (
      SELECT
        "buyer" AS "_unit",
        "id" AS "id",
        "buyer" AS "buyer",
        "shop" AS "shop"
      FROM "orders"
      WHERE
        NOT "buyer" IS NULL
    ) AS "orders"
    JOIN (
      SELECT
        "_rows"."order" AS "order",
        "_rows"."price" AS "price"
      FROM "items" AS "_rows"
    ) AS "items"
      ON "items"."order" = "orders"."id"
    WHERE
      "items"."order" = "orders"."id"
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
        ABS(s0) * 932011 + 1048575
      ) >> 20, 1073741823) * LEAST((
        ABS(s0) * 932011 + 1048575
      ) >> 20, 1073741823)
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
  COALESCE(SUM(w * s0), 0) AS s0
FROM _pairs
JOIN _weights
  USING (_unit)
GROUP BY
  k0;
