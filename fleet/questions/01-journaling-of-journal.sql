-- Share of journaling of journal, by app, model and release.
-- joj_bytes: written to the filesystem's journal because of syncs of a database's own log.
SELECT app, model, release,
       sum(bytes) AS written_bytes,
       sum(CASE WHEN layer = 'journal' THEN bytes ELSE 0 END) AS journal_bytes,
       sum(CASE WHEN layer = 'journal' AND cause_is_database_log = 1 THEN bytes ELSE 0 END) AS joj_bytes,
       1e2 * sum(CASE WHEN layer = 'journal' AND cause_is_database_log = 1 THEN bytes ELSE 0 END)
             / nullif(sum(bytes), 0) AS joj_percent
FROM segments
WHERE operation = 'write' AND by_tracer = 0
GROUP BY app, model, release
ORDER BY joj_bytes DESC, app, model, release
