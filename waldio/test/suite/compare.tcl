# compare.tcl RESULTS EXPECTED <PAIRS: what SQLite's tests say with waldio that they
# do not say without.
#
# PAIRS are lines "MODE FILE", what was to be run; RESULTS/MODE/FILE/out is the output.
# See init.c for the modes.  A difference is, of one file and mode,
#
#     NAME                 a test that fails, and does not without waldio
#     NAME.ran-N-of-M      of the tests NAME.1, NAME.2 and so on fewer are run
#     files-left-open, unfreed-memory   what SQLite says at the end
#     unfinished           there is no end
#
# Prints a table, and every difference that EXPECTED does not explain, or explains
# and that is gone.  Exit status 1 if there is any.

set against {P stock T stock above stock W reserve}
set modes {stock reserve P T W above}
lassign $argv results expected

# What a file's output says: the number of tests, those that failed, and how many
# were run of each name without the numbers and the (result) at its end.
proc summary {zOut} {
  set nTest 0
  set unfinished unfinished
  set failed {}
  set ran {}
  if {![file exists $zOut]} { return [list 0 unfinished {}] }
  set f [open $zOut]
  fconfigure $f -encoding binary
  while {[gets $f line]>=0} {
    if {[regexp {^! (\S+) (expected:|got: )} $line -> name]} {
      dict set failed $name 1
    } elseif {[regexp {^\d+ errors out of (\d+) tests} $line -> nTest]} {
    } elseif {[regexp {^!Failures on these tests: (.*)} $line -> rest]} {
      foreach name [split $rest] { if {$name ne ""} { dict set failed $name 1 } }
    } elseif {[regexp {^\d+ files were left open} $line]} {
      dict set failed files-left-open 1
    } elseif {[regexp {^Unfreed memory: } $line]} {
      dict set failed unfreed-memory 1
    } elseif {[regexp {^Current memory usage: } $line] && $nTest>0} {
      set unfinished {}
    } elseif {[regexp {^\.*([^\s!.]\S*)\.\.\.} $line -> name]} {
      regsub {\(.*\)$} $name "" name
      regsub {([-.]\d+)+(\.[a-z]+)?$} $name {\2} name
      dict incr ran $name
    }
  }
  close $f
  list $nTest [concat [dict keys $failed] $unfinished] $ran
}

# The tests that are not in ran and in base, by name.
proc missing {ran base} {
  set names {}
  dict for {name nBase} $base {
    set n [expr {[dict exists $ran $name] ? [dict get $ran $name] : 0}]
    if {$n<$nBase} { lappend names $name.ran-$n-of-$nBase }
  }
  return $names
}

# True if a difference is no more than so many percent of a loop's tests.
proc within {name share} {
  if {$share eq ""} { return 1 }
  expr {[regexp {\.ran-(\d+)-of-(\d+)$} $name -> n nBase] && 100*($nBase-$n)<=$share*$nBase}
}

# EXPECTED has reasons, lines that begin with "=", each followed by the differences it
# explains: FILE MODE,MODE... PATTERN...  Those after "=?" come and go, those after "=?N"
# where no more than N percent of a loop's tests are not run.
proc readExpected {zFile} {
  set reason ""
  set entries {}
  set f [open $zFile]
  while {[gets $f line]>=0} {
    set line [string trim $line]
    if {$line eq "" || [string index $line 0] eq "#"} continue
    if {[string index $line 0] eq "="} {
      regexp {^=(\??)(\d*)\s*(.*)$} $line -> mark share reason
      set mayGo [expr {$mark ne ""}]
      continue
    }
    set patterns [lassign [regexp -all -inline {\S+} $line] file modes]
    if {$reason eq "" || [llength $patterns]==0} { error "$zFile: no reason or tests: $line" }
    foreach pattern $patterns {
      foreach mode [split $modes ,] {
        lappend entries [list $file $mode $pattern $reason $mayGo $share]
      }
    }
  }
  close $f
  return $entries
}

while {[gets stdin line]>=0} {
  lassign $line mode file
  dict lappend run $file $mode
}
set entries [readExpected $expected]
set used {}
set reasons {}
set problems {}
set format "%-24s %7s %6s %7s  %5s %5s %5s %5s  %9s %11s"
puts [format $format file tests {*}$modes explained unexplained]
foreach mode $modes { array set sum [list $mode 0 tests,$mode 0] }
array set sum {explained 0 bad 0}
dict for {file fileModes} $run {
  array unset failed
  array unset ran
  array unset tests
  foreach mode $modes {
    set count($mode) -
    if {$mode ni $fileModes} continue
    lassign [summary $results/$mode/$file/out] tests($mode) failed($mode) ran($mode)
    set count($mode) [llength $failed($mode)]
    incr sum($mode) $count($mode)
    incr sum(tests,$mode) $tests($mode)
  }
  set nExplained 0
  set differences {}
  foreach mode {stock reserve} {
    if {"unfinished" in [lindex [array get failed $mode] 1]} {
      lappend differences $mode unfinished $mode
    }
  }
  foreach {mode base} $against {
    if {$mode ni $fileModes} continue
    if {$base ni $fileModes} { error "$file was not run with $base" }
    set names $failed($mode)
    if {"unfinished" ni $names} { lappend names {*}[missing $ran($mode) $ran($base)] }
    foreach name $names {
      if {$name ni $failed($base)} { lappend differences $mode $name $base }
    }
  }
  set nBad 0
  foreach {mode name base} $differences {
    set because ""
    set i -1
    foreach entry $entries {
      incr i
      lassign $entry eFile eMode ePattern eReason eMayGo eShare
      if {$eFile eq $file && $eMode eq $mode && [string match $ePattern $name]
          && [within $name $eShare]} {
        dict set used $i 1
        if {$because eq ""} { set because $eReason }
      }
    }
    if {$because eq ""} {
      incr nBad
      lappend problems "$file $mode $name[expr {$mode eq $base ? "" : ", and not with $base"}]"
    } else {
      incr nExplained
      dict incr reasons $because
    }
  }
  # An explanation is stale if the file was run in its mode and it explains nothing.
  set i -1
  foreach entry $entries {
    incr i
    lassign $entry eFile eMode ePattern eReason eMayGo
    if {$eFile eq $file && !$eMayGo && ![dict exists $used $i]} {
      lappend problems "$file $eMode $ePattern is explained, and is no difference"
    }
  }
  incr sum(explained) $nExplained
  incr sum(bad) $nBad
  puts [format $format $file $tests(stock) {*}[lmap mode $modes {set count($mode)}] \
            $nExplained $nBad]
}
puts [format $format "[dict size $run] files" $sum(tests,stock) \
          {*}[lmap mode $modes {set sum($mode)}] $sum(explained) $sum(bad)]
puts "\nTests run: [join [lmap mode $modes {string cat "$mode $sum(tests,$mode)"}] ", "]"
puts "\nThe differences explained:"
dict for {reason n} $reasons { puts [format "%7d  %s" $n $reason] }
if {[llength $problems]} {
  puts "\n[llength $problems] differences to look into:"
  foreach line [lrange $problems 0 199] { puts "  $line" }
  if {[llength $problems]>200} { puts "  ..." }
  exit 1
}
puts "\nNo other difference."
