-- How long fsync and fdatasync take, by part and firmware.
WITH ranked AS (
    SELECT part, firmware, duration_ns,
           row_number() OVER (PARTITION BY part, firmware ORDER BY duration_ns) AS place,
           count(*) OVER (PARTITION BY part, firmware) AS calls
    FROM syncs
    WHERE kind IN ('fsync', 'fdatasync') AND duration_ns IS NOT NULL
)
SELECT part, firmware, max(calls) AS calls,
       min(CASE WHEN 100 * place >= 50 * calls THEN duration_ns END) AS p50_ns,
       min(CASE WHEN 100 * place >= 99 * calls THEN duration_ns END) AS p99_ns,
       max(duration_ns) AS max_ns
FROM ranked
GROUP BY part, firmware
ORDER BY p99_ns DESC, part, firmware
