WITH `_cells` AS (
  SELECT
    `_unit`,
    `leaf`,
    COUNT(*) AS `c`
  FROM (
    SELECT
      `visits`.`_unit` AS `_unit`,
      CASE
        WHEN `visits`.`cost` >= CAST(0 AS INT64) AND `visits`.`cost` <= CAST(100 AS INT64)
        THEN CASE
          WHEN `visits`.`cost` < CAST(10 AS INT64)
          THEN CAST(0 AS INT64)
          ELSE CASE
            WHEN `visits`.`cost` < CAST(50 AS INT64)
            THEN CAST(1 AS INT64)
            ELSE CAST(2 AS INT64)
          END
        END
      END AS `leaf`
    FROM (
      SELECT
        `patient` AS `_unit`,
        `patient` AS `patient`,
        `cost` AS `cost`
      FROM `visits`
      WHERE
        NOT `patient` IS NULL
    ) AS `visits`
  ) AS `_rows`
  WHERE
    NOT `_unit` IS NULL AND NOT `leaf` IS NULL
  GROUP BY
    `_unit`,
    `leaf`
), `_pairs` AS (
  SELECT
    `_unit`,
    CAST((CASE WHEN SUM(CAST(`c` AS BIGNUMERIC)) IS NULL THEN 4398046511104 WHEN 4398046511104 IS NULL THEN SUM(CAST(`c` AS BIGNUMERIC)) WHEN SUM(CAST(`c` AS BIGNUMERIC)) <= 4398046511104 THEN SUM(CAST(`c` AS BIGNUMERIC)) ELSE 4398046511104 END) AS INT64) AS `s0`
  FROM `_cells`
  GROUP BY
    `_unit`
), `_units` AS (
  SELECT
    `_unit`,
    SUM(CAST((CASE WHEN CAST(DIV(CAST(((CAST((CAST(`s0` AS INT64) * CAST(1048513 AS INT64)) AS INT64) + CAST(3 AS INT64))) AS INT64), NULLIF(CAST(4 AS INT64), 0)) AS INT64) IS NULL THEN 1073741823 WHEN 1073741823 IS NULL THEN CAST(DIV(CAST(((CAST((CAST(`s0` AS INT64) * CAST(1048513 AS INT64)) AS INT64) + CAST(3 AS INT64))) AS INT64), NULLIF(CAST(4 AS INT64), 0)) AS INT64) WHEN CAST(DIV(CAST(((CAST((CAST(`s0` AS INT64) * CAST(1048513 AS INT64)) AS INT64) + CAST(3 AS INT64))) AS INT64), NULLIF(CAST(4 AS INT64), 0)) AS INT64) <= 1073741823 THEN CAST(DIV(CAST(((CAST((CAST(`s0` AS INT64) * CAST(1048513 AS INT64)) AS INT64) + CAST(3 AS INT64))) AS INT64), NULLIF(CAST(4 AS INT64), 0)) AS INT64) ELSE 1073741823 END) AS BIGNUMERIC)) AS `norm`
  FROM `_pairs`
  GROUP BY
    `_unit`
), `_weights` AS (
  SELECT
    `_unit`,
    CASE
      WHEN `norm` <= 1048576
      THEN 4096
      WHEN `norm` >= 1073741823
      THEN 0
      ELSE CAST(CAST(SIGN(4294967296) * SIGN(`norm`) * (DIV(CAST(ABS(CAST(4294967296 AS BIGNUMERIC)) AS BIGNUMERIC), NULLIF(CAST(ABS(CAST(`norm` AS BIGNUMERIC)) AS BIGNUMERIC), 0))) AS BIGNUMERIC) AS INT64)
    END AS `w`
  FROM `_units`
)
SELECT
  `leaf`,
  SUM(CAST((CAST(`w` AS INT64) * CAST(`c` AS INT64)) AS BIGNUMERIC)) AS `s0`
FROM `_cells`
JOIN `_weights`
  USING (`_unit`)
GROUP BY
  `leaf`;
