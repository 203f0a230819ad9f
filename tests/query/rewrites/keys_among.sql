-- A declared key is looked up among the keys of the same unit's rows.
-- sfumato: epsilon=1, rows=4
SELECT COUNT(*) AS n FROM orders WHERE id IN (SELECT "order" FROM items GROUP BY "order" HAVING SUM(price) > 5)
----------------------------------------------------------------------------------------------------
WITH _pairs AS MATERIALIZED (
  SELECT
    _unit,
    LEAST(COUNT(*), 4398046511104) AS s0
  FROM (
    SELECT
      "orders"."_unit" AS "_unit"
    FROM (
      SELECT
        "buyer" AS "_unit",
        "id" AS "id",
        "buyer" AS "buyer"
      FROM "orders"
      WHERE
        NOT "buyer" IS NULL
    ) AS "orders"
    WHERE
      CASE
        WHEN NOT CAST("orders"."id" AS TEXT) IS NULL
        THEN CAST("orders"."id" AS TEXT) IN (
          SELECT
            CAST("_members"."order" AS TEXT)
          FROM (
            SELECT
              "_groups"."_unit" AS "_unit",
              "_groups"."key0" AS "order"
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
            ) AS "_groups"
            WHERE
              "_groups"."aggregate0" > CAST(5.0e0 AS DOUBLE)
          ) AS "_members"
          WHERE
            "_members"."_unit" = "orders"."_unit"
        )
      END
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
  COALESCE(SUM(w * s0), 0) AS s0
FROM _weighted;
