-- A window partitioned by the unit.
-- sfumato: epsilon=1, delta=1e-6, rows=4
WITH latest AS (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY patient ORDER BY day DESC) AS place FROM visits
)
SELECT ward, COUNT(*) AS n FROM latest WHERE place = 1 GROUP BY ward
----------------------------------------------------------------------------------------------------
WITH _pairs AS MATERIALIZED (
  SELECT
    _unit,
    k0,
    LEAST(COUNT(*), 4398046511104) AS s0
  FROM (
    SELECT
      "latest"."_unit" AS "_unit",
      "latest"."ward" AS "k0"
    FROM (
      SELECT
        "_numbered"."_unit" AS "_unit",
        "_numbered"."c0" AS "patient",
        "_numbered"."c1" AS "ward",
        "_numbered"."c2" AS "drug",
        "_numbered"."c3" AS "days",
        "_numbered"."c4" AS "cost",
        "_numbered"."c5" AS "day",
        CAST(ROW_NUMBER() OVER (
          PARTITION BY "_numbered"."_unit"
          ORDER BY "_numbered"."c5" DESC, "_numbered"."_place" ASC
        ) AS BIGINT) AS "place"
      FROM (
        SELECT
          "visits"."_unit" AS "_unit",
          "visits"."patient" AS "c0",
          "visits"."ward" AS "c1",
          "visits"."drug" AS "c2",
          "visits"."days" AS "c3",
          "visits"."cost" AS "c4",
          "visits"."day" AS "c5",
          ROW_NUMBER() OVER (
            PARTITION BY "visits"."_unit"
            ORDER BY "visits"."patient" ASC, "visits"."ward" ASC, "visits"."drug" ASC, "visits"."days" ASC, SIGNBIT("visits"."days") ASC, "visits"."cost" ASC, "visits"."day" ASC
          ) AS "_place"
        FROM (
          SELECT
            "patient" AS "_unit",
            "patient" AS "patient",
            "ward" AS "ward",
            "drug" AS "drug",
            "days" AS "days",
            "cost" AS "cost",
            "day" AS "day"
          FROM "visits"
          WHERE
            NOT "patient" IS NULL
        ) AS "visits"
      ) AS "_numbered"
    ) AS "latest"
    WHERE
      "latest"."place" = CAST(1 AS BIGINT)
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
