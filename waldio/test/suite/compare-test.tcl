# compare-test.tcl: compare.tcl finds what it has to.  Files of tests are made up, of
# which one mode says something else than the other.

set compare [file join [file dirname [file normalize [info script]]] compare.tcl]
close [file tempfile root suite]
file delete $root
file mkdir $root
set nBad 0

proc write {zFile text} {
  file mkdir [file dirname $zFile]
  set f [open $zFile w]
  puts -nonewline $f $text
  close $f
}
# What SQLite's fixture prints for tests of these names, of which some fail.
proc output {names {failed {}}} {
  foreach name $names {
    append out "$name..." [expr {$name in $failed ? "\n! $name expected: \[1]\n! $name\
        got:      \[0]\n" : " Ok\n"}]
  }
  append out "[llength $failed] errors out of [expr {[llength $names]+1}] tests on a host\n"
  if {[llength $failed]} { append out "!Failures on these tests: $failed\n" }
  append out "All memory allocations freed - no leaks\nCurrent memory usage: 0 bytes\n"
}
# Compare the outputs of the modes (not run if it is "-"); want is a part of what is
# said, or empty where there is no difference.
proc check {what outputs expected want} {
  global root compare nBad
  file delete -force $root
  dict for {mode out} $outputs {
    append pairs "$mode a.test\n"
    if {$out ne "-"} { write $root/$mode/a.test/out $out }
  }
  write $root/expected $expected
  set status [catch { exec [info nameofexecutable] $compare $root $root/expected << $pairs } said]
  if {$status==($want eq "") || ($want ne "" && [string first $want $said]<0)} {
    puts stderr "compare.tcl: $what: expected '$want', and it says:\n$said"
    incr nBad
  }
}

set names {a-1.1 a-1.2 a-2-oom.1 a-2-oom.2 a-2-oom.3}
set all [output $names]
check "no difference" [list stock $all T $all] "" ""
check "fails with and without" \
    [list stock [output $names a-1.2] T [output $names a-1.2]] "" ""
check "fails with waldio" [list stock $all T [output $names a-1.2]] "" "a.test T a-1.2,"
check "explained" [list stock $all T [output $names a-1.2]] "= so\na.test T a-1.2\n" ""
check "explained in another mode" \
    [list stock $all P $all T [output $names a-1.2]] "= so\na.test P a-1.2\n" "a.test T a-1.2,"
check "explained and gone" [list stock $all T $all] "= so\na.test T a-1.2\n" \
    "a.test T a-1.2 is explained"
check "explained and may be gone" [list stock $all T $all] "=? so\na.test T a-1.2\n" ""
check "a test is not run" [list stock $all T [output [lreplace $names 1 1]]] "" \
    "a.test T a.ran-1-of-2,"
check "a loop ends early" [list stock $all T [output [lrange $names 0 3]]] "" \
    "a.test T a-2-oom.ran-2-of-3,"
check "a loop ends a third early, as it may" \
    [list stock $all T [output [lrange $names 0 3]]] "=?34 so\na.test T a-2-oom.ran-*\n" ""
check "a loop ends too early" \
    [list stock $all T [output [lrange $names 0 3]]] "=?33 so\na.test T a-2-oom.ran-*\n" \
    "a.test T a-2-oom.ran-2-of-3,"
check "a test that fails is no loop that ends early" \
    [list stock $all T [output $names a-1.2]] "=?99 so\na.test T a-1.2\n" "a.test T a-1.2,"
check "a loop is longer" [list stock $all T [output [concat $names a-2-oom.4]]] "" ""
check "it stops half-way" [list stock $all T [string range $all 0 20]] "" "a.test T unfinished,"
check "it stops at the end" [list stock $all T [string map {Current -} $all]] "" \
    "a.test T unfinished,"
check "it was not run" [list stock $all T -] "" "a.test T unfinished,"
check "it stops without waldio" [list stock [string range $all 0 20] T $all] "" \
    "a.test stock unfinished"
check "memory is lost" [list stock $all T [string map {"All memory" "Unfreed memory: "} $all]] \
    "" "a.test T unfreed-memory,"
check "another base" [list stock $all reserve [output $names a-1.1] W [output $names a-1.1]] "" ""
file delete -force $root
exit [expr {$nBad>0}]
