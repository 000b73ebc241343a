-- What each release changed for a model, against the one that was seen before it: bytes written per
-- device and day, the share of the filesystem's journal, and the mean time of a write.
WITH releases AS (
    SELECT model, release, min(day) AS first_day,
           count(DISTINCT concat(CASE WHEN device_id = '' THEN trace_id ELSE device_id END, ' ',
                                 CAST(day AS VARCHAR(20)))) AS device_days,
           sum(bytes) AS written_bytes,
           sum(CASE WHEN layer = 'journal' THEN bytes ELSE 0 END) AS journal_bytes,
           avg(device_ns) AS mean_device_ns
    FROM segments
    WHERE operation = 'write' AND by_tracer = 0
    GROUP BY model, release
), pairs AS (
    SELECT model, release, device_days,
           1e0 * written_bytes / device_days AS bytes_a_day,
           1e2 * journal_bytes / nullif(written_bytes, 0) AS journal_percent,
           mean_device_ns,
           lag(release) OVER (PARTITION BY model ORDER BY first_day, release) AS before_release,
           lag(1e0 * written_bytes / device_days)
               OVER (PARTITION BY model ORDER BY first_day, release) AS before_bytes_a_day,
           lag(1e2 * journal_bytes / nullif(written_bytes, 0))
               OVER (PARTITION BY model ORDER BY first_day, release) AS before_journal_percent,
           lag(mean_device_ns) OVER (PARTITION BY model ORDER BY first_day, release)
               AS before_mean_device_ns
    FROM releases
)
SELECT model, before_release, release, device_days,
       1e2 * (bytes_a_day - before_bytes_a_day) / nullif(before_bytes_a_day, 0)
           AS bytes_a_day_change_percent,
       journal_percent - before_journal_percent AS journal_change_points,
       1e2 * (mean_device_ns - before_mean_device_ns) / nullif(before_mean_device_ns, 0)
           AS device_time_change_percent
FROM pairs
WHERE before_release IS NOT NULL
ORDER BY model, release
