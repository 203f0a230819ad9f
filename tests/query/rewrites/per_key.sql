-- What each order comes to: grouped by the key, and by the unit that owns it.
-- sfumato: epsilon=1, delta=1e-6, rows=2, bounds.most=0..20
SELECT AVG(total) AS most FROM (SELECT "order", SUM(price) AS total FROM items GROUP BY "order")
----------------------------------------------------------------------------------------------------
WITH _pairs AS MATERIALIZED (
  SELECT
    _unit,
    CAST(GREATEST(LEAST(COALESCE(SUM(q0), 0), 4398046511104), -4398046511104) AS BIGINT) AS s0,
    CAST(GREATEST(LEAST(COALESCE(SUM(q1), 0), 4398046511104), -4398046511104) AS BIGINT) AS s1
  FROM (
    SELECT
      "part"."_unit" AS "_unit",
      CASE
        WHEN NOT CASE WHEN NOT "part"."total" IS NULL THEN 1 END IS NULL
        THEN CAST(GREATEST(
          LEAST(
            CAST(CASE WHEN NOT "part"."total" IS NULL THEN 1 END AS DOUBLE),
            CAST(1.0e0 AS DOUBLE)
          ),
          CAST(0.0e0 AS DOUBLE)
        ) AS INT)
      END AS "q0",
      CASE
        WHEN NOT (
          CAST("part"."total" AS DOUBLE) - CAST('10.0' AS DOUBLE)
        ) IS NULL
        THEN CAST(GREATEST(
          LEAST(
            CAST(CAST("part"."total" AS DOUBLE) - CAST('10.0' AS DOUBLE) AS DOUBLE) * CAST(131072.0e0 AS DOUBLE),
            CAST(1310720.0e0 AS DOUBLE)
          ),
          CAST(-1310720.0e0 AS DOUBLE)
        ) AS INT)
      END AS "q1"
    FROM (
      SELECT
        "groups"."_unit" AS "_unit",
        "groups"."key0" AS "order",
        "groups"."aggregate0" AS "total"
      FROM (
        SELECT
          "items"."_unit" AS "_unit",
          "items"."order" AS "key0",
          CAST(SUM(
            CAST(CASE
              WHEN "items"."price" < CAST(-16.0e0 AS DOUBLE)
              THEN CAST(-16.0e0 AS DOUBLE)
              WHEN "items"."price" > CAST(16.0e0 AS DOUBLE)
              THEN CAST(16.0e0 AS DOUBLE)
              ELSE "items"."price"
            END * CAST(2.8823037615171174e+17 AS DOUBLE) AS BIGINT)
          ) AS DOUBLE) * CAST(3.469446951953614e-18 AS DOUBLE) AS "aggregate0"
        FROM (
          SELECT
            "_owners"."_unit" AS "_unit",
            "_rows"."order" AS "order",
            "_rows"."price" AS "price"
          FROM "items" AS "_rows"
          JOIN (
            SELECT DISTINCT
              "buyer" AS "_unit",
              "id" AS "_key"
            FROM "orders"
            WHERE
              NOT "buyer" IS NULL
          ) AS "_owners"
            ON "_rows"."order" = "_owners"."_key"
        ) AS "items"
        GROUP BY
          1,
          2
      ) AS "groups"
    ) AS "part"
  ) AS _rows
  WHERE
    NOT _unit IS NULL
  GROUP BY
    _unit
), _units AS (
  SELECT
    *,
    LEAST((
      ABS(s0) * 856182 + 3
    ) >> 2, 1073741823) + LEAST((
      ABS(s1) * 992675 + 4194303
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
  COALESCE(SUM(w * s1), 0) AS s1
FROM _weighted;
