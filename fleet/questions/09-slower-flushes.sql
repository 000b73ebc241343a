-- Devices whose p99 of a flush in the 30 days until the lake's last day is twice that of the 30 days
-- before. Traces that do not say which device they are of do not count.
WITH last_day AS (
    SELECT max(day) AS day FROM requests
), flushes AS (
    SELECT device_id, model, part, firmware, device_ns,
           CASE WHEN requests.day > last_day.day - 30 THEN 1 ELSE 0 END AS is_now
    FROM requests CROSS JOIN last_day
    WHERE executed_flush = 1 AND by_tracer = 0 AND device_id <> '' AND device_ns IS NOT NULL
      AND requests.day > last_day.day - 60
), ranked AS (
    SELECT device_id, is_now, device_ns,
           row_number() OVER (PARTITION BY device_id, is_now ORDER BY device_ns) AS place,
           count(*) OVER (PARTITION BY device_id, is_now) AS flushes
    FROM flushes
), p99 AS (
    SELECT device_id,
           min(CASE WHEN is_now = 0 AND 100 * place >= 99 * flushes THEN device_ns END) AS before_ns,
           min(CASE WHEN is_now = 1 AND 100 * place >= 99 * flushes THEN device_ns END) AS now_ns
    FROM ranked
    GROUP BY device_id
), names AS (
    SELECT device_id, max(model) AS model, max(part) AS part, max(firmware) AS firmware
    FROM flushes
    GROUP BY device_id
)
SELECT p99.device_id AS device_id, model, part, firmware, before_ns, now_ns,
       1e0 * now_ns / nullif(before_ns, 0) AS times
FROM p99
JOIN names ON p99.device_id = names.device_id
WHERE now_ns >= 2 * before_ns
ORDER BY times DESC, p99.device_id
