-- Rows of a table that is owned through a key: joined with the owner of each key, once.
-- sfumato: epsilon=1, delta=1e-6, rows=2
SELECT COUNT(*) AS n, SUM(price) AS s FROM items
----------------------------------------------------------------------------------------------------
WITH _pairs AS MATERIALIZED (
  SELECT
    _unit,
    LEAST(COUNT(*), 4398046511104) AS s0,
    CAST(GREATEST(LEAST(COALESCE(SUM(q1), 0), 4398046511104), -4398046511104) AS BIGINT) AS s1
  FROM (
    SELECT
      "items"."_unit" AS "_unit",
      TRY_CAST(CAST("items"."price" AS DOUBLE) * CAST(131072.0e0 AS DOUBLE) AS INT) AS "q1"
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
      ABS(s1) * 932011 + 4194303
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
