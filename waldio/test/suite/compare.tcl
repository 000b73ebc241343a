# compare.tcl RESULTS EXPECTED FILE...: what SQLite's tests say with waldio that
# they do not say without.
#
# RESULTS/MODE/FILE/out is the output of a file of tests; see init.c for the modes.
# Prints a table, and every difference that EXPECTED does not explain, or explains
# and that is gone.  Exit status 1 if there is any.

set against {P stock T stock above stock W reserve}
lassign $argv results expected
set files [lrange $argv 2 end]

# What a file's output says: the number of tests, and the names of those that
# failed; "unfinished" is one of them if the end is missing.
proc summary {zOut} {
  set f [open $zOut]
  fconfigure $f -encoding binary
  set nTest 0
  set failed unfinished
  set names {}
  while {[gets $f line]>=0} {
    regexp {^! (\S+) (expected:|got: )} $line -> name
    if {[info exists name]} { dict set names $name 1; unset name }
    if {[regexp {^\d+ errors out of (\d+) tests} $line -> nTest]} { set failed {} }
    if {[regexp {^!Failures on these tests: (.*)} $line -> rest]} {
      foreach name [split $rest] { if {$name ne ""} { dict set names $name 1 } }
      unset -nocomplain name
    }
  }
  close $f
  list $nTest [concat [dict keys $names] $failed]
}

# EXPECTED has reasons, lines that begin with "=", each followed by the tests it
# explains: FILE MODE,MODE... PATTERN...
proc readExpected {zFile} {
  set reason ""
  set entries {}
  set f [open $zFile]
  while {[gets $f line]>=0} {
    set line [string trim $line]
    if {$line eq "" || [string index $line 0] eq "#"} continue
    if {[string index $line 0] eq "="} {
      set reason [string trim [string range $line 1 end]]
      continue
    }
    set patterns [lassign [regexp -all -inline {\S+} $line] file modes]
    if {$reason eq "" || [llength $patterns]==0} { error "$zFile: no reason or tests: $line" }
    foreach pattern $patterns {
      foreach mode [split $modes ,] { lappend entries [list $file $mode $pattern $reason] }
    }
  }
  close $f
  return $entries
}

set entries [readExpected $expected]
set used {}
set reasons {}
set problems {}
set format "%-24s %7s %6s %7s  %5s %5s %5s %5s  %9s %11s"
puts [format $format file tests stock reserve P T W above explained unexplained]
array set sum {P 0 T 0 W 0 above 0 stock 0 reserve 0 tests 0 explained 0 bad 0}
foreach file $files {
  array unset failed
  array unset ran
  array set count {P - T - W - above - stock - reserve -}
  set nTest 0
  foreach mode {stock reserve P T W above} {
    set out $results/$mode/$file/out
    if {![file exists $out]} continue
    lassign [summary $out] n failed($mode)
    if {$mode eq "stock"} { set nTest $n }
    set count($mode) [llength $failed($mode)]
    set ran($mode) $n
    incr sum($mode) $count($mode)
  }
  set nExplained 0
  set nBad 0
  foreach {mode base} $against {
    if {![info exists failed($mode)]} continue
    if {![info exists failed($base)]} { error "$file was not run with $base" }
    # Tests that were left out, or came twice, are a difference with a name, too.
    set names $failed($mode)
    if {$ran($mode)!=$ran($base) && "unfinished" ni $names} {
      lappend names "ran-$ran($mode)-of-$ran($base)"
    }
    foreach name $names {
      if {$name in $failed($base)} continue
      set because ""
      set i -1
      foreach entry $entries {
        incr i
        lassign $entry eFile eMode ePattern eReason
        if {$eFile eq $file && $eMode eq $mode && [string match $ePattern $name]} {
          dict set used $i 1
          if {$because eq ""} { set because $eReason }
        }
      }
      if {$because eq ""} {
        incr nBad
        lappend problems "$file $mode $name fails, and does not with $base"
      } else {
        incr nExplained
        dict incr reasons $because
      }
    }
  }
  # An explanation is stale if the file was run in its mode and it explains nothing.
  set i -1
  foreach entry $entries {
    incr i
    lassign $entry eFile eMode ePattern
    if {$eFile eq $file && [info exists failed($eMode)] && ![dict exists $used $i]} {
      lappend problems "$file $eMode $ePattern is explained, and no longer fails"
    }
  }
  incr sum(tests) $nTest; incr sum(explained) $nExplained; incr sum(bad) $nBad
  puts [format $format $file $nTest $count(stock) $count(reserve) $count(P) $count(T) \
            $count(W) $count(above) $nExplained $nBad]
}
puts [format $format "[llength $files] files" $sum(tests) $sum(stock) $sum(reserve) $sum(P) \
          $sum(T) $sum(W) $sum(above) $sum(explained) $sum(bad)]
puts "\nThe differences explained:"
dict for {reason n} $reasons { puts [format "%7d  %s" $n $reason] }
if {[llength $problems]} {
  puts "\n[llength $problems] differences to look into:"
  foreach line [lrange $problems 0 199] { puts "  $line" }
  if {[llength $problems]>200} { puts "  ..." }
  exit 1
}
puts "\nNo other difference."
