# Sourced by benches: how much of the CPUs other programs used, which is what spoils a comparison.
#
# Only user mode counts: kernel threads have none, and a loop device's work is the bench's own. Of
# CPU $cpu alone if the bench has taken that one.

# Ticks: all of the machine's, those in user mode, and those of this script's children.
read_ticks() {
    local machine own
    read -r -a machine < <(grep "^cpu${cpu:-} " /proc/stat)
    own=$(sed 's/.*) //' /proc/$$/stat)
    awk -v own="$own" '{ for (i = 2; i <= 9; i++) all += $i
        split(own, mine, " "); print all, $2 + $3, mine[12] + mine[14] }' <<<"${machine[*]}"
}

# The share since `read_ticks` gave $1, in percent.
others_since() {
    awk '{ if (NR == 1) { all = $1; user = $2; own = $3 }
           else if ($1 > all) {
               share = 100 * ($2 - user - $3 + own) / ($1 - all)
               printf "%.0f %%\n", share < 0 ? 0 : share } }' <<<"$1"$'\n'"$(read_ticks)"
}
