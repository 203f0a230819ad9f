-- LPAD and REPEAT: no text is longer than the query says, or than 65536 characters.
-- sfumato: epsilon=1, delta=1e-6, rows=1
SELECT COUNT(*) AS n FROM visits WHERE LPAD(drug, 4, '0') = '000x' AND REPEAT(drug, 3) <> 'yyy'
----------------------------------------------------------------------------------------------------
WITH _pairs AS MATERIALIZED (
  SELECT
    _unit,
    LEAST(COUNT(*), 4398046511104) AS s0
  FROM (
    SELECT
      "visits"."_unit" AS "_unit"
    FROM (
      SELECT
        "patient" AS "_unit",
        "patient" AS "patient",
        "drug" AS "drug"
      FROM "visits"
      WHERE
        NOT "patient" IS NULL
    ) AS "visits"
    WHERE
      (
        (
          LEFT(
            '0000',
            GREATEST(CAST(4 AS BIGINT) - LENGTH(CAST("visits"."drug" AS TEXT)), CAST(0 AS BIGINT))
          ) || LEFT(CAST("visits"."drug" AS TEXT), CAST(4 AS BIGINT))
        ) = '000x'
      )
      AND (
        LEFT(
          REPEAT(
            LEFT(CAST("visits"."drug" AS TEXT), CAST(65536 AS BIGINT)),
            LEAST(
              (
                CAST(65536 AS BIGINT) // GREATEST(
                  LENGTH(LEFT(CAST("visits"."drug" AS TEXT), CAST(65536 AS BIGINT))),
                  CAST(1 AS BIGINT)
                )
              ) + CAST(1 AS BIGINT),
              CAST(3 AS BIGINT)
            )
          ),
          CAST(65536 AS BIGINT)
        ) <> 'yyy'
      )
  ) AS _rows
  WHERE
    NOT _unit IS NULL
  GROUP BY
    _unit
), _units AS (
  SELECT
    *,
    LEAST((
      s0 * 1048513 + 0
    ) >> 0, 1073741823) AS norm,
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
