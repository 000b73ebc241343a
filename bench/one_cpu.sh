# Sourced by benches after memory_ext4.sh: a bench and the kernel's workers on one CPU.
#
#   take_one_cpu    this script, its children, and the workers
#   take_journal    the journal's thread of the ext4 that make_ext4 made
#   in_turn COMMAND...   the command and the workers at one real-time priority
#
# Whether the worker of a loop device runs beside the thread that waits for it or on another CPU
# changes the time of a fast operation by half, differs from run to run, and stays so for all of a
# run. On one CPU there is one way only.

workers=/sys/devices/virtual/workqueue/cpumask

# This script and its children, and the kernel's workers that may run anywhere. $cpu is the CPU,
# the last of those that are allowed; clean_up gives the workers their freedom back.
take_one_cpu() {
    local allowed
    allowed=$(sed -n 's/^Cpus_allowed_list:\s*//p' /proc/self/status)
    cpu=${allowed##*[,-]}
    # The mask of the workers is a number of 32 bits, then a comma.
    [ "$cpu" -lt 32 ] || cpu=31
    taskset --cpu-list --pid "$cpu" $$ >/dev/null
    workers_were=$(cat "$workers")
    printf '%x' $((1 << cpu)) >"$workers"
}

take_journal() {
    local thread
    for thread in $(pgrep "^jbd2/${loop#/dev/}-"); do
        taskset --cpu-list --pid "$cpu" "$thread" >/dev/null
    done
}

# Runs a command so that it and the workers of loop devices go on until they wait, and no program of
# an ordinary priority comes between. Else the scheduler decides with each operation that is
# submitted or done which of the two goes on, and not in the same way for two programs.
in_turn() {
    local worker
    for worker in $(pgrep '^kworker/u'); do
        # One that has ended needs none.
        chrt --fifo --pid 1 "$worker" 2>/dev/null || true
    done
    workers_are_in_turn=1
    chrt --fifo 1 "$@"
}

# What clean_up does.
give_workers_back() {
    local worker
    echo "$workers_were" >"$workers"
    [ -n "${workers_are_in_turn:-}" ] || return 0
    for worker in $(pgrep '^kworker/u'); do
        chrt --other --pid 0 "$worker" 2>/dev/null || true
    done
}
