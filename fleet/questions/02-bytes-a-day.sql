-- Bytes that each app writes on a device in a day: p50, p95, p99 over devices and days.
-- Traces that do not say which device they are of count as one device each.
WITH daily AS (
    SELECT app, CASE WHEN device_id = '' THEN trace_id ELSE device_id END AS device, day,
           sum(bytes) AS bytes
    FROM segments
    WHERE operation = 'write' AND by_tracer = 0
    GROUP BY app, CASE WHEN device_id = '' THEN trace_id ELSE device_id END, day
), ranked AS (
    SELECT app, bytes,
           row_number() OVER (PARTITION BY app ORDER BY bytes, device, day) AS place,
           count(*) OVER (PARTITION BY app) AS days
    FROM daily
)
SELECT app, max(days) AS device_days,
       min(CASE WHEN 100 * place >= 50 * days THEN bytes END) AS p50_bytes,
       min(CASE WHEN 100 * place >= 95 * days THEN bytes END) AS p95_bytes,
       min(CASE WHEN 100 * place >= 99 * days THEN bytes END) AS p99_bytes
FROM ranked
GROUP BY app
ORDER BY p50_bytes DESC, app
