-- A unit brings a few values, by an order of its own.
-- sfumato: epsilon=1, delta=1e-6, rows=4, values=3
SELECT ward, COUNT(DISTINCT drug) AS d FROM visits GROUP BY ward
----------------------------------------------------------------------------------------------------
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
          "visits"."ward" AS "k0",
          "visits"."drug" AS "x"
        FROM (
          SELECT
            "patient" AS "_unit",
            "patient" AS "patient",
            "ward" AS "ward",
            "drug" AS "drug"
          FROM "visits"
          WHERE
            NOT "patient" IS NULL
        ) AS "visits"
      ) AS _rows
      WHERE
        NOT k0 IS NULL AND NOT _unit IS NULL AND NOT x IS NULL
    ) AS _held
  ) AS _placed
  WHERE
    place <= 3
) AS _brought
GROUP BY
  k0;
