-- Devices whose p99 of a flush in the 30 days until the lake's last day is twice that of the 30 days
-- before. Traces that do not say which device they are of do not count.
WITH last_day AS (
    SELECT max(day) AS day FROM requests
), flushes AS (
    SELECT device_id, model, part, firmware, device_ns, trace_id, request_id,
           CASE WHEN requests.day > last_day.day - 30 THEN 'now' ELSE 'before' END AS period
    FROM requests CROSS JOIN last_day
    WHERE executed_flush = 1 AND by_tracer = 0 AND device_id <> '' AND device_ns IS NOT NULL
      AND requests.day > last_day.day - 60
), ranked AS (
    SELECT device_id, model, part, firmware, period, device_ns,
           row_number() OVER (PARTITION BY device_id, period
                              ORDER BY device_ns, trace_id, request_id) AS place,
           count(*) OVER (PARTITION BY device_id, period) AS flushes
    FROM flushes
), p99 AS (
    SELECT device_id, max(model) AS model, max(part) AS part, max(firmware) AS firmware,
           min(CASE WHEN period = 'before' AND 100 * place >= 99 * flushes THEN device_ns END)
               AS before_ns,
           min(CASE WHEN period = 'now' AND 100 * place >= 99 * flushes THEN device_ns END) AS now_ns
    FROM ranked
    GROUP BY device_id
)
SELECT device_id, model, part, firmware, before_ns, now_ns, 1e0 * now_ns / before_ns AS times
FROM p99
WHERE now_ns >= 2 * before_ns
ORDER BY times DESC, device_id
