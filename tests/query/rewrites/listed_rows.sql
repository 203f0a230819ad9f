-- VALUES is a public table; COUNT(DISTINCT (a, b)) counts texts that hold both.
-- sfumato: epsilon=1, delta=1e-6, rows=1
SELECT name, COUNT(DISTINCT (drug, cost)) AS pairs FROM visits JOIN (VALUES ('a', 'first'), ('b', NULL)) AS t(ward, name) ON visits.ward = t.ward GROUP BY name
----------------------------------------------------------------------------------------------------
SELECT DISTINCT
  "u0"."name" AS "k0"
FROM (
  SELECT
    "_rows"."col0" AS "ward",
    "_rows"."col1" AS "name"
  FROM (
    SELECT
      "_listed"."c0" AS "col0",
      "_listed"."c1" AS "col1"
    FROM (VALUES
      (CAST('a' AS TEXT), CAST('first' AS TEXT)),
      (CAST('b' AS TEXT), CAST(NULL AS TEXT))) AS "_listed"("c0", "c1")
  ) AS "_rows"
) AS u0
CROSS JOIN (
  SELECT
    CAST(_list.value AS TEXT) AS "ward"
  FROM (VALUES
    ('a'),
    ('b')) AS _list(value)
  UNION ALL
  SELECT
    NULL
) AS u1
WHERE
  (
    "u1"."ward" = "u0"."ward"
  );

SELECT
  k0,
  COUNT(DISTINCT x) AS s0
FROM (
  SELECT
    k0,
    x
  FROM (
    SELECT
      k0,
      x,
      ROW_NUMBER() OVER (PARTITION BY _unit ORDER BY HASH(_unit, k0, x), k0, x) AS place
    FROM (
      SELECT DISTINCT
        _unit,
        k0,
        x
      FROM (
        SELECT
          "visits"."_unit" AS "_unit",
          "t"."name" AS "k0",
          COALESCE(
            (
              CAST(LENGTH(CAST("visits"."drug" AS TEXT)) AS TEXT) || ':'
            ) || CAST("visits"."drug" AS TEXT),
            '-'
          ) || COALESCE(
            (
              CAST(LENGTH(CAST("visits"."cost" AS TEXT)) AS TEXT) || ':'
            ) || CAST("visits"."cost" AS TEXT),
            '-'
          ) AS "x"
        FROM (
          SELECT
            "patient" AS "_unit",
            "patient" AS "patient",
            "ward" AS "ward",
            "drug" AS "drug",
            "cost" AS "cost"
          FROM "visits"
          WHERE
            NOT "patient" IS NULL
        ) AS "visits"
        JOIN (
          SELECT
            "_rows"."col0" AS "ward",
            "_rows"."col1" AS "name"
          FROM (
            SELECT
              "_listed"."c0" AS "col0",
              "_listed"."c1" AS "col1"
            FROM (VALUES
              (CAST('a' AS TEXT), CAST('first' AS TEXT)),
              (CAST('b' AS TEXT), CAST(NULL AS TEXT))) AS "_listed"("c0", "c1")
          ) AS "_rows"
        ) AS "t"
          ON (
            "visits"."ward" = "t"."ward"
          )
      ) AS _rows
      WHERE
        NOT k0 IS NULL AND NOT _unit IS NULL AND NOT x IS NULL
    ) AS _held
  ) AS _placed
  WHERE
    place <= 1
) AS _brought
GROUP BY
  k0;
