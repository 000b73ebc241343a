# How long a log is that was cut to a journal_size_limit of n bytes: waldio leaves as
# many frames as begin within it.
proc limited {n} {
  if {![suite_is_waldio]} { return $n }
  suite_log_size [expr {($n-32 + 1024+23)/(1024+24)}] 1024
}
