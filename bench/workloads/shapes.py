"""The shapes of queries that the documentation of private SQL engines shows, in our own words, over one made-up clinic.

Who writes such an engine's manual shows what people ask: plain aggregates, groups by everything, joins, subqueries per
person, conditions, dates, and what is done with released numbers. Every query stands as an analyst would type it.
"""

from __future__ import annotations

SHAPES: dict[str, str] = {
    # Plain aggregates.
    "count": "SELECT COUNT(*) FROM visits",
    "count named": "SELECT COUNT(*) AS n FROM visits",
    "count column": "SELECT COUNT(cost) AS paid FROM visits",
    "count units": "SELECT COUNT(DISTINCT patient) AS people FROM visits",
    "count values": "SELECT COUNT(DISTINCT drug) AS drugs FROM visits",
    "sum": "SELECT SUM(cost) AS total FROM visits",
    "mean": "SELECT AVG(cost) AS mean FROM visits",
    "spread": "SELECT STDDEV(cost) AS sd, VARIANCE(cost) AS var FROM visits",
    "aliases of spread": "SELECT STD(cost) AS sd, VAR_SAMP(cost) AS var, STDDEV_POP(cost) AS sp FROM visits",
    "median": "SELECT MEDIAN(cost) AS middle FROM visits",
    "quantile": "SELECT QUANTILE_CONT(cost, 0.9) AS p90 FROM visits",
    "percentile": "SELECT PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY cost) AS q1 FROM visits",
    "extremes": "SELECT MIN(cost) AS least, MAX(cost) AS most FROM visits",
    "several": "SELECT COUNT(*) AS n, SUM(cost) AS total, AVG(nights) AS nights FROM visits",
    "approximate distinct": "SELECT APPROX_COUNT_DISTINCT(drug) AS drugs FROM visits",
    "distinct pairs": "SELECT COUNT(DISTINCT (ward, drug)) AS pairs FROM visits",
    "sum of distinct": (
        "SELECT SUM(spent) AS total FROM (SELECT patient, SUM(DISTINCT cost) AS spent FROM visits GROUP BY patient) "
        "AS t"
    ),
    "correlation": "SELECT CORR(cost, nights) AS r FROM visits",
    # Groups.
    "by category": "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward",
    "by two": "SELECT ward, urgent, COUNT(*) AS n FROM visits GROUP BY ward, urgent",
    "by position": "SELECT ward, COUNT(*) AS n FROM visits GROUP BY 1 ORDER BY 2 DESC",
    "by alias": "SELECT UPPER(ward) AS big, COUNT(*) AS n FROM visits GROUP BY big",
    "by all": "SELECT ward, urgent, SUM(cost) AS total FROM visits GROUP BY ALL",
    "by unknown keys": "SELECT drug, COUNT(*) AS n FROM visits GROUP BY drug ORDER BY n DESC LIMIT 5",
    "by year": "SELECT EXTRACT(YEAR FROM day) AS y, COUNT(*) AS n FROM visits GROUP BY y",
    "by month": (
        "SELECT DATE_TRUNC('month', day) AS month, SUM(cost) AS total FROM visits GROUP BY month ORDER BY month"
    ),
    "by weekday": "SELECT DAYOFWEEK(day) AS weekday, COUNT(*) AS n FROM visits GROUP BY weekday",
    "by half": "SELECT nights / 2 AS pairs, COUNT(*) AS n FROM visits GROUP BY 1",
    "by bucket": "SELECT FLOOR(age / 10) * 10 AS decade, COUNT(*) AS n FROM patients GROUP BY decade ORDER BY decade",
    "by case": (
        "SELECT CASE WHEN age < 18 THEN 'child' WHEN age < 65 THEN 'adult' ELSE 'old' END AS stage, COUNT(*) AS n "
        "FROM patients GROUP BY stage"
    ),
    "by flag": "SELECT urgent, AVG(cost) AS mean FROM visits GROUP BY urgent",
    "by cast": "SELECT CAST(nights AS VARCHAR) AS nights, COUNT(*) AS n FROM visits GROUP BY 1",
    "list of groups": "SELECT drug FROM visits GROUP BY drug",
    "distinct groups": "SELECT DISTINCT drug FROM visits",
    "rollup": "SELECT ward, urgent, COUNT(*) AS n FROM visits GROUP BY ROLLUP (ward, urgent)",
    "cube": "SELECT ward, urgent, SUM(cost) AS total FROM visits GROUP BY CUBE (ward, urgent)",
    "grouping sets": "SELECT ward, urgent, COUNT(*) AS n FROM visits GROUP BY GROUPING SETS ((ward), (urgent), ())",
    # Conditions.
    "where": "SELECT COUNT(*) AS n FROM visits WHERE ward = 'east' AND cost > 100",
    "where in": "SELECT COUNT(*) AS n FROM visits WHERE ward IN ('east', 'west')",
    "where between": (
        "SELECT SUM(cost) AS total FROM visits WHERE day BETWEEN DATE '2025-01-01' AND DATE '2025-03-31'"
    ),
    "where like": "SELECT COUNT(*) AS n FROM visits WHERE drug LIKE 'D0%'",
    "where null": "SELECT COUNT(*) AS n FROM visits WHERE cost IS NOT NULL",
    "where flag": "SELECT COUNT(*) AS n FROM visits WHERE urgent",
    "flag as number": "SELECT COUNT(*) AS n FROM visits WHERE urgent = 1",
    "sum of flag": "SELECT SUM(CASE WHEN urgent THEN 1 ELSE 0 END) AS n, AVG(urgent::INT) AS share FROM visits",
    "count if": "SELECT COUNT_IF(cost > 200) AS dear FROM visits",
    "filter": "SELECT COUNT(*) FILTER (WHERE urgent) AS urgent, COUNT(*) AS n FROM visits",
    "decimal bounds": "SELECT COUNT(*) AS n FROM visits WHERE cost BETWEEN 10.05 - 0.01 AND 99.99 + 0.01",
    # What is done with released numbers.
    "having": "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward HAVING COUNT(*) > 100",
    "ratio": "SELECT ward, SUM(cost) / COUNT(*) AS mean FROM visits GROUP BY ward",
    "rounded": "SELECT ward, ROUND(AVG(cost), 1) AS mean FROM visits GROUP BY ward",
    "share": "SELECT 100.0 * SUM(CASE WHEN urgent THEN 1 ELSE 0 END) / COUNT(*) AS percent FROM visits",
    "top": "SELECT ward, SUM(cost) AS total FROM visits GROUP BY ward ORDER BY total DESC LIMIT 2",
    "text of key": "SELECT CONCAT('ward ', ward) AS name, COUNT(*) AS n FROM visits GROUP BY ward",
    "rank of groups": (
        "SELECT ward, COUNT(*) AS n, RANK() OVER (ORDER BY COUNT(*) DESC) AS place FROM visits GROUP BY ward"
    ),
    "share of total": "SELECT ward, SUM(cost) / SUM(SUM(cost)) OVER () AS share FROM visits GROUP BY ward",
    "running total": (
        "WITH months AS (SELECT DATE_TRUNC('month', day) AS month, COUNT(*) AS n FROM visits GROUP BY 1) SELECT "
        "month, SUM(n) OVER (ORDER BY month) AS so_far FROM months ORDER BY month"
    ),
    "growth": (
        "WITH months AS (SELECT DATE_TRUNC('month', day) AS month, SUM(cost) AS total FROM visits GROUP BY 1) SELECT "
        "month, total - LAG(total) OVER (ORDER BY month) AS growth FROM months"
    ),
    "above average": (
        "SELECT ward, AVG(cost) AS mean FROM visits GROUP BY ward HAVING AVG(cost) > (SELECT AVG(cost) FROM visits)"
    ),
    "two releases joined": (
        "WITH a AS (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward), b AS (SELECT ward, COUNT(*) AS urgent FROM "
        "visits WHERE urgent GROUP BY ward) SELECT a.ward, b.urgent / a.n AS share FROM a JOIN b ON a.ward = b.ward"
    ),
    "union of releases": (
        "SELECT 'all' AS what, COUNT(*) AS n FROM visits UNION ALL SELECT 'urgent', COUNT(*) FROM visits WHERE urgent"
    ),
    "mean of groups": "SELECT AVG(n) AS mean FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward) AS t",
    "most common": "SELECT MAX(n) AS most FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward) AS t",
    # Per person.
    "visits each": "SELECT AVG(n) AS mean FROM (SELECT patient, COUNT(*) AS n FROM visits GROUP BY patient) AS t",
    "histogram of visits": (
        "SELECT n, COUNT(*) AS people FROM (SELECT patient, COUNT(*) AS n FROM visits GROUP BY patient) AS t GROUP BY "
        "n ORDER BY n"
    ),
    "spent each": (
        "SELECT MEDIAN(LEAST(spent, 5000)) AS middle FROM (SELECT patient, SUM(cost) AS spent FROM visits GROUP BY "
        "patient) AS t"
    ),
    "dearest visit": (
        "SELECT AVG(dearest) AS mean FROM (SELECT patient, MAX(cost) AS dearest FROM visits GROUP BY patient) AS t"
    ),
    "first visit": (
        "SELECT ward, COUNT(*) AS n FROM (SELECT patient, ward, ROW_NUMBER() OVER (PARTITION BY patient ORDER BY day) "
        "AS place FROM visits) AS t WHERE place = 1 GROUP BY ward"
    ),
    "days between": (
        "SELECT AVG(gap) AS mean FROM (SELECT day - LAG(day) OVER (PARTITION BY patient ORDER BY day) AS gap FROM "
        "visits) AS t WHERE gap BETWEEN 0 AND 365"
    ),
    "last three": (
        "SELECT AVG(cost) AS mean FROM (SELECT patient, cost FROM visits QUALIFY ROW_NUMBER() OVER (PARTITION BY "
        "patient ORDER BY day DESC) <= 3) AS t"
    ),
    "distinct per person": (
        "SELECT ward, COUNT(*) AS n FROM (SELECT DISTINCT patient, ward FROM visits) AS t GROUP BY ward"
    ),
    "exists": (
        "SELECT COUNT(*) AS n FROM patients WHERE EXISTS (SELECT 1 FROM visits WHERE visits.patient = "
        "patients.patient AND urgent)"
    ),
    "not exists": (
        "SELECT COUNT(*) AS n FROM patients p WHERE NOT EXISTS (SELECT 1 FROM visits v WHERE v.patient = p.patient)"
    ),
    "in own rows": (
        "SELECT COUNT(*) AS n FROM patients WHERE patient IN (SELECT patient FROM visits WHERE ward = 'east')"
    ),
    "own maximum": (
        "SELECT AVG(cost) AS mean FROM visits v WHERE cost = (SELECT MAX(cost) FROM visits w WHERE w.patient = "
        "v.patient)"
    ),
    # Joins.
    "join units": (
        "SELECT sex, COUNT(*) AS n FROM visits JOIN patients ON visits.patient = patients.patient GROUP BY sex"
    ),
    "join using": "SELECT sex, AVG(cost) AS mean FROM visits JOIN patients USING (patient) GROUP BY sex",
    "natural join": "SELECT sex, COUNT(*) AS n FROM visits NATURAL JOIN patients GROUP BY sex",
    "comma join": "SELECT site, COUNT(*) AS n FROM visits, wards WHERE visits.ward = wards.ward GROUP BY site",
    "public join": "SELECT site, SUM(cost) AS total FROM visits JOIN wards ON visits.ward = wards.ward GROUP BY site",
    "left join": (
        "SELECT sex, COUNT(cost) AS n FROM patients LEFT JOIN visits ON patients.patient = visits.patient GROUP BY sex"
    ),
    "two public columns": (
        "SELECT site, w.ward, COUNT(*) AS n FROM visits v JOIN wards w ON v.ward = w.ward GROUP BY site, w.ward"
    ),
    "in public": "SELECT COUNT(*) AS n FROM visits WHERE ward IN (SELECT ward FROM wards WHERE beds > 20)",
    "values": (
        "SELECT name, COUNT(*) AS n FROM visits JOIN (VALUES ('east', 'E'), ('west', 'W')) AS t(ward, name) ON "
        "visits.ward = t.ward GROUP BY name"
    ),
    "with": (
        "WITH dear AS (SELECT patient, ward FROM visits WHERE cost > 100) SELECT ward, COUNT(*) AS n FROM dear GROUP "
        "BY ward"
    ),
    "union of rows": (
        "SELECT COUNT(*) AS n FROM (SELECT patient FROM visits UNION ALL SELECT patient FROM patients) AS t"
    ),
    "qualified": "SELECT main.visits.ward, COUNT(*) AS n FROM main.visits GROUP BY main.visits.ward",
    "per bed": (
        "SELECT w.ward, n / beds AS load FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward) AS t JOIN wards "
        "w ON t.ward = w.ward"
    ),
}
