# The bytes of a log, as SQLite would have them.  A decoder of its own, as in
# waldio.c's head: sourced by translations of tests that read or write them.
#
#     log_read FILE          the log in SQLite's format
#     log_write FILE BYTES   the reverse, in the layout that the log has
#     log_through FILE COMMAND...   what COMMAND does to the log in SQLite's format,
#                            which has the name FILE in it
#
# Both leave a log alone that is not waldio's.  What a test damages in the header is
# damaged in block 0 as well: the version and checksum there differ from waldio's by
# what those of BYTES differ from SQLite's.  If the checksum is wrong, so is the CRC.

set ::log_version 0x57414c31

proc log_crc {data} {
  if {![info exists ::log_crc_table]} {
    for {set i 0} {$i<256} {incr i} {
      set c $i
      for {set j 0} {$j<8} {incr j} {
        set c [expr {$c & 1 ? ($c>>1) ^ 0x82f63b78 : $c>>1}]
      }
      lappend ::log_crc_table $c
    }
  }
  set c 0xffffffff
  binary scan $data cu* bytes
  foreach b $bytes {
    set c [expr {($c>>8) ^ [lindex $::log_crc_table [expr {($c ^ $b) & 255}]]}]
  }
  expr {$c ^ 0xffffffff}
}

# A header's six numbers and checksum with another version; log_damaged is true if the
# checksum is wrong.
proc log_header {hdr from to} {
  binary scan $hdr Iu8 a
  set scan [expr {[lindex $a 0] & 1 ? "Iu6" : "iu6"}]
  foreach version [list $from $to] {
    lset a 1 [expr {[lindex $a 1] ^ ($version==$to ? $from ^ $to : 0)}]
    set c1 0
    set c2 0
    binary scan [binary format I6 [lrange $a 0 5]] $scan words
    foreach {v1 v2} $words {
      set c1 [expr {($c1 + $v1 + $c2) & 0xffffffff}]
      set c2 [expr {($c2 + $v2 + $c1) & 0xffffffff}]
    }
    if {$version==$from} {
      set d1 [expr {[lindex $a 6] ^ $c1}]
      set d2 [expr {[lindex $a 7] ^ $c2}]
    }
  }
  set ::log_damaged [expr {$d1 || $d2}]
  binary format I8 [list {*}[lrange $a 0 5] [expr {$c1 ^ $d1}] [expr {$c2 ^ $d2}]]
}

proc log_file {zFile} {
  set f [open $zFile rb]
  set data [read $f]
  close $f
  return $data
}

# The layout in block 0: its number, and the sizes of page and slot.
proc log_layout {data} {
  if {[string length $data]<4096} { return "" }
  binary scan $data x4Iux32 version
  binary scan $data x8Iu pgsz
  binary scan $data x40cux3Iu kind slot
  if {$version!=$::log_version} { return "" }
  list $kind $pgsz $slot
}
proc log_tail_block {iFrame slot} {
  expr {4096 + ($iFrame-1)/128*(4096 + 128*$slot)}
}
proc log_slot {iFrame kind slot} {
  if {$kind==1} { return [expr {4096 + ($iFrame-1)*$slot}] }
  expr {[log_tail_block $iFrame $slot] + 4096 + ($iFrame-1)%128*$slot}
}

# Put a tail back that lies in the page, at the place x, or in the tail block.
proc log_untail {page pgsz x spilled} {
  set room [expr {$x & 0xffff}]
  set move [expr {($x>>16) & 31}]
  set bits [expr {$x>>21}]
  set page [string range $page 0 [expr {$pgsz-29}]]
  if {$x>>28} { return $page$spilled }
  set tail [string range $page $room [expr {$room+$move-1}]]
  if {$move>0} {
    set page [string replace $page $room [expr {$room+$move-1}] \
                  [string repeat \0 $move]]
  }
  set n [expr {$pgsz<=4096 ? 4 : 2}]
  for {set i $move} {$i<28} {incr i} {
    set v 0
    for {set shift [expr {8-$n}]} {$shift>=0} {incr shift -$n} {
      binary scan [string index $page $bits] cu b
      set v [expr {$v | ($b>>(8-$n))<<$shift}]
      set page [string replace $page $bits $bits \
                    [binary format c [expr {$b & (255>>$n)}]]]
      incr bits 2
    }
    append tail [binary format c $v]
  }
  return $page$tail
}

