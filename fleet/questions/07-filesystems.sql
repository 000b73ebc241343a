-- One filesystem against another, for each app that was seen on several: what is written for a byte
-- of data, and how long syncs take.
WITH written AS (
    SELECT app, filesystem,
           sum(bytes) AS written_bytes,
           sum(CASE WHEN layer = 'data' THEN bytes ELSE 0 END) AS data_bytes
    FROM segments
    WHERE operation = 'write' AND by_tracer = 0
    GROUP BY app, filesystem
), ranked AS (
    SELECT app, filesystem, duration_ns,
           row_number() OVER (PARTITION BY app, filesystem ORDER BY duration_ns) AS place,
           count(*) OVER (PARTITION BY app, filesystem) AS calls
    FROM syncs
    WHERE duration_ns IS NOT NULL
), latencies AS (
    SELECT app, filesystem, max(calls) AS calls,
           min(CASE WHEN 100 * place >= 50 * calls THEN duration_ns END) AS p50_ns,
           min(CASE WHEN 100 * place >= 99 * calls THEN duration_ns END) AS p99_ns
    FROM ranked
    GROUP BY app, filesystem
), several AS (
    SELECT app FROM written GROUP BY app HAVING count(*) > 1
)
SELECT written.app AS app, written.filesystem AS filesystem, written_bytes,
       1e0 * written_bytes / nullif(data_bytes, 0) AS written_per_data_byte,
       calls AS sync_calls, p50_ns, p99_ns
FROM written
JOIN several ON written.app = several.app
LEFT JOIN latencies ON written.app = latencies.app AND written.filesystem = latencies.filesystem
ORDER BY written.app, written.filesystem
