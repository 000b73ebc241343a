-- How long the device takes for write-back, for which nobody waits, by how full the filesystem is.
-- Traces that do not say how full it was do not count.
WITH writes AS (
    SELECT CASE WHEN fill_percent > 90 THEN 'above 90 %'
                WHEN fill_percent > 70 THEN '71 to 90 %'
                ELSE 'up to 70 %' END AS filled,
           device_ns
    FROM requests
    WHERE operation = 'write' AND by_tracer = 0 AND synchronous = 0
      AND device_ns IS NOT NULL AND fill_percent IS NOT NULL
), ranked AS (
    SELECT filled, device_ns,
           row_number() OVER (PARTITION BY filled ORDER BY device_ns) AS place,
           count(*) OVER (PARTITION BY filled) AS writes
    FROM writes
)
SELECT filled, max(writes) AS writes,
       min(CASE WHEN 100 * place >= 50 * writes THEN device_ns END) AS p50_ns,
       min(CASE WHEN 100 * place >= 99 * writes THEN device_ns END) AS p99_ns
FROM ranked
GROUP BY filled
ORDER BY filled