proc log_read {zFile} {
  set data [log_file $zFile]
  set layout [log_layout $data]
  if {$layout eq ""} { return $data }
  lassign $layout kind pgsz slot
  set out [log_header [string range $data 0 31] $::log_version 3007000]
  for {set i 1} {1} {incr i} {
    set at [log_slot $i $kind $slot]
    if {$at+$slot>[string length $data]} break
    set page [string range $data $at [expr {$at+$pgsz-1}]]
    if {$kind==1} {
      set hdr [string range $data [expr {$at+$pgsz}] [expr {$at+$pgsz+23}]]
      binary scan $hdr IuIu pg size
    } else {
      set hdr [string range $page end-23 end]
      binary scan $hdr IuIu pg size
      set moved 1
      if {$size==0xffffffff} {
        set size 0
      } elseif {$pg==0xffffffff} {
        set pg $size
      } elseif {$size!=0 && $pg>$size} {
        lassign [list $pg $size] size pg
      } else {
        set moved 0
      }
      if {$moved} {
        binary scan [string range $page end-27 end-24] Iu x
        set at [expr {[log_tail_block $i $slot] + 32*(($i-1)%128)}]
        set page [log_untail $page $pgsz $x \
                      [string range $data $at [expr {$at+27}]]]
        set hdr [binary format II $pg $size][string range $hdr 8 end]
      } else {
        set page [string range $page 0 end-24][string repeat \0 24]
      }
    }
    if {$pg==1 && [string match {SQLite format 3*} $page]
     && [string index $page 19] in {W V}} {
      set page [string replace $page 19 19 \2]
    }
    append out $hdr $page
  }
  return $out
}

proc log_write {zFile bytes} {
  set layout [log_layout [log_file $zFile]]
  set f [open $zFile r+b]
  if {$layout eq ""} {
    puts -nonewline $f $bytes
    close $f
    return
  }
  lassign $layout kind pgsz slot
  set crc [string range [log_file $zFile] 60 63]
  set block [log_header [string range $bytes 0 31] 3007000 $::log_version]
  append block [binary format a8cx3I "waldio 2" $kind $slot] [string repeat \0 12]
  append block [expr {$::log_damaged ? $crc : [binary format I [log_crc $block]]}]
  puts -nonewline $f $block
  set nFrame [expr {([string length $bytes]-32)/($pgsz+24)}]
  for {set i 1} {$i<=$nFrame} {incr i} {
    set at [expr {32 + ($i-1)*($pgsz+24)}]
    set hdr [string range $bytes $at [expr {$at+23}]]
    set page [string range $bytes [expr {$at+24}] [expr {$at+23+$pgsz}]]
    binary scan $hdr IuIu pg size
    if {$pg==1 && [string match {SQLite format 3*} $page]
     && [string index $page 19] eq "\2"} {
      set page [string replace $page 19 19 W]
    }
    if {$kind!=1} {
      set tail [string range $page end-27 end]
      set page [string range $page 0 end-24]
      if {[string trim [string range $tail 4 end] \0] ne ""} {
        set page [string replace $page end-3 end \xff\xff\xff\xff]
        seek $f [expr {[log_tail_block $i $slot] + 32*(($i-1)%128)}]
        puts -nonewline $f $tail
        if {$size==0} {
          set size 0xffffffff
        } elseif {$size>$pg} {
          lassign [list $pg $size] size pg
        } elseif {$size==$pg} {
          set pg 0xffffffff
        }
        # No frame has another one, and it is read back as one that none has.
        set hdr [binary format II $pg $size][string range $hdr 8 end]
      }
    }
    seek $f [log_slot $i $kind $slot]
    puts -nonewline $f $page$hdr
  }
  close $f
}

proc log_through {zFile args} {
  set zStock $zFile.stock
  set before [log_read $zFile]
  set f [open $zStock wb]
  puts -nonewline $f $before
  close $f
  try { uplevel 1 [string map [list FILE $zStock] $args] } finally {
    set after [log_file $zStock]
    file delete $zStock
    if {$after ne $before} { log_write $zFile $after }
  }
}
