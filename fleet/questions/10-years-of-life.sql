-- Years until the part is worn out, by model and decile of use, if its cells take 3,000 cycles and it
-- writes three bytes for one that it is told to: put the part's own figures here. The wear that
-- parts themselves tell stands beside it.
WITH devices AS (
    SELECT model, CASE WHEN device_id = '' THEN trace_id ELSE device_id END AS device,
           max(capacity_bytes) AS capacity_bytes,
           1e0 * sum(write_bytes) / sum(duration_ns) * 86400000000000 AS bytes_a_day,
           max(used_percent) AS used_percent, max(life_time_a) AS life_time_a
    FROM traces
    WHERE duration_ns > 0 AND write_bytes > 0
    GROUP BY model, CASE WHEN device_id = '' THEN trace_id ELSE device_id END
), ranked AS (
    SELECT model, capacity_bytes, bytes_a_day, used_percent, life_time_a,
           ntile(10) OVER (PARTITION BY model ORDER BY bytes_a_day, device) AS decile
    FROM devices
)
SELECT model, decile, count(*) AS devices, avg(bytes_a_day) AS mean_bytes_a_day,
       avg(capacity_bytes * 3e3 / (bytes_a_day * 3e0 * 365.25e0)) AS mean_years,
       max(used_percent) AS max_used_percent, max(life_time_a) AS max_life_time_a
FROM ranked
GROUP BY model, decile
ORDER BY model, decile
