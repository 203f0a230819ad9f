-- A public table is joined; its values are the groups.
-- sfumato: epsilon=1, delta=1e-6, rows=4
SELECT kind, COUNT(*) AS n FROM visits JOIN drugs USING (drug) GROUP BY kind
----------------------------------------------------------------------------------------------------
WITH _pairs AS MATERIALIZED (
  SELECT
    _unit,
    k0,
    LEAST(COUNT(*), 4398046511104) AS s0
  FROM (
    SELECT
      "visits"."_unit" AS "_unit",
      "drugs"."kind" AS "k0"
    FROM (
      SELECT
        "patient" AS "_unit",
        "patient" AS "patient",
        "drug" AS "drug"
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
        CAST("visits"."drug" AS TEXT) = CAST("drugs"."drug" AS TEXT)
      )
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
  COALESCE(SUM(w * s0), 0) AS s0
FROM _pairs
JOIN _weights
  USING (_unit)
GROUP BY
  k0;
