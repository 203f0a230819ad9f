WITH "_pairs" AS (
  SELECT
    "_unit",
    (CASE WHEN COUNT(*) IS NULL THEN 4398046511104 WHEN 4398046511104 IS NULL THEN COUNT(*) WHEN COUNT(*) <= 4398046511104 THEN COUNT(*) ELSE 4398046511104 END) AS "s0"
  FROM (
    SELECT
      "visits"."_unit" AS "_unit"
    FROM (
      SELECT
        "patient" AS "_unit",
        "patient" AS "patient",
        "day" AS "day"
      FROM "visits"
      WHERE
        NOT "patient" IS NULL
    ) AS "visits"
    JOIN (
      SELECT
        "who" AS "_unit",
        "who" AS "who"
      FROM "calls"
      WHERE
        NOT "who" IS NULL
    ) AS "calls"
      ON CAST("visits"."_unit" AS VARCHAR) = CAST("calls"."_unit" AS VARCHAR)
    JOIN (
      SELECT
        "groups"."_unit" AS "_unit",
        "groups"."key0" AS "patient",
        "groups"."aggregate0" AS "last"
      FROM (
        SELECT
          "visits"."_unit" AS "_unit",
          "visits"."patient" AS "key0",
          MAX("visits"."day") AS "aggregate0"
        FROM (
          SELECT
            "patient" AS "_unit",
            "patient" AS "patient",
            "day" AS "day"
          FROM "visits"
          WHERE
            NOT "patient" IS NULL
        ) AS "visits"
        GROUP BY
          1,
          2
      ) AS "groups"
    ) AS "part"
      ON CAST("visits"."_unit" AS VARCHAR) = CAST("part"."_unit" AS VARCHAR)
    WHERE
      (
        CAST("calls"."who" AS VARCHAR) = CAST("part"."patient" AS VARCHAR)
      )
      AND (
        "part"."last" = "visits"."day"
      )
      AND (
        CAST("part"."patient" AS VARCHAR) = CAST("visits"."patient" AS VARCHAR)
      )
  ) AS "_rows"
  WHERE
    NOT "_unit" IS NULL
  GROUP BY
    "_unit"
), "_units" AS (
  SELECT
    *,
    (CASE WHEN CAST((CAST(((CAST((CAST("s0" AS BIGINT) * CAST(1048513 AS BIGINT)) AS BIGINT) + CAST(3 AS BIGINT))) AS BIGINT) - MOD(CAST(((CAST((CAST("s0" AS BIGINT) * CAST(1048513 AS BIGINT)) AS BIGINT) + CAST(3 AS BIGINT))) AS BIGINT), NULLIF(CAST(4 AS BIGINT), 0))) / NULLIF(CAST(4 AS BIGINT), 0) AS BIGINT) IS NULL THEN 1073741823 WHEN 1073741823 IS NULL THEN CAST((CAST(((CAST((CAST("s0" AS BIGINT) * CAST(1048513 AS BIGINT)) AS BIGINT) + CAST(3 AS BIGINT))) AS BIGINT) - MOD(CAST(((CAST((CAST("s0" AS BIGINT) * CAST(1048513 AS BIGINT)) AS BIGINT) + CAST(3 AS BIGINT))) AS BIGINT), NULLIF(CAST(4 AS BIGINT), 0))) / NULLIF(CAST(4 AS BIGINT), 0) AS BIGINT) WHEN CAST((CAST(((CAST((CAST("s0" AS BIGINT) * CAST(1048513 AS BIGINT)) AS BIGINT) + CAST(3 AS BIGINT))) AS BIGINT) - MOD(CAST(((CAST((CAST("s0" AS BIGINT) * CAST(1048513 AS BIGINT)) AS BIGINT) + CAST(3 AS BIGINT))) AS BIGINT), NULLIF(CAST(4 AS BIGINT), 0))) / NULLIF(CAST(4 AS BIGINT), 0) AS BIGINT) <= 1073741823 THEN CAST((CAST(((CAST((CAST("s0" AS BIGINT) * CAST(1048513 AS BIGINT)) AS BIGINT) + CAST(3 AS BIGINT))) AS BIGINT) - MOD(CAST(((CAST((CAST("s0" AS BIGINT) * CAST(1048513 AS BIGINT)) AS BIGINT) + CAST(3 AS BIGINT))) AS BIGINT), NULLIF(CAST(4 AS BIGINT), 0))) / NULLIF(CAST(4 AS BIGINT), 0) AS BIGINT) ELSE 1073741823 END) AS "norm",
    1 AS "t"
  FROM "_pairs"
), "_weighted" AS (
  SELECT
    *,
    CASE
      WHEN "norm" <= 1048576
      THEN 4096
      WHEN "norm" >= 1073741823
      THEN 0
      ELSE CAST(CAST(SIGN(4294967296) * SIGN("norm") * ((CAST(ABS(CAST(4294967296 AS BIGINT)) AS BIGINT) - MOD(CAST(ABS(CAST(4294967296 AS BIGINT)) AS BIGINT), NULLIF(CAST(ABS(CAST("norm" AS BIGINT)) AS BIGINT), 0))) / NULLIF(CAST(ABS(CAST("norm" AS BIGINT)) AS BIGINT), 0)) AS BIGINT) AS BIGINT)
    END AS "w"
  FROM "_units"
)
SELECT
  COALESCE(SUM(CAST((CAST("w" AS BIGINT) * CAST("s0" AS BIGINT)) AS DECIMAL(38, 0))), 0) AS "s0"
FROM "_weighted";
