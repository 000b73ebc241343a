# The wal-index as SQLite has it, where the test VFS stands below waldio and sees the
# guard region before it.  A test that sets a part of it sets the whole, since the test
# VFS takes whole pages alone but for the first.
proc shm_of {zVfs zFile args} {
  set skip [expr {$::env(WALDIO_SUITE) in {P T W} ? 32768 : 0}]
  if {[llength $args]} {
    set old [$zVfs shm $zFile]
    set iEnd [expr {$skip + [string length [lindex $args 0]]}]
    $zVfs shm $zFile [string range $old 0 [expr {$skip-1}]][lindex $args 0][string range $old $iEnd end]
  }
  string range [$zVfs shm $zFile] $skip end
}
