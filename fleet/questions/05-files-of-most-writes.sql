-- Which files cause 80 % of the writes: their own data, and what their syncs made the filesystem
-- write. A file is the hash of its path, the same on every device.
WITH files AS (
    SELECT app,
           CASE WHEN layer = 'data' THEN file_type ELSE cause_file_type END AS file_type,
           CASE WHEN layer = 'data' THEN file ELSE cause_file END AS file,
           sum(bytes) AS bytes
    FROM segments
    WHERE operation = 'write' AND by_tracer = 0
    GROUP BY app,
             CASE WHEN layer = 'data' THEN file_type ELSE cause_file_type END,
             CASE WHEN layer = 'data' THEN file ELSE cause_file END
), sums AS (
    SELECT app, file_type, file, bytes,
           sum(bytes) OVER (ORDER BY bytes DESC, app, file_type, file
                            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS bytes_so_far,
           sum(bytes) OVER () AS all_bytes
    FROM files
)
SELECT app, file_type, file, bytes, 1e2 * bytes / nullif(all_bytes, 0) AS percent,
       1e2 * bytes_so_far / nullif(all_bytes, 0) AS percent_so_far
FROM sums
WHERE 100 * (bytes_so_far - bytes) < 80 * all_bytes
ORDER BY bytes DESC, app, file_type, file
