# testfixture-waldio run.tcl FILE.test: runs a file of SQLite's own tests.
#
# Its procedures that know how long a log of N frames is are replaced by ones that
# know it for the layout of WALDIO_SUITE; see init.c, and waldio.c for the layouts.
# What else a file takes for granted about the log is translated by translate/FILE:
#
#     translate OLD NEW    replaces OLD, which has to be there
#
# That is done in all modes, so SQLite alone passes what was translated.

set argv0 [lindex $argv 0]
set argv {}

# Every test of a file runs, however many fail before.
trace add variable cmdlinearg write {apply {{zArray zElement zOp} {
  if {$zElement eq "maxerror"} { set ::cmdlinearg(maxerror) 1000000 }
}}}

proc suite_is_waldio {} { expr {$::env(WALDIO_SUITE) in {P T W above}} }

proc suite_log_size {nFrame pgsz {layout ""}} {
  if {$layout eq ""} { set layout $::env(WALDIO_SUITE) }
  if {$nFrame==0} { return 4096 }
  if {$layout eq "P"} { return [expr {4096 + $nFrame*(($pgsz+24+511)/512*512)}] }
  expr {8192 + $nFrame*$pgsz + ($nFrame-1)/128*4096}
}

# How long the log is that has as many frames as one of n bytes of SQLite's.
proc suite_log_bytes {n pgsz} {
  if {![suite_is_waldio]} { return $n }
  suite_log_size [expr {($n-32)/($pgsz+24)}] $pgsz
}

proc suite_layout {zFile} {
  set f [open $zFile rb]
  set aBlock0 [read $f 64]
  close $f
  if {[binary scan $aBlock0 x40c layout]==0} { return "" }
  lindex {"" P W T} $layout
}
proc suite_frame_count {zFile pgsz} {
  if {![file exists $zFile]} { return 0 }
  set sz [file size $zFile]
  set layout [suite_layout $zFile]
  set n 0
  while {[suite_log_size [expr {$n+1}] $pgsz $layout]<=$sz} { incr n }
  return $n
}

if {[suite_is_waldio]} {
  rename proc suite_proc
  suite_proc proc {zName zArgs zBody} {
    array set aMine {wal_file_size suite_log_size wal_frame_count suite_frame_count}
    if {[info exists aMine($zName)]} {
      set zBody "$aMine($zName) {*}\[lrange \[info level 0\] 1 end\]"
    }
    uplevel 1 [list suite_proc $zName $zArgs $zBody]
  }
}

set suite_text [read [set suite_file [open $argv0]]]
close $suite_file
proc translate {zOld zNew} {
  if {[string first $zOld $::suite_text]<0} { error "not in $::argv0: $zOld" }
  set ::suite_text [string map [list $zOld $zNew] $::suite_text]
}
set suite_file [file join [file dirname [info script]] translate [file tail $argv0]]
if {[file exists $suite_file]} { source $suite_file }
eval $suite_text
