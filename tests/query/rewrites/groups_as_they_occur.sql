-- Groups that are functions of public columns are listed by the engine, over public rows and what WHERE says of them.
-- sfumato: epsilon=1, delta=1e-6, rows=4
SELECT UPPER(d.drug) AS name, kind, ward, COUNT(*) AS n
FROM visits AS v JOIN drugs AS d ON v.drug = d.drug
WHERE kind = 'pill' AND ward <> 'a' AND cost > 3
GROUP BY name, kind, ward
----------------------------------------------------------------------------------------------------
SELECT DISTINCT
  UPPER(CAST("u0"."drug" AS TEXT)) AS "k0",
  "u0"."kind" AS "k1"
FROM (
  SELECT
    "drug" AS "drug",
    "kind" AS "kind"
  FROM "drugs"
) AS u0
WHERE
  (
    "u0"."kind" = 'pill'
  );

SELECT DISTINCT
  "u0"."ward" AS "k0"
FROM (
  SELECT
    CAST(_list.value AS TEXT) AS "ward"
  FROM (VALUES
    ('a'),
    ('b')) AS _list(value)
  UNION ALL
  SELECT
    NULL
) AS u0
WHERE
  (
    "u0"."ward" <> 'a'
  );

WITH _pairs AS MATERIALIZED (
  SELECT
    _unit,
    k0,
    k1,
    k2,
    LEAST(COUNT(*), 4398046511104) AS s0
  FROM (
    SELECT
      "visits"."_unit" AS "_unit",
      UPPER(CAST("drugs"."drug" AS TEXT)) AS "k0",
      "drugs"."kind" AS "k1",
      "visits"."ward" AS "k2"
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
        "drug" AS "drug",
        "kind" AS "kind"
      FROM "drugs"
    ) AS "drugs"
      ON (
        CAST("drugs"."drug" AS TEXT) = CAST("visits"."drug" AS TEXT)
      )
    WHERE
      (
        "visits"."cost" > CAST(3 AS BIGINT)
      )
      AND (
        "drugs"."kind" = 'pill'
      )
      AND (
        "visits"."ward" <> 'a'
      )
  ) AS _rows
  WHERE
    NOT k0 IS NULL AND NOT k1 IS NULL AND NOT k2 IS NULL AND NOT _unit IS NULL
  GROUP BY
    _unit,
    k0,
    k1,
    k2
), _units AS (
  SELECT
    _unit,
    COUNT(*) AS t,
    SUM(
      LEAST((
        s0 * 1048513 + 3
      ) >> 2, 1073741823) * LEAST((
        s0 * 1048513 + 3
      ) >> 2, 1073741823)
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
  k1,
  k2,
  COALESCE(SUM(w * s0), 0) AS s0
FROM _pairs
JOIN _weights
  USING (_unit)
GROUP BY
  k0,
  k1,
  k2;
