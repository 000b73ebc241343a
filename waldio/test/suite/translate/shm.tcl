# The wal-index as SQLite has it, where the test VFS stands below waldio and sees the
# guard region before it.
proc shm_of {zVfs zFile args} {
  set skip [expr {$::env(WALDIO_SUITE) in {P T W} ? 32768 : 0}]
  set guard [string range [$zVfs shm $zFile] 0 [expr {$skip-1}]]
  set blob {}
  foreach blob $args { set blob [list $guard$blob] }
  string range [$zVfs shm $zFile {*}$blob] $skip end
}
